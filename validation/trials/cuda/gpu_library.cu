// cuSOLVER and cuBLAS, opened at run time by benchmarks. Nothing else links or needs them.
#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <type_traits>

#include "core/device/device_memory.cuh"
#include "core/runtime/error.hpp"
#include "validation/trials/cuda/gpu_batches.hpp"

#if __has_include(<cusolverDn.h>) && __has_include(<cublas_v2.h>)
#include <cublas_v2.h>
#include <cusolverDn.h>
#define SPIKED_HAS_CUSOLVER (CUSOLVER_VERSION >= 11700)  // the first version with XsyevBatched
#endif

namespace spiked::validation::cuda {

#if !SPIKED_HAS_CUSOLVER

std::string gpu_library_problem() { return "built without the headers of cuSOLVER and cuBLAS"; }
std::unique_ptr<DevicePass> gpu_library_pass(int, const BlocksToDecompose&, std::size_t, LibraryRoute) {
    throw precondition_error("no headers of cuSOLVER");
}

#else

namespace {

using spiked::cuda::check;
using spiked::cuda::device_memory;
using spiked::cuda::DeviceFailure;
using spiked::cuda::DeviceMemory;

#define SPIKED_TEXT_OF(name) #name
#define SPIKED_TEXT(name) SPIKED_TEXT_OF(name)

/// A shared library of the CUDA toolkit in the version of the headers used here, found by the loader or in the
/// toolkit's folder.
class Library {
public:
    explicit Library(const std::string& name) {
        for (const std::string& path : {name, "/usr/local/cuda/lib64/" + name}) {
            handle_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
            if (handle_ != nullptr) return;
        }
        problem_ = name + " is not found";
    }
    /// The function of this name, of type `Function`; null if the library lacks it.
    template <class Function>
    Function* find(const char* name) {
        void* const found = handle_ == nullptr ? nullptr : dlsym(handle_, name);
        if (found == nullptr && problem_.empty()) problem_ = std::string("the library lacks ") + name;
        return reinterpret_cast<Function*>(found);
    }
    [[nodiscard]] const std::string& problem() const { return problem_; }

private:
    void* handle_ = nullptr;
    std::string problem_;
};

template <class Real>
struct Functions;
template <>
struct Functions<float> {
    decltype(cublasSgemmStridedBatched)* gemm;
    decltype(cusolverDnSgesvdaStridedBatched_bufferSize)* gesvda_size;
    decltype(cusolverDnSgesvdaStridedBatched)* gesvda;
};
template <>
struct Functions<double> {
    decltype(cublasDgemmStridedBatched)* gemm;
    decltype(cusolverDnDgesvdaStridedBatched_bufferSize)* gesvda_size;
    decltype(cusolverDnDgesvdaStridedBatched)* gesvda;
};

struct Libraries {
    Library blas{"libcublas.so." SPIKED_TEXT(CUBLAS_VER_MAJOR)};
    Library solver{"libcusolver.so." SPIKED_TEXT(CUSOLVER_VER_MAJOR)};
#define SPIKED_FIND(library, name) library.find<decltype(name)>(SPIKED_TEXT(name))
    decltype(cublasCreate)* blas_create = SPIKED_FIND(blas, cublasCreate);
    decltype(cublasDestroy)* blas_destroy = SPIKED_FIND(blas, cublasDestroy);
    decltype(cublasSetStream)* blas_stream = SPIKED_FIND(blas, cublasSetStream);
    decltype(cusolverDnCreate)* create = SPIKED_FIND(solver, cusolverDnCreate);
    decltype(cusolverDnDestroy)* destroy = SPIKED_FIND(solver, cusolverDnDestroy);
    decltype(cusolverDnSetStream)* set_stream = SPIKED_FIND(solver, cusolverDnSetStream);
    decltype(cusolverDnCreateParams)* create_params = SPIKED_FIND(solver, cusolverDnCreateParams);
    decltype(cusolverDnDestroyParams)* destroy_params = SPIKED_FIND(solver, cusolverDnDestroyParams);
    decltype(cusolverDnXsyevBatched_bufferSize)* syev_size = SPIKED_FIND(solver, cusolverDnXsyevBatched_bufferSize);
    decltype(cusolverDnXsyevBatched)* syev = SPIKED_FIND(solver, cusolverDnXsyevBatched);
    Functions<float> in_float{SPIKED_FIND(blas, cublasSgemmStridedBatched),
                              SPIKED_FIND(solver, cusolverDnSgesvdaStridedBatched_bufferSize),
                              SPIKED_FIND(solver, cusolverDnSgesvdaStridedBatched)};
    Functions<double> in_double{SPIKED_FIND(blas, cublasDgemmStridedBatched),
                                SPIKED_FIND(solver, cusolverDnDgesvdaStridedBatched_bufferSize),
                                SPIKED_FIND(solver, cusolverDnDgesvdaStridedBatched)};
#undef SPIKED_FIND

    template <class Real>
    [[nodiscard]] const Functions<Real>& of() const {
        if constexpr (std::is_same_v<Real, float>)
            return in_float;
        else
            return in_double;
    }
};

Libraries& libraries() {
    static Libraries opened;
    return opened;
}

/// Throws DeviceFailure unless the status is 0, which means success in both libraries.
template <class Status>
void check_status(Status status, const char* doing) {
    if (static_cast<int>(status) != 0)
        throw DeviceFailure(doing, "status " + std::to_string(static_cast<int>(status)), false);
}

template <class Real>
class LibraryPass final : public DevicePass {
public:
    LibraryPass(int number, const BlocksToDecompose& wanted, std::size_t count, LibraryRoute route)
        : libraries_(libraries()),
          functions_(libraries_.of<Real>()),
          device_((check(cudaSetDevice(number), "choosing the device"), number)),
          route_(route),
          rows_(static_cast<int>(wanted.rows)),
          columns_(static_cast<int>(wanted.columns)),
          rank_(static_cast<int>(route == LibraryRoute::gesvda ? std::max(1U, wanted.vectors) : wanted.columns)),
          count_(static_cast<int>(count)) {
        const std::vector<Real> entries(wanted.blocks.begin(), wanted.blocks.end());
        const std::size_t whole = count * wanted.rows * wanted.columns;
        blocks_ = take<Real>(whole);
        for (std::size_t i = 0; i < whole; i += entries.size())
            check(cudaMemcpy(real(blocks_) + i, entries.data(), std::min(entries.size(), whole - i) * sizeof(Real),
                             cudaMemcpyHostToDevice),
                  "copying to the device");
        check(cudaDeviceSynchronize(), "copying to the device");
        values_ = take<Real>(count * rank_);
        status_ = take<int>(count);
        check_status(libraries_.create(&solver_), "starting cuSOLVER");
        check_status(libraries_.set_stream(solver_, stream_.get()), "starting cuSOLVER");
        if (route_ == LibraryRoute::syev_gram) {
            check_status(libraries_.blas_create(&blas_), "starting cuBLAS");
            check_status(libraries_.blas_stream(blas_, stream_.get()), "starting cuBLAS");
            check_status(libraries_.create_params(&params_), "starting cuSOLVER");
            gram_ = take<Real>(count * columns_ * columns_);
            check_status(libraries_.syev_size(solver_, params_, CUSOLVER_EIG_MODE_VECTOR, CUBLAS_FILL_MODE_LOWER,
                                              columns_, type, gram_.get(), columns_, type, values_.get(), type,
                                              &device_work_, &host_work_, count_),
                         "querying the work space of XsyevBatched");
            work_ = device_memory(std::max<std::size_t>(device_work_, 1));
            host_.resize(std::max<std::size_t>(host_work_, 1));
        } else {
            left_ = take<Real>(count * rank_ * rows_);
            right_ = take<Real>(count * rank_ * columns_);
            check_status(functions_.gesvda_size(solver_, CUSOLVER_EIG_MODE_VECTOR, rank_, rows_, columns_,
                                                real(blocks_), rows_, block(), real(values_), rank_, real(left_), rows_,
                                                static_cast<long long>(rank_) * rows_, real(right_), columns_,
                                                static_cast<long long>(rank_) * columns_, &length_, count_),
                         "querying the work space of gesvda");
            work_ = take<Real>(static_cast<std::size_t>(length_));
        }
    }
    ~LibraryPass() override {
        if (params_ != nullptr) libraries_.destroy_params(params_);
        if (solver_ != nullptr) libraries_.destroy(solver_);
        if (blas_ != nullptr) libraries_.blas_destroy(blas_);
    }

    void run() override {
        check(cudaSetDevice(device_), "choosing the device");
        if (route_ == LibraryRoute::syev_gram) {
            const Real one = 1;
            const Real zero = 0;
            const long long square = static_cast<long long>(columns_) * columns_;
            check_status(
                functions_.gemm(blas_, CUBLAS_OP_T, CUBLAS_OP_N, columns_, columns_, rows_, &one, real(blocks_), rows_,
                                block(), real(blocks_), rows_, block(), &zero, real(gram_), columns_, square, count_),
                "gemmStridedBatched");
            check_status(
                libraries_.syev(solver_, params_, CUSOLVER_EIG_MODE_VECTOR, CUBLAS_FILL_MODE_LOWER, columns_, type,
                                gram_.get(), columns_, type, values_.get(), type, work_.get(), device_work_,
                                host_.data(), host_work_, reinterpret_cast<int*>(status_.get()), count_),
                "XsyevBatched");
        } else {
            check_status(functions_.gesvda(solver_, CUSOLVER_EIG_MODE_VECTOR, rank_, rows_, columns_, real(blocks_),
                                           rows_, block(), real(values_), rank_, real(left_), rows_,
                                           static_cast<long long>(rank_) * rows_, real(right_), columns_,
                                           static_cast<long long>(rank_) * columns_, real(work_), length_,
                                           reinterpret_cast<int*>(status_.get()), nullptr, count_),
                         "gesvdaStridedBatched");
        }
        stream_.wait();
    }
    [[nodiscard]] std::size_t blocks() const override { return static_cast<std::size_t>(count_); }
    [[nodiscard]] std::vector<double> outcome() override {
        std::vector<int> status(static_cast<std::size_t>(count_));
        std::vector<Real> found(static_cast<std::size_t>(rank_));
        check(cudaMemcpy(status.data(), status_.get(), status.size() * sizeof(int), cudaMemcpyDeviceToHost), "copying");
        check(cudaMemcpy(found.data(), values_.get(), found.size() * sizeof(Real), cudaMemcpyDeviceToHost), "copying");
        const auto bad = std::count_if(status.begin(), status.end(), [](int one) { return one != 0; });
        if (bad > 0)
            throw postcondition_error("{} of {} blocks failed in cuSOLVER: such work is not timed", bad, count_);
        std::vector<double> values(found.begin(), found.end());
        if (route_ == LibraryRoute::syev_gram)
            for (double& value : values) value = std::sqrt(std::max(value, 0.0));
        std::sort(values.begin(), values.end(), std::greater<>());
        return values;
    }

private:
    static constexpr cudaDataType type = std::is_same_v<Real, float> ? CUDA_R_32F : CUDA_R_64F;
    template <class T>
    static DeviceMemory take(std::size_t count) {
        return device_memory(count * sizeof(T));
    }
    static Real* real(const DeviceMemory& memory) { return reinterpret_cast<Real*>(memory.get()); }
    [[nodiscard]] long long block() const { return static_cast<long long>(rows_) * columns_; }

    Libraries& libraries_;
    const Functions<Real>& functions_;
    int device_;  // initialised before stream_, which is created on the current device
    spiked::cuda::Stream stream_;
    LibraryRoute route_;
    int rows_, columns_, rank_, count_;
    DeviceMemory blocks_, gram_, values_, left_, right_, status_, work_;
    std::vector<char> host_;
    std::size_t device_work_ = 0;
    std::size_t host_work_ = 0;
    int length_ = 0;
    cublasHandle_t blas_ = nullptr;
    cusolverDnHandle_t solver_ = nullptr;
    cusolverDnParams_t params_ = nullptr;
};

}  // namespace

std::string gpu_library_problem() {
    const Libraries& opened = libraries();
    return opened.blas.problem().empty() ? opened.solver.problem() : opened.blas.problem();
}

std::unique_ptr<DevicePass> gpu_library_pass(int number, const BlocksToDecompose& blocks, std::size_t count,
                                             LibraryRoute route) {
    if (blocks.in_float) return std::make_unique<LibraryPass<float> >(number, blocks, count, route);
    return std::make_unique<LibraryPass<double> >(number, blocks, count, route);
}

#endif

}  // namespace spiked::validation::cuda
