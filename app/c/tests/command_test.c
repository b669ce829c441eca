/* Results against those of the command, bit by bit. */
#include <string.h>

#include "check.h"

enum { ROWS = 60, COLS = 90, ENTRIES = ROWS * COLS };

/* Writes doubles as .npy; version 1.0 of the format, in C order. */
static void write_npy(const char* path, const double* data, int rows, int cols) {
    char header[118];
    FILE* const file = fopen(path, "wb");
    memset(header, ' ', sizeof header);
    header[sprintf(header, "{'descr': '<f8', 'fortran_order': False, 'shape': (%d, %d), }", rows, cols)] = ' ';
    header[sizeof header - 1] = '\n';
    fwrite("\x93NUMPY\x01\x00\x76\x00", 1, 10, file);
    fwrite(header, 1, sizeof header, file);
    fwrite(data, sizeof *data, (size_t)(rows * cols), file);
    fclose(file);
}

/* Reads what the command writes into rows; returns whether it has as many entries. */
static int read_npy(const char* path, double* to, int rows, int cols) {
    static double data[ENTRIES];
    unsigned char start[10];
    char header[4096];
    FILE* const file = fopen(path, "rb");
    size_t length;
    int i, j, fortran, right;
    if (file == NULL || fread(start, 1, 10, file) != 10) return 0;
    length = start[8] + 256u * start[9];
    if (length >= sizeof header || fread(header, 1, length, file) != length) return 0;
    header[length] = '\0';
    fortran = strstr(header, "True") != NULL;
    right = fread(data, sizeof *data, (size_t)(rows * cols), file) == (size_t)(rows * cols);
    fclose(file);
    for (i = 0; i < rows; ++i)
        for (j = 0; j < cols; ++j) to[i * cols + j] = fortran ? data[j * rows + i] : data[i * cols + j];
    return right;
}

/* The output of a call of the command. */
static const char* answer(const char* command, const char* arguments) {
    static char text[1 << 18];
    char call[1024];
    FILE* pipe;
    sprintf(call, "'%s' %s --json -q", command, arguments);
    pipe = popen(call, "r");
    text[fread(text, 1, sizeof text - 1, pipe)] = '\0';
    CHECK(pclose(pipe) == 0);
    return text;
}

/* The number at a position of the list after `"key"`, or the number there; NaN for null. */
static double number_after(const char* text, const char* key, int position) {
    char wanted[64];
    const char* at;
    int i;
    sprintf(wanted, "\"%s\"", key);
    at = strstr(text, wanted);
    CHECK(at != NULL);
    if (at == NULL) return 0.0;
    at += strlen(wanted);
    for (i = 0; i <= position; ++i) {
        char* end;
        double number = 0.0;
        at += strcspn(at, "-0123456789n");
        if (*at == 'n') {
            number /= number;
            end = (char*)at + strlen("null");
        } else {
            number = strtod(at, &end);
        }
        if (i == position) return number;
        at = end;
    }
    return 0.0;
}

static int same(double found, double expected) { return found == expected || (found != found && expected != expected); }

static void spectrum_equality(const char* command, const double* data, const char* method) {
    static double signal[ENTRIES], expected[ENTRIES], values[ROWS], shrunk[ROWS], strengths[ROWS];
    char arguments[256];
    const char* text;
    spiked_estimate estimate = {0};
    const spiked_matrix from = in_rows((double*)data, ROWS, COLS), to = in_rows(signal, ROWS, COLS);
    int i;
    estimate.capacity = ROWS;
    estimate.singular_values = values;
    estimate.shrunk = shrunk;
    estimate.strengths = strengths;
    CHECK_OK(spiked_denoise(&from, method, NULL, NULL, NULL, 0, &to, &estimate));
    sprintf(arguments, "spectrum c_data.npy --estimator %s --denoised c_back.npy", method);
    text = answer(command, arguments);
    CHECK(read_npy("c_back.npy", expected, ROWS, COLS));
    for (i = 0; i < ENTRIES; ++i) CHECK(signal[i] == expected[i]);
    for (i = 0; i < ROWS; ++i) CHECK(values[i] == number_after(text, "singular_values", i));
    CHECK(estimate.values == ROWS);
    CHECK((double)estimate.rank == number_after(text, "rank", 0));
    for (i = 0; i < estimate.rank; ++i) CHECK(shrunk[i] == number_after(text, "shrunk", i));
    CHECK(same(estimate.bulk_edge, number_after(text, "bulk_edge", 0)));
    for (i = 0; i < estimate.rank; ++i) CHECK(same(strengths[i], number_after(text, "strengths", i)));
}

static void leading_equality(const char* command, const double* data) {
    double values[3], bounds[3];
    spiked_leading found = {0};
    const spiked_matrix from = in_rows((double*)data, ROWS, COLS);
    const char* const text = answer(command, "spectrum c_data.npy --values 3");
    int i;
    found.wanted = 3;
    found.singular_values = values;
    found.bounds = bounds;
    CHECK_OK(spiked_leading_values(&from, 0, &found));
    CHECK(found.values == 3);
    for (i = 0; i < 3; ++i) CHECK(values[i] == number_after(text, "singular_values", i));
    for (i = 0; i < 3; ++i) CHECK(bounds[i] == number_after(text, "value_bounds", i));
}

/* The ends of an interval of component 0, after the key in the object of intervals. */
static void same_interval(const double* found, const char* intervals, const char* key) {
    CHECK(found[0] == number_after(intervals, key, 0));
    CHECK(found[1] == number_after(intervals, key, 1));
}

static void intervals_equality(const char* command, const double* data, const char* method, const char* how) {
    double strength[2 * ROWS], left[2 * ROWS], right[2 * ROWS];
    char arguments[256];
    const char *text, *intervals;
    spiked_intervals found = {0};
    spiked_estimate estimate = {0};
    const spiked_matrix from = in_rows((double*)data, ROWS, COLS);
    found.method = how;
    found.confidence = 0.9;
    found.capacity = estimate.capacity = ROWS;
    found.strength = strength;
    found.overlap_left = left;
    found.overlap_right = right;
    CHECK_OK(spiked_denoise_intervals(&from, method, NULL, NULL, NULL, 0, NULL, NULL, NULL, &estimate, &found));
    CHECK(estimate.rank >= 1 && found.count == estimate.rank && strength[0] < strength[1]);
    sprintf(arguments, "spectrum c_data.npy --estimator %s --intervals %s --confidence 0.9", method, how);
    text = answer(command, arguments);
    intervals = strstr(text, "\"intervals\"");
    CHECK(intervals != NULL);
    if (intervals == NULL) return;
    same_interval(strength, intervals, "strength");
    same_interval(left, intervals, "overlap_left");
    same_interval(right, intervals, "overlap_right");
    CHECK(same(found.next_value, number_after(text, "next_component_p_value", 0)));

    /* Values alone give the same interval of a strength. */
    {
        double values[ROWS], alone[2 * ROWS];
        const double next = found.next_value;
        estimate.singular_values = values;
        CHECK_OK(spiked_denoise_intervals(&from, method, NULL, NULL, NULL, 0, NULL, NULL, NULL, &estimate, &found));
        found.strength = alone;
        estimate.singular_values = NULL;
        CHECK_OK(spiked_shrink_intervals(values, ROWS, ROWS, COLS, method, NULL, &estimate, &found));
        CHECK(found.count == estimate.rank && same(found.next_value, next));
        CHECK(alone[0] == strength[0] && alone[1] == strength[1]);
        same_interval(left, intervals, "overlap_left");
        found.method = "none";
        CHECK_OK(spiked_shrink_intervals(values, ROWS, ROWS, COLS, method, NULL, NULL, &found));
        CHECK(found.count == 0);
        CHECK_STATUS(spiked_shrink_intervals(values, ROWS - 1, ROWS, COLS, method, NULL, NULL, &found), SPIKED_USAGE);
    }
}

static void preparation_equality(const char* command, const double* data) {
    static double ready[ENTRIES], signal[ENTRIES], expected[ENTRIES];
    const spiked_matrix from = in_rows((double*)data, ROWS, COLS), to = in_rows(ready, ROWS, COLS);
    const spiked_matrix back = in_rows(signal, ROWS, COLS);
    int i;
    CHECK_OK(spiked_prepare(&from, NULL, "columns", &to, NULL, 0));
    CHECK_OK(spiked_denoise(&to, "svd:2", NULL, NULL, NULL, 0, &back, NULL));
    answer(command, "spectrum c_data.npy --standardize columns --estimator svd:2 --denoised c_back.npy");
    CHECK(read_npy("c_back.npy", expected, ROWS, COLS));
    for (i = 0; i < ENTRIES; ++i) CHECK(signal[i] == expected[i]);
}

static void pca_equality(const char* command, const double* data, const spiked_pca_options* options,
                         const char* arguments, int components) {
    double numbers[6][ROWS];
    char call[256];
    const char* text;
    const spiked_matrix from = in_rows((double*)data, ROWS, COLS);
    spiked_components found = {0};
    int i;
    found.capacity = ROWS;
    found.eigenvalues = numbers[0];
    found.debiased = numbers[1];
    found.debiased_errors = numbers[2];
    found.cosines = numbers[3];
    found.cosine_errors = numbers[4];
    found.shrunk = numbers[5];
    CHECK_OK(spiked_pca(&from, options, &found));
    CHECK(found.components == components);
    sprintf(call, "pca c_data.npy %s", arguments);
    text = answer(command, call);
    CHECK((double)found.components == number_after(text, "components", 0));
    CHECK((double)found.degrees_of_freedom == number_after(text, "degrees_of_freedom", 0));
    CHECK(found.stripped_features == 0);
    CHECK(found.noise_level == number_after(text, "noise_level", 0));
    CHECK(found.bulk_edge == number_after(text, "bulk_edge", 0));
    for (i = 0; i < found.values; ++i) CHECK(numbers[0][i] == number_after(text, "eigenvalues", i));
    for (i = 0; i < found.components; ++i) {
        CHECK(numbers[1][i] == number_after(text, "debiased", i));
        CHECK(numbers[2][i] == number_after(text, "debiased_errors", i));
        CHECK(numbers[3][i] == number_after(text, "cosines", i));
        CHECK(numbers[4][i] == number_after(text, "cosine_errors", i));
        CHECK(numbers[5][i] == number_after(text, "shrunk", i));
    }
}

static void quantize_equality(const char* command, const double* data, const char* method, double bits,
                              const char* options, const char* of_command) {
    static double decoded[ENTRIES], expected[ENTRIES];
    char arguments[256];
    const char* text;
    spiked_codec* codec = NULL;
    const spiked_codec* codecs[1];
    spiked_blocks blocks = {0}, back = {0};
    spiked_code code;
    int i;
    CHECK_OK(spiked_codec_create(method, COLS, bits, options, &codec));
    codecs[0] = codec;
    blocks.first = in_rows((double*)data, ROWS, COLS);
    back.first = in_rows(decoded, ROWS, COLS);
    blocks.count = back.count = 1;
    CHECK_OK(spiked_roundtrip(codecs, 1, &blocks, 1, NULL, NULL, &back, &code));
    spiked_codec_free(codec);
    sprintf(arguments, "quantize c_data.npy --method %s --bits %g %s -o c_back.npy", method, bits, of_command);
    text = answer(command, arguments);
    CHECK(read_npy("c_back.npy", expected, ROWS, COLS));
    for (i = 0; i < ENTRIES; ++i) CHECK(decoded[i] == expected[i]);
    CHECK(code.bits_per_entry == number_after(text, "bits_per_entry", 0));
    CHECK(code.paper_bits == number_after(text, "paper_bits", 0));
    CHECK(code.relative_l2 == number_after(text, "relative_l2", 0));
    CHECK((double)code.bytes == number_after(text, "bytes", 0));
    CHECK((double)code.rank == number_after(text, "rank", 0));
    for (i = 0; i < SPIKED_LEDGER_ITEMS; ++i) CHECK(code.ledger[i] == number_after(text, spiked_ledger_item(i), 0));
}

static void theory_equality(const char* command) {
    const char* const text = answer(
        command, "theory --row-spectrum ar1:0.5 --col-spectrum uniform:1,10 --aspect 0.5 --strength 9 --density 3");
    spiked_spectrum row = {0}, col = {0};
    spiked_law* law = NULL;
    spiked_bulk bulk;
    spiked_spike spike;
    double strength = 9.0, x[3], density[3], cdf[3];
    row.spec = "ar1:0.5";
    col.spec = "uniform:1,10";
    CHECK_OK(spiked_law_create(&row, &col, 0.5, &law));
    CHECK_OK(spiked_law_bulk(law, &bulk));
    CHECK_OK(spiked_law_spikes(law, &strength, 1, &spike));
    CHECK_OK(spiked_law_curve(law, 3, x, density, cdf));
    spiked_law_free(law);
    CHECK(bulk.bulk_edge == number_after(text, "bulk_edge", 0));
    CHECK(bulk.detection_threshold == number_after(text, "detection_threshold", 0));
    CHECK(bulk.tracy_widom_scale == number_after(text, "tracy_widom_scale", 0));
    CHECK(spike.detectable == 1);
    CHECK(spike.outlier == number_after(text, "outlier", 0));
    CHECK(spike.stieltjes_left == number_after(text, "stieltjes_left", 0));
    CHECK(spike.overlap_left == number_after(text, "overlap_left", 0));
    CHECK(spike.overlap_right == number_after(text, "overlap_right", 0));
    CHECK(spike.shrunk_frobenius == number_after(text, "frobenius", 0));
    CHECK(spike.shrunk_operator == number_after(text, "operator", 0));
    CHECK(spike.shrunk_nuclear == number_after(text, "nuclear", 0));
    CHECK(x[2] == bulk.bulk_edge && cdf[2] == 1.0 && density[1] > 0.0);
}

/* Without a size the part of the signal is left out; with one it is 9^2 / 32. */
static void missing_theory_equality(const char* command) {
    static const char* const sizes[] = {" --aspect 0.5", " --size 32x64"};
    static const double squares[] = {0.0, 81.0 / 32.0};
    char words[160];
    spiked_spectrum row = {0};
    spiked_law* law = NULL;
    spiked_bulk bulk;
    double edges[2];
    int i;
    row.spec = "ar1:0.5";
    for (i = 0; i < 2; ++i) {
        snprintf(words, sizeof words, "theory --row-spectrum ar1:0.5 --seen 0.4 --strength 9%s", sizes[i]);
        CHECK_OK(spiked_law_create_missing(&row, NULL, 0.5, 0.4, squares[i], &law));
        CHECK_OK(spiked_law_bulk(law, &bulk));
        spiked_law_free(law);
        CHECK(bulk.bulk_edge == number_after(answer(command, words), "bulk_edge", 0));
        edges[i] = bulk.bulk_edge;
    }
    CHECK(edges[0] < edges[1]);
}

void command_equality(const char* command) {
    static double data[ENTRIES];
    spiked_pca_options other = {0};
    fill_spiked(data, ROWS, COLS, 4.0, 7);
    write_npy("c_data.npy", data, ROWS, COLS);
    spectrum_equality(command, data, "eoptshrink");
    spectrum_equality(command, data, "gd-shrink");
    spectrum_equality(command, data, "screenot:5");
    spectrum_equality(command, data, "svd:2");
    leading_equality(command, data);
    intervals_equality(command, data, "eoptshrink", "theory");
    intervals_equality(command, data, "gd-shrink", "bootstrap");
    preparation_equality(command, data);
    pca_equality(command, data, NULL, "--center columns", 0); /* the component is a mean */
    other.center = "none";
    other.loss = "stein";
    other.noise = "median";
    other.level = 0.05;
    pca_equality(command, data, &other, "--center none --loss stein --noise median --level 0.05", 1);
    quantize_equality(command, data, "tq-mse", 2.0, NULL, "");
    quantize_equality(command, data, "eoptshrink+tq-prod", 3.0, NULL, "");
    quantize_equality(command, data, "svd:1+kivi", 2.0, NULL, "");
    quantize_equality(command, data, "mean+tq-mse", 2.0, "axis=key", "--axis key");
    theory_equality(command);
    missing_theory_equality(command);
    remove("c_data.npy");
    remove("c_back.npy");
}
