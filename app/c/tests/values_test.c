/* Values worked by hand, and memory layouts. */
#include <string.h>

#include "check.h"

static int near(double found, double expected) {
    const double difference = found > expected ? found - expected : expected - found;
    return difference <= 1e-12 * (expected < 0 ? -expected : expected);
}

/* White noise of aspect 1: edge 4, threshold 1. At strength x = 2 the outlier is (1 + x^2)^2 / x^2 = 6.25, both
 * overlaps are 1 - 1 / x^2 = 0.75, and the shrunk values are 0.75 x (Frobenius) and x (operator norm). */
static void white_law(void) {
    static const double strengths[] = {2.0, 0.5}, at[] = {1.0, 5.0}, half = 1.0;
    spiked_spectrum one = {0};
    spiked_law* law = NULL;
    spiked_bulk bulk;
    spiked_spike spikes[2];
    double density[2], cdf[2], top;
    one.values = &half;
    one.count = 1;
    CHECK_OK(spiked_law_create(&one, NULL, 1.0, &law));
    CHECK_OK(spiked_law_bulk(law, &bulk));
    CHECK(near(bulk.bulk_edge, 4.0));
    CHECK(near(bulk.detection_threshold, 1.0));
    CHECK(bulk.lower_edge == 0.0 && bulk.mass_at_zero == 0.0 && near(bulk.mean, 1.0) && bulk.regular_edge == 1);
    CHECK_OK(spiked_law_spikes(law, strengths, 2, spikes));
    CHECK(spikes[0].detectable == 1 && near(spikes[0].outlier, 6.25));
    CHECK(near(spikes[0].overlap_left, 0.75) && near(spikes[0].overlap_right, 0.75));
    CHECK(near(spikes[0].shrunk_frobenius, 1.5) && near(spikes[0].shrunk_operator, 2.0));
    CHECK(spikes[1].detectable == 0 && near(spikes[1].outlier, 4.0) && spikes[1].overlap_left == 0.0);
    /* Marchenko-Pastur: sqrt(x (4 - x)) / (2 pi x). */
    CHECK_OK(spiked_law_density(law, at, 2, density, cdf));
    CHECK(near(density[0], 1.7320508075688772 / 6.283185307179586) && density[1] == 0.0 && cdf[1] == 1.0);
    CHECK_OK(spiked_law_quantiles(law, &half, 1, &top));
    CHECK(near(top, 4.0));
    spiked_law_free(law);
}

/* The optimal shrinkage of Gavish and Donoho for a square matrix of unit noise: sqrt(y^2 - 4). */
static void shrinkage(void) {
    static const double values[] = {3.0, 1.5, 1.0, 0.5};
    double shrunk[4], strengths[4];
    char note[8];
    spiked_estimate estimate = {0};
    estimate.capacity = 4;
    estimate.shrunk = shrunk;
    estimate.strengths = strengths;
    estimate.note = note;
    estimate.note_capacity = sizeof note;
    CHECK_OK(spiked_shrink(values, 4, 4, 4, "gd-shrink:sigma=0.5", NULL, &estimate));
    CHECK(estimate.values == 4 && estimate.rank == 1);
    CHECK(near(shrunk[0], 2.23606797749979));     /* sqrt(3^2 - 2^2): noise of norm 2 = sigma sqrt(4) 2 */
    CHECK(near(strengths[0], 2.618033988749895)); /* (3 + sqrt 5) / 2 */
    CHECK(near(estimate.bulk_edge, 4.0));
    CHECK_OK(spiked_shrink(values, 4, 4, 4, "gd-shrink:sigma=0.5", "operator", &estimate));
    CHECK(near(shrunk[0], strengths[0]));
    CHECK_OK(spiked_shrink(values, 4, 4, 4, "svd:2", NULL, &estimate));
    CHECK(estimate.rank == 2 && shrunk[1] == 1.5 && strengths[0] != strengths[0]); /* NaN */
    CHECK(estimate.bulk_edge != estimate.bulk_edge);
}

/* diag(3, -7, 0, 2) beside a column of zeros: singular values 7, 3, 2, and 0 where its row is kept. */
static void leading(void) {
    double data[4][5] = {{0}}, values[4], bounds[4], left[4][4], right[5][4];
    const spiked_matrix from = in_rows(data[0], 4, 5), u = in_rows(left[0], 4, 4), v = in_rows(right[0], 5, 4);
    spiked_leading found = {0};
    int i, j;
    data[0][0] = 3;
    data[1][1] = -7;
    data[3][4] = 2;
    found.wanted = 4;
    found.singular_values = values;
    found.bounds = bounds;
    found.left = &u;
    found.right = &v;
    CHECK_OK(spiked_leading_values(&from, 0, &found));
    CHECK(found.values == 3 && found.krylov_dimension == 0);
    CHECK(near(values[0], 7) && near(values[1], 3) && near(values[2], 2));
    for (i = 0; i < 3; ++i) CHECK(bounds[i] > 0 && bounds[i] < 1e-13);
    for (i = 0; i < 5; ++i) CHECK(right[i][3] == 0 && (i == 4 || left[i][3] == 0));
    for (i = 0; i < 4; ++i)
        for (j = 0; j < 5; ++j) {
            double sum = 0;
            int k;
            for (k = 0; k < 3; ++k) sum += left[i][k] * values[k] * right[j][k];
            CHECK(near(1 + sum, 1 + data[i][j]));
        }
    CHECK_OK(spiked_leading_values(&from, 1, &found));
    CHECK(found.values == 4 && values[3] < 1e-14);
    data[0][0] = data[1][1] = data[3][4] = 0;
    found.left = found.right = NULL;
    CHECK_OK(spiked_leading_values(&from, 0, &found));
    CHECK(found.values == 0);
}

/* Columns (1, 3), (2, 6) and (5, 5): means 2, 4, 5, standard deviations sqrt 2 and sqrt 8. */
static void preparation(void) {
    double data[2][3] = {{1, 2, 5}, {3, 6, 5}}, ready[2][3];
    char notes[64];
    spiked_matrix from = in_rows(data[0], 2, 3), to = in_rows(ready[0], 2, 3);
    CHECK_OK(spiked_prepare(&from, "columns", NULL, &to, notes, sizeof notes));
    CHECK(ready[0][0] == -1 && ready[0][1] == -2 && ready[1][0] == 1 && ready[1][1] == 2);
    CHECK(ready[0][2] == 0 && ready[1][2] == 0 && strstr(notes, "1 constant column became zero") != NULL);
    CHECK_OK(spiked_prepare(&from, "none", NULL, &from, notes, sizeof notes));
    CHECK(data[1][1] == 6 && *notes == '\0');
    from.cols = to.cols = 2;
    CHECK_OK(spiked_prepare(&from, NULL, "columns", &to, NULL, 0));
    CHECK(near(ready[0][0], -0.7071067811865475) && near(ready[0][1], -0.7071067811865475));
    CHECK(near(ready[1][0], 0.7071067811865475) && near(ready[1][1], 0.7071067811865475));
}

/* 5 of 6 entries are seen: they are multiplied by 6/5, by columns the first one by 2. */
static void missing_entries(void) {
    const double nan = strtod("nan", NULL);
    double data[2][3] = {{nan, 2, 3}, {4, 5, 6}}, ready[2][3], seen[2][3], signal[2][3], share = 0;
    char notes[128];
    spiked_matrix from = in_rows(data[0], 2, 3), to = in_rows(ready[0], 2, 3), rest = in_rows(seen[0], 2, 3);
    const spiked_matrix clean = in_rows(signal[0], 2, 3);
    CHECK_STATUS(spiked_prepare_missing(&from, NULL, NULL, NULL, &to, NULL, NULL, NULL, 0), SPIKED_INPUT);
    CHECK(strstr(spiked_last_error(), "say missing = \"uniform\"") != NULL);
    CHECK_STATUS(spiked_prepare_missing(&from, "some", NULL, NULL, &to, NULL, NULL, NULL, 0), SPIKED_USAGE);
    CHECK_OK(spiked_prepare_missing(&from, "uniform", NULL, NULL, &to, &rest, &share, notes, sizeof notes));
    CHECK(near(share, 5.0 / 6.0) && ready[0][0] == 0 && near(ready[0][1], 2.4) && near(ready[1][2], 7.2));
    CHECK(seen[0][0] != seen[0][0] && near(seen[0][1], 2) && near(seen[1][2], 6));
    CHECK(strstr(notes, "1 of 6 entries is missing") != NULL);
    CHECK_OK(spiked_prepare_missing(&from, "columns", NULL, NULL, &to, NULL, NULL, NULL, 0));
    CHECK(near(ready[1][0], 8) && near(ready[1][1], 5));
    /* The whole matrix is kept by svd:2, so that the signal is the weighted matrix. */
    CHECK_OK(
        spiked_denoise_missing(&from, "columns", "svd:2", NULL, NULL, NULL, 0, NULL, NULL, &clean, NULL, NULL, &share));
    CHECK(near(share, 5.0 / 6.0) && near(signal[1][0], 8) && near(signal[1][1], 5) && near(1 + signal[0][0], 1));
    CHECK_STATUS(spiked_pca_missing(&from, "columns", NULL, NULL, NULL), SPIKED_USAGE);
}

/* Twelve values from 48 to 37, and twelve from 26 to 15: a gap of 11 times the spacing beside it. */
static void notes_on_spectra(void) {
    double values[24], data[3][3] = {{2, 1, 0}, {1, 2, 1}, {0, 1, 2}};
    char notes[1024];
    spiked_matrix from = in_rows(data[0], 3, 3);
    for (int i = 0; i < 24; ++i) values[i] = (i < 12 ? 48.0 : 38.0) - i;
    CHECK_OK(spiked_denoise_notes(NULL, values, 24, 1.0, notes, sizeof notes));
    CHECK(strstr(notes, "singular values 12 and 13 are 37 and 26") != NULL && strchr(notes, '\n') == NULL);
    for (int i = 12; i < 24; ++i) values[i] = 48.0 - i;
    CHECK_OK(spiked_denoise_notes(NULL, values, 24, 1.0, notes, sizeof notes));
    CHECK(*notes == '\0');
    CHECK_OK(spiked_denoise_notes(&from, values, 0, 0.5, notes, sizeof notes));
    CHECK(strstr(notes, "covariance") != NULL && strstr(notes, "\nwith only 50 %") != NULL);
    CHECK_OK(spiked_denoise_notes(&from, values, 3, 1.0, NULL, 0));
    CHECK_STATUS(spiked_denoise_notes(&from, NULL, 3, 1.0, NULL, 0), SPIKED_USAGE);
    CHECK_STATUS(spiked_denoise_notes(&from, values, -1, 1.0, NULL, 0), SPIKED_USAGE);
    CHECK_STATUS(spiked_denoise_notes(&from, values, 3, 0.0, NULL, 0), SPIKED_USAGE);
}

/* 8 samples of 2 features that are sqrt(2) times orthogonal columns of signs, one of them times 4: the covariance is
 * diag(32, 2). With a noise level of 2 and gamma = 1/4 the population eigenvalue l = 2 s of the sample eigenvalue
 * 16 * 2 solves s (1 + gamma / (s - 1)) = 16, and the squared cosine is (1 - gamma/(s-1)^2) / (1 + gamma/(s-1)). */
static void components(void) {
    static const double signs[8][2] = {{1, 1}, {1, -1}, {1, 1}, {1, -1}, {-1, 1}, {-1, -1}, {-1, 1}, {-1, -1}};
    const double root = 1.4142135623730951, s = 15.733031326380718; /* of s^2 - 16.75 s + 16 = 0 */
    double data[8][2], eigenvalues[2], debiased[2], cosines[2], shrunk[2];
    const spiked_matrix from = in_rows(data[0], 8, 2);
    spiked_pca_options options = {0};
    spiked_components found = {0};
    int i;
    for (i = 0; i < 8; ++i) {
        data[i][0] = 4 * root * signs[i][0];
        data[i][1] = root * signs[i][1];
    }
    options.center = "none";
    options.noise_level = 2.0;
    options.shrinker = "debiased";
    found.capacity = 2;
    found.eigenvalues = eigenvalues;
    found.debiased = debiased;
    found.cosines = cosines;
    found.shrunk = shrunk;
    CHECK_OK(spiked_pca(&from, &options, &found));
    CHECK(found.values == 2 && found.components == 1 && found.degrees_of_freedom == 8 && found.stripped_features == 0);
    CHECK(near(eigenvalues[0], 32.0) && near(eigenvalues[1], 2.0));
    CHECK(near(found.bulk_edge, 4.5) && found.noise_level == 2.0); /* 2 (1 + 1/2)^2 */
    CHECK(near(debiased[0], 2 * s) && near(shrunk[0], 2 * s));
    CHECK(near(cosines[0] * cosines[0], (1 - 0.25 / ((s - 1) * (s - 1))) / (1 + 0.25 / (s - 1))));
    {
        static const double covariances[2][2] = {{32, 0}, {0, 2}};
        const spiked_matrix known = in_rows((double*)covariances[0], 2, 2);
        options.center = NULL;
        options.covariance_of = 8;
        CHECK_OK(spiked_pca(&known, &options, &found));
        CHECK(found.components == 1 && near(eigenvalues[0], 32.0) && near(debiased[0], 2 * s));
    }
}

/* Rows of 1 to 8 at 2 and 3 bits: indices and values of the prototype in quantizer_golden.json. */
static void turboquant(void) {
    static const unsigned indices[2][8] = {{2, 2, 2, 2, 3, 3, 3, 3}, {4, 4, 5, 5, 5, 6, 6, 6}};
    static const double level[2][2] = {{2.286427097901502, 7.627235048012826},
                                       {1.2376649353054827, 6.7864091974859315}};
    double row[] = {1, 2, 3, 4, 5, 6, 7, 8}, back[8];
    const spiked_matrix block = in_rows(row, 1, 8), decoded = in_rows(back, 1, 8);
    unsigned bits, i;
    for (bits = 2; bits <= 3; ++bits) {
        spiked_codec* codec = NULL;
        uint8_t bytes[64];
        size_t length = 0;
        double norm;
        CHECK_OK(spiked_codec_create("tq-mse", 8, bits, "rotation=identity,codebook=normal,norm=fp64", &codec));
        CHECK_OK(spiked_codec_encode(codec, &block, bytes, sizeof bytes, &length, NULL));
        CHECK(length == 8 + bits);
        memcpy(&norm, bytes, sizeof norm);
        CHECK(near(norm, 14.2828568570857)); /* sqrt(204) */
        for (i = 0; i < 8; ++i) {
            unsigned at = i * bits, index = 0, bit;
            for (bit = 0; bit < bits; ++bit, ++at) index |= (bytes[8 + at / 8] >> at % 8 & 1u) << bit;
            CHECK(index == indices[bits - 2][i]);
        }
        CHECK_OK(spiked_codec_decode(codec, bytes, length, &decoded));
        CHECK(near(back[0], level[bits - 2][0]) && near(back[7], level[bits - 2][1]));
        spiked_codec_free(codec);
    }
}

void hand_values(const char* command) {
    (void)command;
    CHECK(strcmp(spiked_last_error(), "") == 0);
    CHECK(spiked_abi_version() == SPIKED_ABI_VERSION);
    CHECK(strchr(spiked_version(), '.') != NULL);
    CHECK(strcmp(spiked_ledger_item(0), "indices") == 0 && strcmp(spiked_ledger_item(13), "padding") == 0);
    CHECK(spiked_use_threads(-1) == SPIKED_USAGE && strstr(spiked_last_error(), "threads") != NULL);
    CHECK(spiked_use_threads(5000) == SPIKED_USAGE && strstr(spiked_last_error(), "5000") != NULL);
    CHECK_OK(spiked_use_threads(2));
    CHECK_OK(spiked_use_threads(1));
    CHECK(spiked_ledger_item(-1) == NULL && spiked_ledger_item(SPIKED_LEDGER_ITEMS) == NULL);
    white_law();
    shrinkage();
    leading();
    preparation();
    missing_entries();
    notes_on_spectra();
    components();
    turboquant();
}

enum { ROWS = 24, COLS = 16, ENTRIES = ROWS * COLS };

static void same_signal(const spiked_matrix* from, const double* expected) {
    double signal[ENTRIES];
    const spiked_matrix to = in_rows(signal, ROWS, COLS);
    int i;
    CHECK_OK(spiked_denoise(from, "svd:2", NULL, NULL, NULL, 0, &to, NULL));
    for (i = 0; i < ENTRIES; ++i) CHECK(signal[i] == expected[i]);
}

void layouts(const char* command) {
    double data[ENTRIES], expected[ENTRIES], columns[ENTRIES], backward[ENTRIES], spaced[3 * ENTRIES];
    float single[ENTRIES], rounded[ENTRIES];
    char unaligned[8 * ENTRIES + 1];
    spiked_matrix plain = in_rows(data, ROWS, COLS), to = in_rows(expected, ROWS, COLS), other = plain;
    int i, j;
    (void)command;
    fill_spiked(data, ROWS, COLS, 5.0, 3);
    for (i = 0; i < ENTRIES; ++i) data[i] = single[i] = (float)data[i]; /* so that both types hold the same */
    CHECK_OK(spiked_denoise(&plain, "svd:2", NULL, NULL, NULL, 0, &to, NULL));

    for (i = 0; i < ROWS; ++i)
        for (j = 0; j < COLS; ++j) columns[j * ROWS + i] = data[i * COLS + j];
    other.data = columns;
    other.row_stride = 1;
    other.col_stride = ROWS;
    same_signal(&other, expected);

    for (i = 0; i < ENTRIES; ++i) backward[ENTRIES - 1 - i] = spaced[3 * i] = data[i];
    other.data = backward + ENTRIES - 1;
    other.row_stride = -COLS;
    other.col_stride = -1;
    same_signal(&other, expected);
    other.data = spaced;
    other.row_stride = 3 * COLS;
    other.col_stride = 3;
    same_signal(&other, expected);

    memcpy(unaligned + 1, data, sizeof data);
    other = plain;
    other.data = unaligned + 1;
    same_signal(&other, expected);
    other.data = single;
    other.dtype = SPIKED_F32;
    same_signal(&other, expected);

    /* A float output is rounded; an output may take the place of the input. */
    other.data = rounded;
    CHECK_OK(spiked_denoise(&plain, "svd:2", NULL, NULL, NULL, 0, &other, NULL));
    for (i = 0; i < ENTRIES; ++i) CHECK(rounded[i] == (float)expected[i]);
    CHECK_OK(spiked_denoise(&plain, "svd:2", NULL, NULL, NULL, 0, &plain, NULL));
    for (i = 0; i < ENTRIES; ++i) CHECK(data[i] == expected[i]);
}
