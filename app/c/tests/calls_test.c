/* Calls from several threads, and many calls one after the other. */
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { ROWS = 32, COLS = 16, ENTRIES = ROWS * COLS, BLOCKS = 40 };

/* What a thread computes, with one call in three that fails. */
struct worker {
    const spiked_codec* codec;
    const char* method;
    double signal[ENTRIES];
    spiked_code code;
    int wrong;
};

static void* work(void* argument) {
    struct worker* const worker = argument;
    double data[ENTRIES];
    const spiked_matrix from = in_rows(data, ROWS, COLS), to = in_rows(worker->signal, ROWS, COLS);
    spiked_blocks blocks = {0};
    int i;
    fill_spiked(data, ROWS, COLS, 5.0, 11);
    blocks.first = from;
    blocks.count = 1;
    for (i = 0; i < 50; ++i) {
        worker->wrong += spiked_denoise(&from, worker->method, NULL, NULL, NULL, 0, &to, NULL) != SPIKED_OK;
        worker->wrong += spiked_denoise(&from, "nothing", NULL, NULL, NULL, 0, &to, NULL) != SPIKED_USAGE;
        worker->wrong += strstr(spiked_last_error(), "nothing") == NULL;
        worker->wrong += spiked_roundtrip(&worker->codec, 1, &blocks, 2, NULL, NULL, NULL, &worker->code) != SPIKED_OK;
    }
    return NULL;
}

void concurrent_calls(const char* command) {
    static struct worker workers[3], alone;
    pthread_t threads[3];
    spiked_codec* codec = NULL;
    int i;
    (void)command;
    CHECK_OK(spiked_codec_create("eoptshrink+tq-mse", COLS, 2, NULL, &codec));
    alone.codec = codec;
    alone.method = "eoptshrink";
    work(&alone);
    for (i = 0; i < 3; ++i) {
        workers[i].codec = codec;
        workers[i].method = "eoptshrink";
        CHECK(pthread_create(&threads[i], NULL, work, &workers[i]) == 0);
    }
    for (i = 0; i < 3; ++i) {
        CHECK(pthread_join(threads[i], NULL) == 0);
        CHECK(workers[i].wrong == 0);
        CHECK(memcmp(workers[i].signal, alone.signal, sizeof alone.signal) == 0);
        CHECK(memcmp(&workers[i].code, &alone.code, sizeof alone.code) == 0);
    }
    CHECK(alone.wrong == 0);
    spiked_codec_free(codec);
}

/* Stops at the second question, or never. */
static int second_time(void* count) { return ++*(int*)count >= 2; }
static int not_yet(void* count) { return ++*(int*)count < 0; }

/* A batch gives what its blocks give one by one, for any number of threads; a batch without an end stops when asked. */
static void batches(void) {
    static double data[BLOCKS * ENTRIES], decoded[2 * BLOCKS * ENTRIES], one[ENTRIES];
    static spiked_code codes[2 * BLOCKS], single;
    static const char* const methods[] = {"tq-mse", "svd:1+tq-mse"};
    const spiked_codec* codecs[2];
    spiked_blocks blocks = {0}, back = {0}, block, to = {0};
    spiked_codec* codec = NULL;
    int b, c, polls = 0;
    for (c = 0; c < 2; ++c) {
        CHECK_OK(spiked_codec_create(methods[c], COLS, 2, NULL, &codec));
        codecs[c] = codec;
    }
    for (b = 0; b < BLOCKS; ++b) fill_spiked(data + b * ENTRIES, ROWS, COLS, 3.0, 100 + (uint64_t)b);
    blocks.first = in_rows(data, ROWS, COLS);
    blocks.count = BLOCKS;
    blocks.block_stride = ENTRIES;
    back.first = in_rows(decoded, ROWS, COLS);
    back.count = 2 * BLOCKS;
    back.block_stride = ENTRIES;
    to.first = in_rows(one, ROWS, COLS);
    to.count = 1;
    CHECK_OK(spiked_roundtrip(codecs, 2, &blocks, 3, not_yet, &polls, &back, codes));
    CHECK(polls >= 1);
    for (c = 0; c < 2; ++c)
        for (b = 0; b < BLOCKS; ++b) {
            block = blocks;
            block.first.data = data + b * ENTRIES;
            block.count = 1;
            CHECK_OK(spiked_roundtrip(&codecs[c], 1, &block, 1, NULL, NULL, &to, &single));
            CHECK(memcmp(&single, &codes[c * BLOCKS + b], sizeof single) == 0);
            CHECK(memcmp(one, decoded + (c * BLOCKS + b) * ENTRIES, sizeof one) == 0);
        }
    /* The same block again and again. */
    blocks.block_stride = 0;
    blocks.count = INT64_C(1) << 40;
    polls = 0;
    CHECK_STATUS(spiked_roundtrip(codecs, 2, &blocks, 2, second_time, &polls, NULL, NULL), SPIKED_STOPPED);
    CHECK(polls == 2);
    for (c = 0; c < 2; ++c) spiked_codec_free((spiked_codec*)codecs[c]);
}

enum { STREAM_ROWS = 128, STREAM_COLS = 16, STREAM_BLOCKS = 6 };

static double squared_error(const double* a, const double* b, int count) {
    double sum = 0.0;
    int i;
    for (i = 0; i < count; ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
    return sum;
}

/* A stream takes the bits that it is made for, its copies go on apart, and the codec need not outlive it. */
static void streams(void) {
    static double data[STREAM_BLOCKS * STREAM_ROWS * STREAM_COLS], zeros[STREAM_ROWS * STREAM_COLS];
    double decoded[STREAM_ROWS * STREAM_COLS], other[STREAM_ROWS * STREAM_COLS];
    const int entries = STREAM_ROWS * STREAM_COLS;
    const spiked_matrix to = in_rows(decoded, STREAM_ROWS, STREAM_COLS),
                        beside = in_rows(other, STREAM_ROWS, STREAM_COLS);
    spiked_codec* codec = NULL;
    spiked_stream *stream = NULL, *copy = NULL;
    double bits = 0.0, all = 0.0, error = 0.0, size = 0.0;
    int b;
    fill_spiked(data, STREAM_BLOCKS * STREAM_ROWS, STREAM_COLS, 300.0, 7);
    CHECK_OK(spiked_codec_create("causal-klt", STREAM_COLS, 4, NULL, &codec));
    CHECK_OK(spiked_stream_create(codec, STREAM_BLOCKS * STREAM_ROWS, &stream));
    spiked_codec_free(codec);
    for (b = 0; b < STREAM_BLOCKS; ++b) {
        const spiked_matrix block = in_rows(data + b * entries, STREAM_ROWS, STREAM_COLS);
        if (b == 3) CHECK_OK(spiked_stream_copy(stream, &copy));
        CHECK_OK(spiked_stream_append(stream, &block, &to, &bits));
        all += bits;
        error += squared_error(data + b * entries, decoded, entries);
        size += squared_error(data + b * entries, zeros, entries);
        if (b == 3) {
            const spiked_matrix same = block, later = in_rows(data + 5 * entries, STREAM_ROWS, STREAM_COLS);
            double again = 0.0;
            CHECK_OK(spiked_stream_append(copy, &same, &beside, &again));
            CHECK(again == bits && memcmp(decoded, other, sizeof decoded) == 0);
            CHECK_OK(spiked_stream_append(copy, &later, NULL, NULL));
        }
    }
    CHECK(all > 3.96 * STREAM_BLOCKS * entries && all < 4.04 * STREAM_BLOCKS * entries);
    CHECK(error < 0.01 * size);
    CHECK(error > 1e-6 * size); /* so few bits are not exact */
    spiked_stream_free(stream);
    spiked_stream_free(copy);
}

#ifndef SPIKED_SANITIZED /* the thread sanitizer allows no threads after fork */
/* A child of fork can call the library, also when OpenBLAS had threads. */
static void forked(spiked_matrix block) {
    int status = -1;
    pid_t child;
    fflush(stdout);
    child = fork();
    if (child == 0) {
        alarm(60);
        _exit(spiked_denoise(&block, "eoptshrink", NULL, NULL, NULL, 0, NULL, NULL));
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == SPIKED_OK);
}
#endif

static long resident_pages(void) {
    long size = 0, resident = 0;
    FILE* const file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%ld %ld", &size, &resident) != 2) resident = -1;
    if (file != NULL) fclose(file);
    return resident;
}

static void one_of_many(int i, spiked_matrix block) {
    static double signal[ENTRIES];
    const spiked_matrix to = in_rows(signal, ROWS, COLS);
    spiked_codec* codec = NULL;
    spiked_law* law = NULL;
    uint8_t bytes[4096];
    size_t length = 0;
    switch (i % 5) {
        case 0:
            CHECK_OK(spiked_denoise(&block, "eoptshrink", NULL, NULL, NULL, 0, &to, NULL));
            break;
        case 1:
            CHECK_STATUS(spiked_denoise(&block, "svd:99", NULL, NULL, NULL, 0, &to, NULL), SPIKED_USAGE);
            break;
        case 2:
            CHECK_OK(spiked_codec_create("svd:1+tq-mse", COLS, 2, "rotation=rht1", &codec));
            CHECK_OK(spiked_codec_encode(codec, &block, bytes, sizeof bytes, &length, NULL));
            CHECK_OK(spiked_codec_decode(codec, bytes, length, &to));
            CHECK_STATUS(spiked_codec_decode(codec, bytes, length / 2, &to), SPIKED_INPUT);
            spiked_codec_free(codec);
            break;
        case 3:
            CHECK_OK(spiked_law_create(NULL, NULL, 0.5, &law));
            spiked_law_free(law);
            break;
        default:
            CHECK_STATUS(spiked_codec_create("tq-mse", COLS, 99, NULL, &codec), SPIKED_USAGE);
    }
}

typedef int (*get_threads)(void);
typedef void (*set_threads)(int);

void many_calls(const char* command) {
    double data[ENTRIES];
    const spiked_matrix block = in_rows(data, ROWS, COLS);
    long before;
    int i;
    /* OpenBLAS, where the library uses it; a pointer to data becomes one to a function by its bytes. */
    void *const get = dlsym(RTLD_DEFAULT, "openblas_get_num_threads"), *const set = dlsym(RTLD_DEFAULT,
                                                                                          "openblas_set_num_threads");
    get_threads threads = NULL;
    set_threads use = NULL;
    (void)command;
    fill_spiked(data, ROWS, COLS, 4.0, 9);
    if (get != NULL && set != NULL) {
        memcpy(&threads, &get, sizeof threads);
        memcpy(&use, &set, sizeof use);
        use(3);
    }
    batches();
    streams();
    for (i = 0; i < 1000; ++i) one_of_many(i, block);
    before = resident_pages();
    CHECK(before > 0);
    for (i = 0; i < 100000; ++i) one_of_many(i, block); /* 10 bytes a call would be 1 MiB */
#ifndef SPIKED_SANITIZED                                /* sanitizers keep freed memory */
    CHECK((resident_pages() - before) * sysconf(_SC_PAGESIZE) < 1 << 20);
#endif
    if (threads != NULL) CHECK(threads() == 3);
#ifndef SPIKED_SANITIZED
    forked(block);
#endif
}
