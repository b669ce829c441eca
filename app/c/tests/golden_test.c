/* Codes against the test vectors that the command writes for other programs. */
#include <string.h>

#include "check.h"

enum { MOST = 4096 };

/* The text after `"key":` in a line of JSON. */
static const char* after(const char* line, const char* key) {
    char wanted[64];
    const char* found;
    sprintf(wanted, "\"%s\":", key);
    found = strstr(line, wanted);
    return found == NULL ? "" : found + strlen(wanted);
}

/* A text value without its quotes, or a number as text. */
static char* text_of(const char* line, const char* key, char* to) {
    const char* from = after(line, key);
    char* end = to;
    if (*from == '"') ++from;
    while (*from != '\0' && strchr("\",}", *from) == NULL) *end++ = *from++;
    *end = '\0';
    return to;
}

/* The numbers of a list of rows; their count. */
static int numbers_of(const char* line, const char* key, double* to) {
    const char* at = after(line, key);
    int count = 0;
    int depth = 0;
    do {
        if (*at == '[')
            ++depth, ++at;
        else if (*at == ']')
            --depth, ++at;
        else if (*at == ',')
            ++at;
        else {
            char* end;
            to[count++] = strtod(at, &end);
            if (end == at) return -1;
            at = end;
        }
    } while (depth > 0 && count < MOST);
    return count;
}

/* Whether the library takes an option for a method: it rejects those without an effect, which the vectors list too. */
static int taken(const char* method, int cols, double bits, const char* option) {
    spiked_codec* codec = NULL;
    const int status = spiked_codec_create(method, cols, bits, option, &codec);
    spiked_codec_free(codec);
    if (status == SPIKED_OK) return 1;
    CHECK(strstr(spiked_last_error(), "has no effect") != NULL);
    return 0;
}

/* Options other than the defaults, in the form of spiked_codec_create. */
static void options_of(const char* line, const char* method, int cols, double bits, char* to) {
    static const char* const keys[][2] = {
        {"rotation", "haar"}, {"codebook", "sphere"}, {"norm", "fp16"},     {"group", "64"},
        {"axis", "value"},    {"residual", "0"},      {"factor_bits", "4"}, {"factor_codebook", "normal"},
        {"seed", ""},         {"rotation_index", "0"}};
    size_t i;
    *to = '\0';
    for (i = 0; i < sizeof keys / sizeof *keys; ++i) {
        char value[64], option[128];
        text_of(line, keys[i][0], value);
        if (strcmp(value, keys[i][1]) == 0) continue;
        sprintf(option, "%s=%s ", strcmp(keys[i][0], "rotation_index") == 0 ? "index" : keys[i][0], value);
        if (taken(method, cols, bits, option)) strcat(to, option);
    }
}

static void check_vector(const char* line) {
    static double input[MOST], decoded[MOST], back[MOST];
    static uint8_t bytes[8 * MOST];
    char name[256], method[128], number[64], options[512];
    const char* const hex = after(line, "encoded") + 1;
    const int before = failures;
    const int rows = atoi(text_of(line, "rows", number));
    const int cols = atoi(text_of(line, "columns", number));
    const double bits = strtod(text_of(line, "bits", number), NULL);
    spiked_codec* codec = NULL;
    spiked_code code;
    size_t length = 0, i;
    int j;
    const spiked_matrix block = in_rows(input, rows, cols), to = in_rows(back, rows, cols);
    CHECK(numbers_of(line, "input", input) == rows * cols);
    CHECK(numbers_of(line, "decoded", decoded) == rows * cols);
    options_of(line, text_of(line, "method", method), cols, bits, options);
    CHECK_OK(spiked_codec_create(method, cols, bits, options, &codec));
    CHECK_OK(spiked_codec_encode(codec, &block, bytes, sizeof bytes, &length, &code));
    CHECK(code.bytes == (int64_t)length);
    for (i = 0; i < length; ++i) {
        unsigned byte = 256;
        CHECK(sscanf(hex + 2 * i, "%2x", &byte) == 1 && byte == bytes[i]);
    }
    CHECK(hex[2 * length] == '"');
    CHECK_OK(spiked_codec_decode(codec, bytes, length, &to));
    for (j = 0; j < rows * cols; ++j) CHECK(back[j] == decoded[j]);
    spiked_codec_free(codec);
    if (failures > before) printf("  in %s with %s\n", text_of(line, "name", name), options);
}

void golden_vectors(const char* command) {
    static char line[1 << 20];
    char call[1024];
    FILE* file;
    int vectors = 0;
    sprintf(call, "'%s' kv golden --write c_golden.json >/dev/null 2>&1", command);
    CHECK(system(call) == 0);
    file = fopen("c_golden.json", "r");
    CHECK(file != NULL);
    while (file != NULL && failures < 20 && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, "{\"name\"", 7) == 0) {
            check_vector(line);
            ++vectors;
        }
    CHECK(vectors > 500 || failures >= 20);
    if (file != NULL) fclose(file);
    remove("c_golden.json");
}
