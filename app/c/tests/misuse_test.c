/* Wrong arguments: a status, a message of one line, and no change of what must not change. */
#include <string.h>

#include "check.h"

enum { ROWS = 12, COLS = 8, ENTRIES = ROWS * COLS };

static double data[ENTRIES], room[ENTRIES];

/* The call must fail with this status and a message that has these words. */
static void fails(int line, int status, int expected, const char* words) {
    const char* const message = spiked_last_error();
    if (status == expected && strstr(message, words) != NULL && strchr(message, '\n') == NULL) return;
    ++failures;
    printf("misuse_test.c:%d: status %d, not %d, with \"%s\", not \"%s\"\n", line, status, expected, message, words);
}
#define FAILS(call, expected, words) fails(__LINE__, call, expected, words)

static int denoised(const spiked_matrix* from, const char* method, const spiked_matrix* to) {
    return spiked_denoise(from, method, NULL, NULL, NULL, 0, to, NULL);
}

static void matrices(void) {
    const spiked_matrix good = in_rows(data, ROWS, COLS), to = in_rows(room, ROWS, COLS);
    spiked_matrix bad = good;
    const double zero = 0.0;
    FAILS(denoised(NULL, "svd:1", NULL), SPIKED_USAGE, "data is NULL");
    bad.data = NULL;
    FAILS(denoised(&bad, "svd:1", NULL), SPIKED_USAGE, "data is NULL");
    bad = good;
    bad.dtype = 7;
    FAILS(denoised(&bad, "svd:1", NULL), SPIKED_USAGE, "dtype");
    bad = good;
    bad.rows = 0;
    FAILS(denoised(&bad, "svd:1", NULL), SPIKED_INPUT, "0 x 8 has no entries");
    bad.rows = -3;
    FAILS(denoised(&bad, "svd:1", NULL), SPIKED_USAGE, "-3 rows");
    bad.rows = INT64_MAX / 4;
    FAILS(denoised(&bad, "svd:1", NULL), SPIKED_MEMORY, "memory");
#ifndef SPIKED_SANITIZED /* whose allocators end the program */
    bad.rows = INT64_C(1) << 50;
    FAILS(denoised(&bad, "svd:1", NULL), SPIKED_MEMORY, "memory");
#endif
    bad = to;
    bad.cols = COLS - 1;
    FAILS(denoised(&good, "svd:1", &bad), SPIKED_USAGE, "it receives 12 x 8");
    bad = to;
    bad.row_stride = 0;
    FAILS(denoised(&good, "svd:1", &bad), SPIKED_USAGE, "overlap");
    data[COLS + 2] = zero / zero;
    FAILS(denoised(&good, "svd:1", NULL), SPIKED_INPUT, "1 NaN or infinite entry (first at row 1, column 2");
    data[COLS + 3] = 1.0 / zero;
    FAILS(denoised(&good, "svd:1", NULL), SPIKED_INPUT, "2 NaN or infinite entries");
    fill_spiked(data, ROWS, COLS, 4.0, 5);
}

static void estimates(void) {
    const spiked_matrix good = in_rows(data, ROWS, COLS);
    static const double rising[] = {1.0, 2.0}, negative[] = {1.0, -2.0};
    spiked_estimate small = {0};
    spiked_covariance noise = {0};
    const char* const known = "not used by eoptshrink";
    char note[4] = "abc";
    small.capacity = COLS - 1;
    FAILS(denoised(&good, NULL, NULL), SPIKED_USAGE, "method is NULL");
    FAILS(denoised(&good, "", NULL), SPIKED_USAGE, "unknown");
    FAILS(denoised(&good, "eoptshrnk", NULL), SPIKED_USAGE, "did you mean \"eoptshrink\"");
    FAILS(denoised(&good, "svd:9", NULL), SPIKED_USAGE, "svd:9");
    FAILS(denoised(&good, "eoptshrink+tq-mse", NULL), SPIKED_USAGE, "quantize");
    FAILS(spiked_denoise(&good, "svd:1", "max", NULL, NULL, 0, NULL, NULL), SPIKED_USAGE, "loss");
    FAILS(spiked_denoise(&good, "svd:1", NULL, NULL, NULL, 0, NULL, &small), SPIKED_TOO_SMALL, "room for 7");
    CHECK(small.values == COLS);
    noise.spec = "ar1:0.5";
    FAILS(spiked_denoise(&good, "eoptshrink", NULL, &noise, NULL, 0, NULL, NULL), SPIKED_USAGE, known);
    noise.matrix = &good;
    FAILS(spiked_denoise(&good, "whiten+gd-shrink", NULL, &noise, NULL, 0, NULL, NULL), SPIKED_USAGE, "contradict");
    noise.spec = NULL;
    FAILS(spiked_denoise(&good, "whiten+gd-shrink", NULL, &noise, NULL, 0, NULL, NULL), SPIKED_USAGE, "12 x 8");
    noise.matrix = NULL;
    noise.spec = "no-such-file.npy";
    FAILS(spiked_denoise(&good, "whiten+gd-shrink", NULL, &noise, NULL, 0, NULL, NULL), SPIKED_INPUT, "no-such-file");
    small.capacity = COLS;
    small.note = note;
    small.note_capacity = 3;
    memset(room, 0, sizeof room);
    { /* a zero matrix has rank 0 and a note, which is cut off */
        const spiked_matrix zeros = in_rows(room, ROWS, COLS);
        CHECK_OK(spiked_denoise(&zeros, "eoptshrink", NULL, NULL, NULL, 1, NULL, &small));
        CHECK(small.rank == 0 && strlen(note) == 2 && note[3] == '\0');
    }
    FAILS(spiked_shrink(rising, 2, 2, 2, "svd:1", NULL, NULL), SPIKED_INPUT, "descending");
    FAILS(spiked_shrink(negative, 2, 2, 2, "svd:1", NULL, NULL), SPIKED_INPUT, "is -2");
    FAILS(spiked_shrink(rising, 2, 3, 4, "svd:1", NULL, NULL), SPIKED_USAGE, "a 3 x 4 matrix has 3");
    FAILS(spiked_shrink(rising, 2, 0, 4, "svd:1", NULL, NULL), SPIKED_USAGE, "rows is 0");
    FAILS(spiked_shrink(rising, 2, 2, 2, "dyson+svd:1", NULL, NULL), SPIKED_USAGE, "needs the matrix");
    FAILS(spiked_shrink(NULL, 2, 2, 2, "svd:1", NULL, NULL), SPIKED_USAGE, "singular_values is NULL");
}

static void leading_values(void) {
    const spiked_matrix good = in_rows(data, ROWS, COLS), narrow = in_rows(room, COLS, 1);
    spiked_leading found = {0};
    FAILS(spiked_leading_values(&good, 0, NULL), SPIKED_USAGE, "found is NULL");
    FAILS(spiked_leading_values(NULL, 0, &found), SPIKED_USAGE, "data is NULL");
    FAILS(spiked_leading_values(&good, 0, &found), SPIKED_USAGE,
          "wanted is 0 (a 12 x 8 matrix has 8 singular values): pass 1 to 8");
    found.wanted = INT64_MIN;
    FAILS(spiked_leading_values(&good, 0, &found), SPIKED_USAGE, "pass 1 to 8");
    found.wanted = COLS + 1;
    FAILS(spiked_leading_values(&good, 0, &found), SPIKED_USAGE, "wanted is 9");
    found.wanted = 2;
    found.right = &narrow;
    FAILS(spiked_leading_values(&good, 0, &found), SPIKED_USAGE, "right: 8 x 1 (it receives 8 x 2)");
    found.left = &narrow;
    FAILS(spiked_leading_values(&good, 0, &found), SPIKED_USAGE, "left: 8 x 1 (it receives 12 x 2)");
}

static void preparations(void) {
    const spiked_matrix good = in_rows(data, ROWS, COLS), to = in_rows(room, ROWS, COLS);
    spiked_matrix one = in_rows(data, 1, COLS), back = in_rows(room, 1, COLS);
    spiked_intervals intervals = {0};
    FAILS(spiked_prepare(&good, "column", NULL, &to, NULL, 0), SPIKED_USAGE, "did you mean \"columns\"");
    FAILS(spiked_prepare(&good, NULL, "both", &to, NULL, 0), SPIKED_USAGE, "standardize is both");
    FAILS(spiked_prepare(&good, "rows", "columns", &to, NULL, 0), SPIKED_USAGE, "undo");
    FAILS(spiked_prepare(&good, "rows", NULL, NULL, NULL, 0), SPIKED_USAGE, "prepared is NULL");
    FAILS(spiked_prepare(&good, "rows", NULL, &back, NULL, 0), SPIKED_USAGE, "it receives 12 x 8");
    FAILS(spiked_prepare(&one, "columns", NULL, &back, NULL, 0), SPIKED_INPUT, "one entry each");
    intervals.method = "guess";
    FAILS(spiked_denoise_intervals(&good, "svd:1", NULL, NULL, NULL, 0, NULL, NULL, NULL, NULL, &intervals),
          SPIKED_USAGE, "guess");
    intervals.method = NULL;
    FAILS(spiked_denoise_intervals(&good, "svd:1", NULL, NULL, NULL, 0, NULL, NULL, NULL, NULL, &intervals),
          SPIKED_TOO_SMALL, "intervals has room for 0 values");
    intervals.capacity = COLS;
    intervals.confidence = 1.0;
    FAILS(spiked_denoise_intervals(&good, "svd:1", NULL, NULL, NULL, 0, NULL, NULL, NULL, NULL, &intervals),
          SPIKED_USAGE, "confidence is 1");
    intervals.confidence = 0.0;
    CHECK_OK(spiked_denoise_intervals(&good, "svd:1", NULL, NULL, NULL, 0, NULL, NULL, NULL, NULL, &intervals));
}

static void components(void) {
    const spiked_matrix good = in_rows(data, ROWS, COLS), one = in_rows(data, 1, COLS);
    spiked_pca_options options = {0};
    spiked_components found = {0};
    FAILS(spiked_pca(&good, NULL, NULL), SPIKED_USAGE, "found is NULL");
    FAILS(spiked_pca(&good, NULL, &found), SPIKED_TOO_SMALL, "room for 0 values (12 samples of 8 features have 8)");
    CHECK(found.values == COLS);
    found.capacity = COLS;
    CHECK_OK(spiked_pca(&good, NULL, &found));
    options.center = "none";
    FAILS(spiked_pca(&one, &options, &found), SPIKED_INPUT, "1 samples of 8 features");
    options.standardize = 1;
    FAILS(spiked_pca(&good, &options, &found), SPIKED_USAGE, "centres nothing");
    options.covariance_of = 20;
    FAILS(spiked_pca(&good, &options, &found), SPIKED_USAGE, "need the samples");
    options.center = NULL;
    options.standardize = 0;
    FAILS(spiked_pca(&good, &options, &found), SPIKED_INPUT, "12 x 8");
    options.covariance_of = -1;
    FAILS(spiked_pca(&good, &options, &found), SPIKED_USAGE, "covariance_of is -1");
    options.covariance_of = 0;
    options.center = "rows";
    FAILS(spiked_pca(&good, &options, &found), SPIKED_USAGE, "center is rows");
    options.center = NULL;
    options.shrinker = "sample";
    options.loss = "stein";
    FAILS(spiked_pca(&good, &options, &found), SPIKED_USAGE, "loss has no effect");
    options.shrinker = NULL;
    options.loss = "steam";
    FAILS(spiked_pca(&good, &options, &found), SPIKED_USAGE, "steam");
    options.loss = NULL;
    options.noise = "mean";
    options.noise_level = 1.0;
    FAILS(spiked_pca(&good, &options, &found), SPIKED_USAGE, "noise has no effect");
    options.noise = NULL;
    options.noise_level = -1.0;
    FAILS(spiked_pca(&good, &options, &found), SPIKED_USAGE, "-1");
    options.noise_level = 0.0;
    options.level = 1.5;
    FAILS(spiked_pca(&good, &options, &found), SPIKED_USAGE, "level is 1.5");
}

static void laws(void) {
    const double one = 1.0, minus = -1.0, nan = (one - one) / (one - one);
    spiked_spectrum bad = {0};
    spiked_law* law = (spiked_law*)&bad;
    spiked_spike spike;
    FAILS(spiked_law_create(NULL, NULL, 0.0, &law), SPIKED_USAGE, "aspect");
    CHECK(law == NULL);
    FAILS(spiked_law_create(NULL, NULL, nan, &law), SPIKED_USAGE, "aspect");
    FAILS(spiked_law_create(NULL, NULL, 1.0, NULL), SPIKED_USAGE, "law is NULL");
    FAILS(spiked_law_create(&bad, NULL, 1.0, &law), SPIKED_USAGE, "count is 0");
    bad.spec = "ar1:2";
    FAILS(spiked_law_create(&bad, NULL, 1.0, &law), SPIKED_USAGE, "rho 2 is not possible");
    bad.spec = "file:no-such-file";
    FAILS(spiked_law_create(NULL, &bad, 1.0, &law), SPIKED_INPUT, "no-such-file");
    bad.values = &minus;
    FAILS(spiked_law_create(&bad, NULL, 1.0, &law), SPIKED_USAGE, "contradict");
    bad.spec = NULL;
    bad.count = 1;
    FAILS(spiked_law_create(&bad, NULL, 1.0, &law), SPIKED_USAGE, "-1");
    FAILS(spiked_law_create_missing(NULL, NULL, 1.0, 0.0, 0.0, &law), SPIKED_USAGE, "fraction of 0");
    FAILS(spiked_law_create_missing(NULL, NULL, 1.0, 1.1, 0.0, &law), SPIKED_USAGE, "fraction of 1.1");
    FAILS(spiked_law_create_missing(NULL, NULL, 1.0, nan, 0.0, &law), SPIKED_USAGE, "nan of entries seen");
    FAILS(spiked_law_create_missing(NULL, NULL, 1.0, 0.5, -1.0, &law), SPIKED_USAGE, "signal_square is -1");
    bad.spec = "ar1:0.5", bad.values = NULL;
    FAILS(spiked_law_create_missing(&bad, &bad, 1.0, 0.5, 0.0, &law), SPIKED_USAGE, "correlated");
    FAILS(spiked_law_bulk(NULL, NULL), SPIKED_USAGE, "law is NULL");
    spiked_law_free(NULL);
    CHECK_OK(spiked_law_create(NULL, NULL, 1.0, &law));
    FAILS(spiked_law_bulk(law, NULL), SPIKED_USAGE, "bulk is NULL");
    FAILS(spiked_law_spikes(law, &minus, 1, &spike), SPIKED_USAGE, "-1");
    FAILS(spiked_law_spikes(law, &one, 0, &spike), SPIKED_USAGE, "count is 0");
    FAILS(spiked_law_spikes(law, NULL, 1, &spike), SPIKED_USAGE, "strengths is NULL");
    FAILS(spiked_law_density(law, &nan, 1, NULL, NULL), SPIKED_USAGE, "x[0]");
    FAILS(spiked_law_curve(law, 1, NULL, NULL, NULL), SPIKED_USAGE, "count is 1");
    FAILS(spiked_law_quantiles(law, &minus, 1, &spike.outlier), SPIKED_USAGE, "probability");
    spiked_law_free(law);
}

static int made(const char* method, double bits, const char* options) {
    spiked_codec* codec = (spiked_codec*)data;
    const int status = spiked_codec_create(method, COLS, bits, options, &codec);
    CHECK((codec == NULL) == (status != SPIKED_OK));
    spiked_codec_free(codec);
    return status;
}

static int never(void* data_of_poll) {
    ++*(int*)data_of_poll;
    return 1;
}

static void streams(void) {
    static double long_rows[129 * COLS];
    const spiked_matrix good = in_rows(data, ROWS, COLS), narrow = in_rows(data, ROWS, COLS - 1);
    const spiked_matrix many = in_rows(long_rows, 129, COLS);
    spiked_codec* codec = NULL;
    spiked_stream *stream = (spiked_stream*)data, *copy = (spiked_stream*)data;
    CHECK_OK(spiked_codec_create("tq-mse", COLS, 2, NULL, &codec));
    FAILS(spiked_stream_create(codec, 0, &stream), SPIKED_USAGE, "use spiked_codec_encode");
    CHECK(stream == NULL);
    spiked_codec_free(codec);
    CHECK_OK(spiked_codec_create("causal-klt", COLS, 2, NULL, &codec));
    FAILS(spiked_stream_create(codec, -1, &stream), SPIKED_USAGE, "tokens is -1");
    FAILS(spiked_stream_create(NULL, 0, &stream), SPIKED_USAGE, "codec is NULL");
    FAILS(spiked_stream_create(codec, 0, NULL), SPIKED_USAGE, "stream is NULL");
    FAILS(spiked_stream_copy(NULL, &copy), SPIKED_USAGE, "stream is NULL");
    CHECK(copy == NULL);
    CHECK_OK(spiked_stream_create(codec, 0, &stream));
    FAILS(spiked_stream_append(NULL, &good, NULL, NULL), SPIKED_USAGE, "stream is NULL");
    FAILS(spiked_stream_append(stream, NULL, NULL, NULL), SPIKED_USAGE, "rows is NULL");
    FAILS(spiked_stream_append(stream, &narrow, NULL, NULL), SPIKED_USAGE, "rows has 7 columns");
    FAILS(spiked_stream_append(stream, &many, NULL, NULL), SPIKED_USAGE, "pass 1 to 128");
    FAILS(spiked_stream_append(stream, &good, &narrow, NULL), SPIKED_USAGE, "decoded");
    CHECK_OK(spiked_stream_append(stream, &good, NULL, NULL));
    FAILS(spiked_stream_append(stream, &good, NULL, NULL), SPIKED_USAGE, "begin another stream");
    spiked_stream_free(stream);
    spiked_stream_free(NULL);
    spiked_codec_free(codec);
}

static void codecs(void) {
    const spiked_matrix good = in_rows(data, ROWS, COLS), narrow = in_rows(data, ROWS, COLS - 1);
    const spiked_codec* list[2] = {NULL, NULL};
    spiked_codec* codec = NULL;
    spiked_blocks blocks = {0}, back = {0};
    uint8_t bytes[1024];
    size_t length = 0;
    int polls = 0;
    FAILS(made("tq-mes", 2, NULL), SPIKED_USAGE, "did you mean \"tq-mse\"");
    FAILS(made("eoptshrink", 2, NULL), SPIKED_USAGE, "eoptshrink");
    FAILS(made("unrope+tq-mse", 2, NULL), SPIKED_USAGE, "unrope");
    FAILS(made("tq-mse", 2.5, NULL), SPIKED_USAGE, "2.5");
    FAILS(made("tq-mse", 1e300, NULL), SPIKED_USAGE, "bits");
    FAILS(made("tq-mse", 2, "group=32"), SPIKED_USAGE, "group has no effect on tq-mse");
    FAILS(made("tq-mse", 2, "open-loop=true"), SPIKED_USAGE, "it applies to methods ESTIMATOR+QUANTIZER");
    FAILS(made("tq-mse", 2, "axis=key"), SPIKED_USAGE, "axis has no effect on tq-mse");
    FAILS(made("mean+tq-mse", 2, NULL), SPIKED_USAGE, "write axis=key, or axis=value");
    FAILS(made("tq-mse", 2, "norm"), SPIKED_USAGE, "norm=VALUE");
    FAILS(made("tq-mse", 2, "norms=fp16"), SPIKED_USAGE, "did you mean \"norm\"");
    FAILS(made("tq-mse", 2, "norm=fp17"), SPIKED_USAGE, "fp17");
    FAILS(made("svd:1+tq-mse", 2, "factor_bits=9"), SPIKED_USAGE, "9");
    FAILS(made("svd:1+tq-mse", 2, "open-loop=yes"), SPIKED_USAGE, "open-loop=true");
    FAILS(made("tq-mse", 2, "seed=green"), SPIKED_USAGE, "green");
    FAILS(made("causal-klt", 9, NULL), SPIKED_USAGE, "0.25 to 8");
    FAILS(made("causal-klt", 2, "seed=7"), SPIKED_USAGE, "seed has no effect on causal-klt");
    FAILS(made("causal-klt", 2, "keys=x"), SPIKED_USAGE, "keys=x is no whole number");
    FAILS(made("causal-klt:heads=0", 2, "keys=3,values=4"), SPIKED_USAGE, "3 heads of keys and 4 of values");
    FAILS(made("causal-klt-joint", 2, NULL), SPIKED_USAGE, "write keys=1 values=1");
    FAILS(made("causal-klt:basis=no", 2, NULL), SPIKED_USAGE, "basis");
    FAILS(made("unrope+causal-klt", 2, NULL), SPIKED_USAGE, "unrope");
    FAILS(made("kvtc", 2, NULL), SPIKED_USAGE, "codes whole sequences");
    FAILS(spiked_codec_create("causal-klt", INT64_C(1) << 60, 2, NULL, &codec), SPIKED_USAGE, "at most 2048 columns");
    FAILS(made("tq-mse", 2, "index=-1"), SPIKED_USAGE, "index=-1");
    FAILS(made("tq-mse", 2, "norm=fp16,norm=fp32"), SPIKED_USAGE, "norm is given twice");
    FAILS(made("svd:1+tq-mse", 2, "factor_bits=5 factor-bits=5"), SPIKED_USAGE, "factor-bits is given twice");
    CHECK_OK(
        made("svd:1+tq-mse", 2, "factor_bits=5, factor-codebook=lloyd open_loop=true,seed=0x1 index=3 residual=0"));
    FAILS(spiked_codec_create("tq-mse", 0, 2, NULL, &codec), SPIKED_USAGE, "dim is 0 (too small): pass at least 1");
    FAILS(spiked_codec_create("tq-mse", INT64_C(1) << 60, 2, NULL, &codec), SPIKED_INPUT, "at most 4096");
    FAILS(spiked_codec_create("tq-mse", 8, 2, NULL, NULL), SPIKED_USAGE, "codec is NULL");

    CHECK_OK(spiked_codec_create("tq-mse", COLS, 2, NULL, &codec));
    FAILS(spiked_codec_encode(codec, &narrow, bytes, sizeof bytes, &length, NULL), SPIKED_USAGE, "7 columns");
    FAILS(spiked_codec_encode(codec, &good, NULL, 0, &length, NULL), SPIKED_TOO_SMALL, "bytes has room for 0");
    CHECK(length == ROWS * 4); /* a row is a norm of 16 bits and 8 indices of 2 */
    FAILS(spiked_codec_encode(codec, &good, NULL, 1024, &length, NULL), SPIKED_USAGE, "bytes is NULL");
    CHECK_OK(spiked_codec_encode(codec, &good, bytes, sizeof bytes, &length, NULL));
    FAILS(spiked_codec_decode(codec, bytes, length - 1, &good), SPIKED_INPUT, "");
    FAILS(spiked_codec_decode(codec, bytes, length + 1, &good), SPIKED_INPUT, "");
    FAILS(spiked_codec_decode(codec, NULL, length, &good), SPIKED_USAGE, "bytes is NULL");
    FAILS(spiked_codec_decode(NULL, bytes, length, &good), SPIKED_USAGE, "codec is NULL");

    blocks.first = good;
    FAILS(spiked_roundtrip(list, 1, &blocks, 1, NULL, NULL, NULL, NULL), SPIKED_USAGE, "codecs is NULL");
    list[0] = codec;
    FAILS(spiked_roundtrip(list, 1, &blocks, 1, NULL, NULL, NULL, NULL), SPIKED_USAGE, "count is 0");
    blocks.count = 1;
    FAILS(spiked_roundtrip(list, 1, &blocks, -1, NULL, NULL, NULL, NULL), SPIKED_USAGE, "threads is -1");
    FAILS(spiked_roundtrip(list, 1, &blocks, 5000, NULL, NULL, NULL, NULL), SPIKED_USAGE, "5000 threads");
    back.first = in_rows(room, ROWS, COLS);
    back.count = 2;
    FAILS(spiked_roundtrip(list, 1, &blocks, 1, NULL, NULL, &back, NULL), SPIKED_USAGE, "1 codecs times 1 blocks");
    FAILS(spiked_roundtrip(list, 1, &blocks, 1, never, &polls, NULL, NULL), SPIKED_STOPPED, "stopped");
    CHECK(polls == 1);
    blocks.first.data = NULL;
    blocks.count = 3;
    blocks.block_stride = ROWS * COLS;
    FAILS(spiked_roundtrip(list, 1, &blocks, 2, NULL, NULL, NULL, NULL), SPIKED_USAGE, "first.data is NULL");
    blocks.first.data = data;
    blocks.count = 1;
    data[0] = 1e308 * 10;
    FAILS(spiked_roundtrip(list, 1, &blocks, 1, NULL, NULL, NULL, NULL), SPIKED_INPUT, "block 0: ");
    fill_spiked(data, ROWS, COLS, 4.0, 5);
    spiked_codec_free(codec);
}

static void lists(void) {
    size_t length = 0;
    char text[16], *whole;
    FAILS(spiked_list("methods", NULL, 0, &length), SPIKED_USAGE, "one of: estimators");
    FAILS(spiked_list(NULL, NULL, 0, &length), SPIKED_USAGE, "topic is NULL");
    FAILS(spiked_list("spectra", text, sizeof text, &length), SPIKED_TOO_SMALL, "room for 16 bytes");
    whole = malloc(length + 1);
    CHECK_OK(spiked_list("spectra", whole, length + 1, &length));
    CHECK(strlen(whole) == length && *whole == '[' && strstr(whole, "\"name\":\"ar1\"") != NULL);
    free(whole);
}

void misuse(const char* command) {
    (void)command;
    fill_spiked(data, ROWS, COLS, 4.0, 5);
    matrices();
    estimates();
    leading_values();
    preparations();
    components();
    laws();
    codecs();
    streams();
    lists();
}
