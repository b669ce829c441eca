#pragma once

/// The prefix of every function that also runs on a GPU: `__host__ __device__` under nvcc, otherwise nothing, unless a
/// file defines it before it includes this header (normal_avx2.cpp defines it as the instruction set).
#ifndef SPIKED_DEVICE
#ifdef __CUDACC__
#define SPIKED_DEVICE __host__ __device__
#else
#define SPIKED_DEVICE
#endif
#endif

/// Unrolls a loop fully, so that a GPU keeps the array it runs over in registers.
#ifdef __CUDACC__
#define SPIKED_UNROLL _Pragma("unroll")
#else
#define SPIKED_UNROLL
#endif

/// Unrolls a loop by `rounds`, so that a GPU has that many iterations in flight at once.
#ifdef __CUDACC__
#define SPIKED_UNROLL_TEXT(text) _Pragma(#text)
#define SPIKED_UNROLL_BY(rounds) SPIKED_UNROLL_TEXT(unroll rounds)
#else
#define SPIKED_UNROLL_BY(rounds)
#endif
