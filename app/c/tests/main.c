/* c_tests NAME COMMAND: runs one test in the current folder; COMMAND is the program spiked. */
#include <string.h>
#include <unistd.h>

#include "check.h"

int failures = 0;

static const struct {
    const char* name;
    void (*run)(const char* command);
} tests[] = {{"golden-vectors-of-the-command", golden_vectors},
             {"results-are-those-of-the-command", command_equality},
             {"values-worked-by-hand", hand_values},
             {"misuse-gives-a-status-and-a-message", misuse},
             {"every-layout-gives-the-same-results", layouts},
             {"threads-call-at-once", concurrent_calls},
             {"many-calls-keep-memory-and-blas", many_calls},
             {"calls-stop-when-asked", stopped_calls},
             {"random-arguments", random_arguments}};

spiked_matrix in_rows(double* data, int64_t rows, int64_t cols) {
    spiked_matrix matrix = {0};
    matrix.data = data;
    matrix.dtype = SPIKED_F64;
    matrix.rows = rows;
    matrix.cols = cols;
    matrix.row_stride = cols;
    matrix.col_stride = 1;
    return matrix;
}

static uint64_t next_random(uint64_t* state) { /* splitmix64 */
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

uint64_t below(uint64_t bound) {
    static uint64_t state = 1;
    return next_random(&state) % bound;
}

static double approximate_sqrt(double x) { /* Newton, so that the tests need no libm */
    double root = 1.0;
    int i;
    for (i = 0; i < 40; ++i) root = 0.5 * (root + x / root);
    return root;
}

void fill_spiked(double* data, int64_t rows, int64_t cols, double strength, uint64_t seed) {
    const double deviation = approximate_sqrt(1.0 / (double)cols);
    const double component = strength / approximate_sqrt((double)rows * (double)cols);
    int64_t i;
    for (i = 0; i < rows * cols; ++i) { /* a sum of 12 uniform numbers has variance 1 */
        double sum = -6.0;
        int j;
        for (j = 0; j < 12; ++j) sum += (double)(next_random(&seed) >> 11) / 9007199254740992.0;
        data[i] = deviation * sum + component;
    }
}

int main(int count, char** words) {
    size_t i;
    if (count != 3) return 2;
    for (i = 0; i < sizeof tests / sizeof *tests; ++i) {
        if (strcmp(tests[i].name, words[1]) == 0) {
#ifdef SPIKED_SANITIZED /* which report there */
            tests[i].run(words[2]);
#else
            /* The library writes nothing to the standard streams of its caller. */
            FILE* const errors = tmpfile();
            if (errors == NULL || dup2(fileno(errors), STDERR_FILENO) < 0) return 2;
            tests[i].run(words[2]);
            CHECK(lseek(STDERR_FILENO, 0, SEEK_END) == 0);
#endif
            printf("%d failures\n", failures);
            return failures > 0;
        }
    }
    printf("no test %s\n", words[1]);
    return 2;
}
