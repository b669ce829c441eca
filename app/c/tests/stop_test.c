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
    static uint8_t bytes[1 << 16];
    static double centred[SMALL * SMALL];
    const spiked_matrix to = in_rows(centred, SMALL, SMALL);
    size_t length = 0;
    found.capacity = SMALL;
    blocks.first = block;
    blocks.count = 1;
    CHECK_STATUS(spiked_denoise(&block, "eoptshrink", NULL, NULL, NULL, 0, NULL, NULL), expected);
    CHECK_STATUS(spiked_pca(&block, NULL, &found), expected);
    CHECK_STATUS(spiked_prepare(&block, "columns", NULL, &to, NULL, 0), expected);
    CHECK_STATUS(spiked_prepare(&block, "both", NULL, &to, NULL, 0), expected);
    CHECK_STATUS(spiked_codec_encode(codec, &block, bytes, sizeof bytes, &length, NULL), expected);
    CHECK_STATUS(spiked_roundtrip(&codec, 1, &blocks, 2, NULL, NULL, NULL, NULL), expected);
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
    stop = 1;
    spiked_stop_when(NULL);
    all_give(small, codec, SPIKED_OK);
    spiked_codec_free(codec);
    free(data);
}
