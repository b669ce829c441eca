/* Random arguments within memory that belongs to the caller: every call returns a status, and none is a defect. With
 * sanitizers, no byte outside the arguments is touched. */
#include <string.h>

#include "check.h"

static const char* const words[] = {"",
                                    "eoptshrink",
                                    "svd:1",
                                    "svd:3",
                                    "gd-shrink",
                                    "gd-hard:sigma=1",
                                    "screenot:4",
                                    "tw-test",
                                    "whiten+",
                                    "dyson+",
                                    "unrope+",
                                    "optshrink:2",
                                    "eoptshrink:author",
                                    "eoptshrink:edgefit",
                                    "tq-mse",
                                    "tq-prod",
                                    "kivi",
                                    "eden",
                                    "qjl",
                                    "kvquant",
                                    "rabitq",
                                    "polarquant",
                                    "gear",
                                    "svdq",
                                    "ecsq",
                                    "tcq",
                                    "rht-uniform",
                                    "kivi-hf",
                                    "+",
                                    ":",
                                    "=",
                                    "rank=1",
                                    "\xff",
                                    "margin=0",
                                    "mxfp4",
                                    "eoptshrinkq-mse",
                                    "pq",
                                    "eden-mmse",
                                    "eden-norm",
                                    "svd:rd+",
                                    "svd:pa",
                                    "svd:bcv",
                                    "svd:ddpa",
                                    "eoptshrink:rank=pa",
                                    "tw-test:null=signflip"};
static const char* const settings[] = {
    "",         "norm=fp64", "rotation=identity", "rotation=rht2", "codebook=normal",
    "group=4",  "axis=key",  "residual=2",        "factor-bits=3", "factor-codebook=fp16",
    "seed=0x1", "index=5",   "open-loop=true",    "group=0",       "norm=log8",
    "=",        "seed=",     "residual=99"};
static const char* const specs[] = {"identity",      "ar1:0.5",        "ar1:-0.9:7",  "two-atom:1,5,0.3",
                                    "uniform:0,1",   "power:1:9",      "wishart:0.5", "ar1",
                                    "exponential:2", "toeplitz:0.3:5", "uniform:2,1", "file:/dev/null"};
#define ANY(list) (list)[below(sizeof(list) / sizeof *(list))]

enum { SIDE = 9, SPACE = 4 * SIDE * SIDE };

/* Whether calls are asked to stop. */
static int may_stop;

/* Statuses that a call may have. A defect has another one. */
static int checked(int status, const char* what) {
    if (status != SPIKED_OK && status != SPIKED_USAGE && status != SPIKED_INPUT && status != SPIKED_TOO_SMALL &&
        status != SPIKED_MEMORY && !(may_stop && status == SPIKED_STOPPED)) {
        ++failures;
        printf("%s: status %d: %s\n", what, status, spiked_last_error());
    }
    return status;
}

static void any_name(char* to) {
    int parts = 1 + (int)below(3);
    *to = '\0';
    while (parts-- > 0) {
        strcat(to, ANY(words));
        if (parts > 0 && below(2)) strcat(to, "+");
    }
}

/* The smallest, the largest and other impossible numbers of lines: none makes the library read or allocate. */
static int64_t no_size(void) {
    static const int64_t sizes[] = {INT64_MIN, INT64_MIN + 1, -1, 0, INT64_MAX - 1, INT64_MAX};
    return sizes[below(sizeof sizes / sizeof *sizes)];
}

static double any_number(void) {
    const double infinity = 1e300 * 1e300;
    switch (below(16)) {
        case 0:
            return 0.0;
        case 1:
            return -1e300;
        case 2:
            return 1e-300;
        case 3:
            return 1e-320;
        case 4:
            return below(2) ? infinity : -infinity;
        case 5:
            return 1e308;
        default:
            return (double)below(2001) / 1000.0 - 1.0;
    }
}

/* A matrix of any shape, type and strides in `space`, which holds SPACE doubles. */
static spiked_matrix any_matrix(double* space) {
    spiked_matrix matrix;
    const int transposed = below(2), backward = below(3) == 0, step = 1 + (int)below(2);
    matrix.dtype = below(20) == 0 ? (int64_t)below(5) : below(3) ? SPIKED_F64 : SPIKED_F32;
    matrix.rows = (int64_t)below(SIDE + 1);
    matrix.cols = (int64_t)below(SIDE + 1);
    matrix.row_stride = transposed ? step : step * matrix.cols;
    matrix.col_stride = transposed ? step * matrix.rows : step;
    matrix.data = space;
    if (backward && matrix.rows > 0 && matrix.cols > 0) {
        const int64_t last = (matrix.rows - 1) * matrix.row_stride + (matrix.cols - 1) * matrix.col_stride;
        matrix.data = (char*)space + last * (matrix.dtype == SPIKED_F32 ? 4 : 8);
        matrix.row_stride = -matrix.row_stride;
        matrix.col_stride = -matrix.col_stride;
    }
    if (below(50) == 0) matrix.data = NULL;
    if (below(60) == 0) matrix.rows = no_size();
    if (below(60) == 0) matrix.cols = no_size();
    return matrix;
}

static void any_entries(double* space) {
    const double scale = any_number();
    int i;
    for (i = 0; i < SPACE; ++i) space[i] = below(8) ? any_number() : scale * any_number();
    if (below(20) == 0) memset(space + below(SPACE), 255, sizeof *space); /* NaN */
}

static void denoise_anything(void) {
    double space[SPACE], out[SPACE], values[SIDE], shrunk[SIDE];
    char name[256], note[40];
    spiked_estimate estimate = {0};
    spiked_covariance noise = {0};
    spiked_matrix from, to, known;
    any_entries(space);
    any_name(name);
    from = any_matrix(space);
    to = any_matrix(out);
    if (below(4)) to.rows = from.rows, to.cols = from.cols, to.row_stride = 1, to.col_stride = SIDE, to.data = out;
    known = any_matrix(space);
    if (below(3) == 0) noise.spec = ANY(specs);
    if (below(8) == 0) noise.matrix = &known;
    estimate.capacity = below(4) ? SIDE : (int64_t)below(SIDE);
    estimate.singular_values = values;
    if (below(2)) estimate.shrunk = shrunk;
    if (below(2)) estimate.note = note;
    estimate.note_capacity = (int64_t)below(sizeof note + 1) - (below(9) == 0);
    checked(spiked_denoise(&from, name, below(2) ? NULL : "nuclear", below(3) ? NULL : &noise, below(3) ? NULL : &noise,
                           (int)below(2), below(2) ? NULL : &to, below(4) ? &estimate : NULL),
            name);
    checked(spiked_shrink(space, (int64_t)below(SIDE), (int64_t)below(SIDE), (int64_t)below(SIDE), name, NULL, NULL),
            name);
}

static void code_anything(void) {
    double space[SPACE], out[SPACE];
    uint8_t bytes[1 << 15];
    char name[256], options[128];
    const double bits = below(3) ? (double)(1 + below(5)) : any_number() * 9;
    spiked_codec* codec = NULL;
    spiked_stream *stream = NULL, *copy = NULL;
    double stored = 0.0;
    spiked_matrix from, to;
    size_t length = 0;
    int64_t dim;
    any_entries(space);
    any_name(name);
    if (below(6) == 0) strcpy(name, "causal-klt"); /* the one with streams */
    sprintf(options, "%s%s%s", ANY(settings), below(2) ? " " : ",", below(3) ? "" : ANY(settings));
    from = any_matrix(space);
    dim = below(8) ? from.cols : (int64_t)below(SIDE);
    if (checked(spiked_codec_create(name, dim, bits, below(2) ? NULL : options, &codec), name) == SPIKED_OK) {
        const size_t room = below(4) ? sizeof bytes : below(64);
        const int status = checked(spiked_codec_encode(codec, &from, bytes, room, &length, NULL), name);
        to = from;
        to.data = out;
        to.dtype = SPIKED_F64;
        to.row_stride = 1;
        to.col_stride = SIDE;
        if (status != SPIKED_OK) {
            size_t i;
            length = below(300);
            for (i = 0; i < length; ++i) bytes[i] = (uint8_t)below(256);
        } else if (below(4)) {
            bytes[below(length + 1)] ^= (uint8_t)(1u << below(8));
            length -= below(3) ? 0 : below(length + 1);
        }
        checked(spiked_codec_decode(codec, bytes, length, &to), name);
        if (checked(spiked_stream_create(codec, (int64_t)below(3) * 100, &stream), name) == SPIKED_OK) {
            checked(spiked_stream_append(stream, &from, below(2) ? &to : NULL, below(2) ? &stored : NULL), name);
            checked(spiked_stream_copy(stream, &copy), name);
            spiked_stream_free(stream);
            checked(spiked_stream_append(copy, &from, below(2) ? &to : NULL, NULL), name);
            spiked_stream_free(copy);
        }
    }
    spiked_codec_free(codec);
}

/* Intervals with any capacities; the arrays hold SIDE entries. */
static spiked_intervals any_intervals(double* ends, char* reasons) {
    spiked_intervals intervals = {0};
    intervals.method = below(4) ? (below(9) ? NULL : "bootstrap") : ANY(words);
    intervals.confidence = below(2) ? 0.0 : any_number();
    intervals.capacity = below(4) ? SIDE : below(9) ? (int64_t)below(SIDE) : -1;
    if (below(2)) intervals.strength = ends;
    if (below(2)) intervals.overlap_left = intervals.overlap_right = ends;
    if (below(2)) intervals.reasons = reasons;
    intervals.reason_capacity = (int64_t)below(8 + 1) - (below(9) == 0);
    return intervals;
}

static void prepare_anything(void) {
    static const char* const lines[] = {NULL, "rows", "columns", "both", "none", "all", ""};
    static const char* const shrinkers[] = {NULL, "optimal", "debiased", "sample", "least"};
    static const char* const losses[] = {NULL, "stein", "frobenius:covariance", "operator", "x"};
    double space[SPACE], out[SPACE], numbers[6][SIDE], ends[2 * SIDE];
    char notes[40], reasons[8 * SIDE], name[256];
    spiked_pca_options options = {0};
    spiked_components found = {0};
    spiked_intervals intervals;
    spiked_matrix from, to;
    any_entries(space);
    any_name(name);
    from = any_matrix(space);
    to = any_matrix(out);
    if (below(4)) to.rows = from.rows, to.cols = from.cols, to.row_stride = 1, to.col_stride = SIDE, to.data = out;
    checked(
        spiked_prepare(&from, ANY(lines), ANY(lines), &to, below(2) ? notes : NULL, (int64_t)below(sizeof notes + 1)),
        "prepare");
    options.center = ANY(lines);
    options.standardize = (int64_t)below(2);
    options.covariance_of = below(4) ? 0 : (int64_t)below(2 * SIDE) - 1;
    options.shrinker = ANY(shrinkers);
    options.loss = ANY(losses);
    options.noise = below(2) ? NULL : "median";
    options.noise_level = below(3) ? 0.0 : any_number();
    options.level = below(3) ? 0.0 : any_number();
    found.capacity = below(4) ? SIDE : (int64_t)below(SIDE);
    found.eigenvalues = numbers[0];
    if (below(2)) found.debiased = numbers[1], found.debiased_errors = numbers[2];
    if (below(2)) found.cosines = numbers[3], found.cosine_errors = numbers[4];
    if (below(2)) found.shrunk = numbers[5];
    if (below(2)) found.notes = notes;
    found.notes_capacity = (int64_t)below(sizeof notes + 1) - (below(9) == 0);
    checked(spiked_pca(&from, below(4) ? &options : NULL, &found), "pca");
    intervals = any_intervals(ends, reasons);
    checked(spiked_denoise_intervals(&from, below(2) ? ANY(words) : name, NULL, NULL, NULL, (int)below(2), ANY(lines),
                                     ANY(lines), NULL, NULL, &intervals),
            name);
}

/* The functions that take missing entries, and values alone. */
static void miss_anything(void) {
    static const char* const kinds[] = {NULL, "none", "uniform", "rows", "columns", "both", "some", ""};
    static const char* const lines[] = {NULL, NULL, "rows", "columns", "both", "none", "all"};
    double space[SPACE], out[SPACE], other[SPACE], values[SIDE], ends[2 * SIDE], share;
    char notes[40], reasons[8 * SIDE], name[256];
    spiked_estimate estimate = {0};
    spiked_pca_options options = {0};
    spiked_leading leading = {0};
    spiked_components found = {0};
    spiked_intervals intervals;
    spiked_matrix from, to, seen;
    int i;
    any_entries(space);
    for (i = 0; i < SPACE; ++i)
        if (below(5) == 0) memset(space + i, 255, sizeof *space); /* NaN */
    any_name(name);
    from = any_matrix(space);
    to = any_matrix(out);
    seen = any_matrix(other);
    if (below(4)) to.rows = from.rows, to.cols = from.cols, to.row_stride = 1, to.col_stride = SIDE, to.data = out;
    if (below(4)) seen = to, seen.data = other;
    intervals = any_intervals(ends, reasons);
    estimate.capacity = below(4) ? SIDE : below(9) ? (int64_t)below(SIDE) : INT64_MIN;
    estimate.singular_values = values;
    checked(spiked_denoise_missing(&from, ANY(kinds), below(2) ? ANY(words) : name, NULL, NULL, NULL, (int)below(2),
                                   ANY(lines), ANY(lines), below(2) ? NULL : &to, below(2) ? NULL : &estimate,
                                   below(2) ? NULL : &intervals, below(2) ? NULL : &share),
            name);
    checked(spiked_prepare_missing(&from, ANY(kinds), ANY(lines), ANY(lines), below(3) ? &to : NULL,
                                   below(3) ? &seen : NULL, below(2) ? NULL : &share, below(2) ? notes : NULL,
                                   below(9) ? (int64_t)below(sizeof notes + 1) : INT64_MIN),
            "prepare with missing entries");
    options.center = ANY(lines);
    options.covariance_of = below(9) ? 0 : no_size();
    options.noise_level = below(3) ? 0.0 : any_number();
    found.capacity = below(4) ? SIDE : (int64_t)below(SIDE);
    found.eigenvalues = values;
    found.notes = notes;
    found.notes_capacity = sizeof notes;
    checked(spiked_pca_missing(&from, ANY(kinds), below(4) ? &options : NULL, &found, below(2) ? NULL : &share),
            "pca with missing entries");
    any_entries(space);
    leading.wanted = below(9) ? (int64_t)below(SIDE) : no_size();
    leading.singular_values = values;
    if (below(2)) leading.bounds = ends;
    if (below(2)) leading.left = &to, leading.right = &seen;
    checked(spiked_leading_values(&from, (int)below(2), &leading), "leading values");
    checked(spiked_denoise_notes(below(2) ? NULL : &from, space, below(9) ? (int64_t)below(SIDE) : no_size(),
                                 below(3) ? 1.0 : any_number(), below(2) ? notes : NULL,
                                 below(9) ? (int64_t)below(sizeof notes + 1) : INT64_MIN),
            "notes on a spectrum");
    checked(spiked_shrink_intervals(space, (int64_t)below(SIDE), below(9) ? (int64_t)below(SIDE) : no_size(),
                                    below(9) ? (int64_t)below(SIDE) : no_size(), below(2) ? ANY(words) : name, NULL,
                                    below(2) ? NULL : &estimate, below(2) ? NULL : &intervals),
            name);
}

/* Stops at the second question. */
static int soon(void* count) { return ++*(int*)count >= 2; }

static void roundtrip_anything(void) {
    enum { BLOCKS = 3 };
    double space[SPACE], out[2 * BLOCKS * SIDE * SIDE];
    spiked_code codes[2 * BLOCKS];
    const spiked_codec* codecs[2] = {NULL, NULL};
    spiked_blocks blocks = {0}, decoded = {0};
    int i, polls = 0;
    any_entries(space);
    blocks.first = any_matrix(space);
    blocks.first.rows = below(20) ? (int64_t)below(SIDE + 1) : no_size();
    blocks.first.row_stride = blocks.first.col_stride = 1; /* entries of an input may overlap */
    blocks.count = below(20) ? (int64_t)below(BLOCKS + 1) : -1 - (int64_t)below(2) * (INT64_MAX / 2);
    blocks.block_stride = (int64_t)below(SIDE);
    if (blocks.first.data != NULL) blocks.first.data = space;
    for (i = 0; i < 2; ++i) {
        char name[256];
        spiked_codec* codec = NULL;
        if (below(2))
            any_name(name);
        else
            strcpy(name, below(2) ? "svd:1+tq-mse" : "kivi");
        if (checked(spiked_codec_create(name, below(9) ? blocks.first.cols : SIDE, 2, NULL, &codec), name) == SPIKED_OK)
            codecs[i] = codec;
    }
    decoded.first = in_rows(out, blocks.first.rows, blocks.first.cols);
    decoded.count = below(9) ? 2 * blocks.count / (codecs[1] == NULL ? 2 : 1) : no_size();
    decoded.block_stride = below(9) ? SIDE * SIDE : (int64_t)below(SIDE * SIDE);
    may_stop = 1;
    checked(spiked_roundtrip(below(20) ? codecs : NULL,
                             below(9)   ? (codecs[1] == NULL ? 1 : 2)
                             : below(2) ? -1
                                        : 0,
                             &blocks, below(20) ? (int64_t)below(3) : no_size(), below(2) ? soon : NULL, &polls,
                             below(2) ? &decoded : NULL, below(2) ? codes : NULL),
            "roundtrip");
    may_stop = 0;
    for (i = 0; i < 2; ++i) spiked_codec_free((spiked_codec*)codecs[i]);
}

static void set_anything(void) {
    static const char* const topics[] = {"estimators", "transforms", "quantizers", "caches",
                                         "spectra",    "pca-losses", "",           "x"};
    static int stop;
    char text[1 << 14];
    size_t length = 0;
    checked(spiked_use_threads(below(2) ? (int64_t)below(3) : no_size()), "threads");
    stop = (int)below(2);
    may_stop = 1;
    spiked_stop_when(&stop);
    denoise_anything();
    spiked_stop_when(NULL);
    may_stop = 0;
    CHECK_OK(spiked_use_threads(1));
    checked(spiked_list(below(9) ? ANY(topics) : NULL, below(4) ? text : NULL, below(2) ? sizeof text : below(9),
                        below(9) ? &length : NULL),
            "list");
}

static void ask_anything(void) {
    double numbers[6], out[6];
    spiked_spectrum row = {0}, col = {0};
    spiked_law* law = NULL;
    spiked_spike spikes[6];
    spiked_bulk bulk;
    int i;
    for (i = 0; i < 6; ++i) {
        numbers[i] = any_number() * (double)(1 + below(10));
    }
    row.spec = ANY(specs);
    if (below(2))
        col.values = numbers, col.weights = below(2) ? NULL : numbers + 3, col.count = (int64_t)below(4);
    else
        col.spec = ANY(specs);
    if (checked(spiked_law_create(&row, below(5) ? &col : NULL, any_number() * 3 + 1, &law), "law") == SPIKED_OK) {
        checked(spiked_law_bulk(law, &bulk), "bulk");
        checked(spiked_law_spikes(law, numbers, (int64_t)below(7), spikes), "spikes");
        checked(spiked_law_density(law, numbers, (int64_t)below(7), out, below(2) ? NULL : out), "density");
        checked(spiked_law_curve(law, (int64_t)below(7), out, NULL, NULL), "curve");
        checked(spiked_law_quantiles(law, numbers, (int64_t)below(7), out), "quantiles");
    }
    spiked_law_free(law);
}

void random_arguments(const char* command) {
    int i;
    (void)command;
    for (i = 0; i < 3000 && failures < 10; ++i) {
        denoise_anything();
        code_anything();
        prepare_anything();
        miss_anything();
        roundtrip_anything();
        set_anything();
        if (i % 10 == 0) ask_anything();
    }
}
