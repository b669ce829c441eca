#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/device/host_device.hpp"

/// The interface that GPU kernels are written against, so that the same source runs on the device and in host tests.
///
/// A kernel is a struct of its arguments with
///
///     static constexpr unsigned threads;            // threads per block, a multiple of 32
///     static constexpr unsigned resident;           // blocks that a multiprocessor should hold at once
///     std::size_t shared_bytes() const;             // sum of shared_bytes_for over its shared arrays
///     template <class Team> SPIKED_DEVICE void operator()(Team& team, unsigned block) const;
///
/// and is started by `executor.launch(kernel, blocks)`: DeviceExecutor (device_launch.cuh) on a GPU, EmulatedExecutor
/// (emulated_block.hpp) on the host, where every thread is a fibre. A team is a thread's view of its block:
///
///     rank() size() lane() warp()                   // indices of the thread and the size of the block
///     barrier()                                     // waits for all threads of the block
///     warp_barrier()                                // waits for the warp; its shared memory is consistent then
///     shuffle(x, lane) shuffle_xor(x, mask)         // x of another lane; all 32 threads must call it
///     multiply_add(c, a, b)                         // C += A B for a warp, by the tensor units of a GPU
///     take<T>(count)                                // shared memory; every thread must make the same calls
///
/// In multiply_add A is 16 x 8, B is 8 x 8 and C is 16 x 8. Entries are doubles, or floats where those of A and B have
/// 11 significant bits (as_tf32). With g = lane / 4 and t = lane % 4, a lane holds
///     a = A(g, t), A(g + 8, t), A(g, t + 4), A(g + 8, t + 4)
///     b = B(t, g), B(t + 4, g)
///     c = C(g, 2 t), C(g, 2 t + 1), C(g + 8, 2 t), C(g + 8, 2 t + 1)
namespace spiked::cuda {

inline constexpr unsigned warp_size = 32;
/// Shared arrays begin at multiples of this many bytes.
inline constexpr std::size_t shared_alignment = 16;

/// The number of bytes that take<T>(count) uses.
template <class T>
[[nodiscard]] constexpr std::size_t shared_bytes_for(std::size_t count) {
    return (count * sizeof(T) + shared_alignment - 1) / shared_alignment * shared_alignment;
}

#ifdef __CUDACC__

class DeviceTeam {
public:
    template <class T>
    using Shared = T*;

    __device__ DeviceTeam() : next_(memory()) {}
    __device__ unsigned rank() const { return threadIdx.x; }
    __device__ unsigned size() const { return blockDim.x; }
    __device__ unsigned lane() const { return threadIdx.x % warp_size; }
    __device__ unsigned warp() const { return threadIdx.x / warp_size; }
    __device__ void barrier() { __syncthreads(); }
    __device__ void warp_barrier() { __syncwarp(); }
    template <class T>
    __device__ T shuffle(T x, unsigned lane) {
        return __shfl_sync(0xFFFFFFFFU, x, static_cast<int>(lane));
    }
    template <class T>
    __device__ T shuffle_xor(T x, unsigned mask) {
        return __shfl_xor_sync(0xFFFFFFFFU, x, static_cast<int>(mask));
    }
    __device__ void multiply_add(double (&c)[4], const double (&a)[4], const double (&b)[2]) {
#if __CUDA_ARCH__ >= 900
        asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
            "{%0, %1, %2, %3};"
            : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
            : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
#else
        for (unsigned i = 0; i < 4; ++i)
            asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
                : "+d"(c[i % 2 * 2]), "+d"(c[i % 2 * 2 + 1])
                : "d"(a[i]), "d"(b[i / 2]));
#endif
    }
    __device__ void multiply_add(float (&c)[4], const float (&a)[4], const float (&b)[2]) {
        asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
            "{%0, %1, %2, %3};"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
            : "r"(__float_as_uint(a[0])), "r"(__float_as_uint(a[1])), "r"(__float_as_uint(a[2])),
              "r"(__float_as_uint(a[3])), "r"(__float_as_uint(b[0])), "r"(__float_as_uint(b[1])));
    }
    template <class T>
    __device__ T* take(std::size_t count) {
        T* const here = reinterpret_cast<T*>(next_);
        next_ += shared_bytes_for<T>(count);
        return here;
    }

private:
    __device__ static unsigned char* memory() {
        extern __shared__ __align__(16) unsigned char spiked_shared_memory[];
        return spiked_shared_memory;
    }
    unsigned char* next_;
};

#endif

/// The nearest float with 11 significant bits, which tensor units multiply exactly.
SPIKED_DEVICE inline float as_tf32(float x) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &x, sizeof bits);
    bits = (bits + 0x1000U) & 0xFFFFE000U;
    std::memcpy(&x, &bits, sizeof bits);
    return x;
}

/// A pointer to the first element of a shared array, for code that takes pointers.
template <class T>
SPIKED_DEVICE T* raw(T* array) {
    return array;
}
template <class Array>
auto raw(const Array& array) -> decltype(array.data()) {
    return array.data();
}

/// The index of the warp by a shuffle, which all threads must call: a compiler then knows that it is the same in all
/// lanes, so that a branch on it does not divide the warp.
template <class Team>
SPIKED_DEVICE unsigned uniform_warp(Team& team) {
    return team.shuffle(team.warp(), 0);
}

/// 1 / x and sqrt(x) of normal numbers (and sqrt(0) = 0) whose results are normal. On a GPU the last bit may be wrong:
/// they take half as long as a division and a root, for which whole blocks would wait in every step.
SPIKED_DEVICE inline double fast_inverse(double x) {
#ifdef __CUDA_ARCH__
    double guess = 0.0;
    asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(guess) : "d"(x));
    const double error = std::fma(-x, guess, 1.0);
    return std::fma(guess, std::fma(error, error, error), guess);
#else
    return 1.0 / x;
#endif
}
SPIKED_DEVICE inline double fast_sqrt(double x) {
#ifdef __CUDA_ARCH__
    double guess = 0.0;
    asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(guess) : "d"(x));
    const double root = x * guess;
    const double error = std::fma(-root, guess, 1.0);
    return x > 0.0 ? std::fma(root, error * std::fma(0.375, error, 0.5), root) : 0.0;
#else
    return std::sqrt(x);
#endif
}

/// The sum over the 32 threads of a warp, returned to each. The order of the additions does not depend on the device.
template <class Team, class Number>
SPIKED_DEVICE Number warp_sum(Team& team, Number x) {
    for (unsigned mask = warp_size / 2; mask > 0; mask /= 2) x += team.shuffle_xor(x, mask);
    return x;
}

template <class Team, class Number>
SPIKED_DEVICE Number warp_max(Team& team, Number x) {
    for (unsigned mask = warp_size / 2; mask > 0; mask /= 2) {
        const Number other = team.shuffle_xor(x, mask);
        x = other > x ? other : x;
    }
    return x;
}

}  // namespace spiked::cuda
