/* Calls that are asked to stop, before they begin and by another thread while they run. */
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "check.h"

enum { SIDE = 1200, SMALL = 60 };

static int stop;

static void* ask_soon(void* unused) {
    const struct timespec hundredth = {0, 10000000};
    nanosleep(&hundredth, NULL);
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    return unused;
}

static void* in_another_thread(void* block) {
    CHECK_OK(spiked_denoise(block, "eoptshrink", NULL, NULL, NULL, 0, NULL, NULL));
    return NULL;
}

/* A call by each function that decomposes or centres. */
static void all_give(spiked_matrix block, const spiked_codec* codec, int expected) {
    spiked_blocks blocks = {0};
    spiked_components found = {0};
    spiked_leading leading = {0};
    static uint8_t bytes[1 << 16];
    static double centred[SMALL * SMALL];
    const spiked_matrix to = in_rows(centred, SMALL, SMALL);
    size_t length = 0;
    found.capacity = SMALL;
    blocks.first = block;
    blocks.count = 1;
    CHECK_STATUS(spiked_denoise(&block, "eoptshrink", NULL, NULL, NULL, 0, NULL, NULL), expected);
    leading.wanted = 2;
    CHECK_STATUS(spiked_leading_values(&block, 0, &leading), expected);
    CHECK_STATUS(spiked_pca(&block, NULL, &found), expected);
    CHECK_STATUS(spiked_prepare(&block, "columns", NULL, &to, NULL, 0), expected);
    CHECK_STATUS(spiked_prepare(&block, "both", NULL, &to, NULL, 0), expected);
    CHECK_STATUS(spiked_codec_encode(codec, &block, bytes, sizeof bytes, &length, NULL), expected);
    CHECK_STATUS(spiked_roundtrip(&codec, 1, &blocks, 2, NULL, NULL, NULL, NULL), expected);
}

/* A rank that thousands of copies of the block decide: a call that is asked to stop early ends in less than half of the
 * processor time. The decomposition before the copies ends long before the question comes. */
static void copies_stop(const char* method) {
    static double data[SMALL * SMALL];
    const spiked_matrix block = in_rows(data, SMALL, SMALL);
    spiked_estimate found = {0};
    pthread_t other;
    clock_t whole, started;
    fill_spiked(data, SMALL, SMALL, 4.0, 1);
    found.capacity = SMALL;
    stop = 0;
    started = clock();
    CHECK_OK(spiked_denoise(&block, method, NULL, NULL, NULL, 0, NULL, &found));
    whole = clock() - started;
    CHECK(found.rank == 1);
    started = clock();
    CHECK(pthread_create(&other, NULL, ask_soon, NULL) == 0);
    CHECK_STATUS(spiked_denoise(&block, method, NULL, NULL, NULL, 0, NULL, &found), SPIKED_STOPPED);
    CHECK(2 * (clock() - started) < whole);
    CHECK(pthread_join(other, NULL) == 0);
}

void stopped_calls(const char* command) {
    double* const data = malloc(3 * sizeof(double) * SIDE * SIDE);
    double *const before = data + SIDE * SIDE, *const after = before + SIDE * SIDE;
    const spiked_matrix block = in_rows(data, SIDE, SIDE), small = in_rows(data, SMALL, SMALL);
    const spiked_matrix first = in_rows(before, SIDE, SIDE), second = in_rows(after, SIDE, SIDE);
    spiked_codec* codec = NULL;
    pthread_t other;
    (void)command;
    if (data == NULL) exit(2);
    fill_spiked(data, SIDE, SIDE, 4.0, 1);
    CHECK_OK(spiked_codec_create("svd:1+tq-mse", SMALL, 2, NULL, &codec));
    CHECK_OK(spiked_denoise(&block, "svd:2", NULL, NULL, NULL, 0, &first, NULL));

    spiked_stop_when(&stop);
    all_give(small, codec, SPIKED_OK);
    CHECK(pthread_create(&other, NULL, ask_soon, NULL) == 0);
    CHECK_STATUS(spiked_denoise(&block, "svd:2", NULL, NULL, NULL, 0, &second, NULL), SPIKED_STOPPED);
    CHECK(pthread_join(other, NULL) == 0);
    CHECK(strstr(spiked_last_error(), "stopped as asked") != NULL);
    all_give(small, codec, SPIKED_STOPPED);
    CHECK(pthread_create(&other, NULL, in_another_thread, (void*)&small) == 0);
    CHECK(pthread_join(other, NULL) == 0);

    stop = 0;
    CHECK_OK(spiked_denoise(&block, "svd:2", NULL, NULL, NULL, 0, &second, NULL));
    CHECK(memcmp(before, after, sizeof(double) * SIDE * SIDE) == 0);
    copies_stop("svd:pa:level=0.0001");
    copies_stop("tw-test:level=0.0001:null=signflip");
    stop = 1;
    spiked_stop_when(NULL);
    all_give(small, codec, SPIKED_OK);
    spiked_codec_free(codec);
    free(data);
}
