/* What the tests of the C interface share. A test is a function; main.c names them. */
#ifndef SPIKED_CHECK_H
#define SPIKED_CHECK_H
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "app/c/spiked.h"

extern int failures;

#define CHECK(condition)                                                     \
    do {                                                                     \
        if (!(condition)) {                                                  \
            ++failures;                                                      \
            printf("%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
        }                                                                    \
    } while (0)

/* The status of a call, and its message where it is another one. */
#define CHECK_STATUS(call, expected)                                                                            \
    do {                                                                                                        \
        const int status_ = (call);                                                                             \
        if (status_ != (expected)) {                                                                            \
            ++failures;                                                                                         \
            printf("%s:%d: status %d, not %d: %s\n  %s\n", __FILE__, __LINE__, status_, (int)(expected), #call, \
                   spiked_last_error());                                                                        \
        }                                                                                                       \
    } while (0)
#define CHECK_OK(call) CHECK_STATUS(call, SPIKED_OK)

/* A matrix of doubles in C order. */
spiked_matrix in_rows(double* data, int64_t rows, int64_t cols);
/* Noise of variance 1/cols from a small generator, and a component of the given strength. */
void fill_spiked(double* data, int64_t rows, int64_t cols, double strength, uint64_t seed);
/* A random number in [0, bound). */
uint64_t below(uint64_t bound);

void golden_vectors(const char* command);
void command_equality(const char* command);
void hand_values(const char* command);
void misuse(const char* command);
void layouts(const char* command);
void concurrent_calls(const char* command);
void many_calls(const char* command);
void stopped_calls(const char* command);
void random_arguments(const char* command);

#endif
