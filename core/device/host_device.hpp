#pragma once

/// What stands before each function that a GPU runs too: nothing, `__host__ __device__` under nvcc, or what a file
/// defines before it includes this one (normal_avx2.cpp: the instruction set).
#ifndef SPIKED_DEVICE
#ifdef __CUDACC__
#define SPIKED_DEVICE __host__ __device__
#else
#define SPIKED_DEVICE
#endif
#endif

/// Before a loop over an array that a GPU shall keep in registers.
#ifdef __CUDACC__
#define SPIKED_UNROLL _Pragma("unroll")
#else
#define SPIKED_UNROLL
#endif

/// Before a loop of which a GPU shall have so many rounds under way at once.
#ifdef __CUDACC__
#define SPIKED_UNROLL_TEXT(text) _Pragma(#text)
#define SPIKED_UNROLL_BY(rounds) SPIKED_UNROLL_TEXT(unroll rounds)
#else
#define SPIKED_UNROLL_BY(rounds)
#endif
