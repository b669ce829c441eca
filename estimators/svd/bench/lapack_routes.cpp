#include "estimators/svd/bench/lapack_routes.hpp"

#include <algorithm>
#include <cmath>

#include "core/runtime/error.hpp"

// Fortran passes the lengths of character arguments after all others.
#define SPIKED_LAPACK(REAL, P)                                                                                         \
    extern "C" {                                                                                                       \
    void P##gesdd_(const char*, const int*, const int*, REAL*, const int*, REAL*, REAL*, const int*, REAL*,            \
                   const int*, REAL*, const int*, int*, int*, std::size_t);                                            \
    void P##gesvd_(const char*, const char*, const int*, const int*, REAL*, const int*, REAL*, REAL*, const int*,      \
                   REAL*, const int*, REAL*, const int*, int*, std::size_t, std::size_t);                              \
    void P##gesvdx_(const char*, const char*, const char*, const int*, const int*, REAL*, const int*, const REAL*,     \
                    const REAL*, const int*, const int*, int*, REAL*, REAL*, const int*, REAL*, const int*, REAL*,     \
                    const int*, int*, int*, std::size_t, std::size_t, std::size_t);                                    \
    void P##gebrd_(const int*, const int*, REAL*, const int*, REAL*, REAL*, REAL*, REAL*, REAL*, const int*, int*);    \
    void P##bdsqr_(const char*, const int*, const int*, const int*, const int*, REAL*, REAL*, REAL*, const int*,       \
                   REAL*, const int*, REAL*, const int*, REAL*, int*, std::size_t);                                    \
    void P##ormbr_(const char*, const char*, const char*, const int*, const int*, const int*, const REAL*, const int*, \
                   const REAL*, REAL*, const int*, REAL*, const int*, int*, std::size_t, std::size_t, std::size_t);    \
    void P##syrk_(const char*, const char*, const int*, const int*, const REAL*, const REAL*, const int*, const REAL*, \
                  REAL*, const int*, std::size_t, std::size_t);                                                        \
    void P##sytrd_(const char*, const int*, REAL*, const int*, REAL*, REAL*, REAL*, REAL*, const int*, int*,           \
                   std::size_t);                                                                                       \
    void P##sterf_(const int*, REAL*, REAL*, int*);                                                                    \
    void P##stein_(const int*, const REAL*, const REAL*, const int*, const REAL*, const int*, const int*, REAL*,       \
                   const int*, REAL*, int*, int*, int*);                                                               \
    void P##ormtr_(const char*, const char*, const char*, const int*, const int*, const REAL*, const int*,             \
                   const REAL*, REAL*, const int*, REAL*, const int*, int*, std::size_t, std::size_t, std::size_t);    \
    void P##gemm_(const char*, const char*, const int*, const int*, const int*, const REAL*, const REAL*, const int*,  \
                  const REAL*, const int*, const REAL*, REAL*, const int*, std::size_t, std::size_t);                  \
    }                                                                                                                  \
    namespace {                                                                                                        \
    template <>                                                                                                        \
    struct Lapack<REAL> {                                                                                              \
        static constexpr auto gesdd = P##gesdd_;                                                                       \
        static constexpr auto gesvd = P##gesvd_;                                                                       \
        static constexpr auto gesvdx = P##gesvdx_;                                                                     \
        static constexpr auto gebrd = P##gebrd_;                                                                       \
        static constexpr auto bdsqr = P##bdsqr_;                                                                       \
        static constexpr auto ormbr = P##ormbr_;                                                                       \
        static constexpr auto syrk = P##syrk_;                                                                         \
        static constexpr auto sytrd = P##sytrd_;                                                                       \
        static constexpr auto sterf = P##sterf_;                                                                       \
        static constexpr auto stein = P##stein_;                                                                       \
        static constexpr auto ormtr = P##ormtr_;                                                                       \
        static constexpr auto gemm = P##gemm_;                                                                         \
    };                                                                                                                 \
    }

namespace {
template <class Real>
struct Lapack;
}
SPIKED_LAPACK(float, s)
SPIKED_LAPACK(double, d)
#undef SPIKED_LAPACK

namespace spiked::estimators {
namespace {

void require_success(int info, const char* routine) {
    if (info != 0) throw input_error("a block did not converge (LAPACK {}, code {}): check its values", routine, info);
}

/// The part that all routes share: the block, transposed where it is wide, and workspaces that grow.
template <class Real>
class Route : public LapackRoute<Real> {
protected:
    using L = Lapack<Real>;

    Route(Shape shape, std::size_t wanted)
        : rows_(static_cast<int>(shape.long_side())),
          columns_(static_cast<int>(shape.short_side())),
          wanted_(static_cast<int>(std::min(wanted, shape.short_side()))),
          wide_(shape.rows < shape.columns),
          block_(shape.long_side() * shape.short_side()),
          work_(1) {
        this->values_.resize(shape.short_side());
        this->long_vectors_.resize(shape.long_side() * static_cast<std::size_t>(wanted_));
        this->short_vectors_.resize(shape.short_side() * static_cast<std::size_t>(wanted_));
    }

    void load(const Real* block) {
        if (!wide_) {
            std::copy(block, block + block_.size(), block_.begin());
            return;
        }
        for (int j = 0; j < columns_; ++j)
            for (int i = 0; i < rows_; ++i) block_[at(i, j, rows_)] = block[at(j, i, columns_)];
    }
    [[nodiscard]] static std::size_t at(int row, int column, int rows) {
        return static_cast<std::size_t>(column) * static_cast<std::size_t>(rows) + static_cast<std::size_t>(row);
    }
    /// Runs a routine, at first twice: the first call queries the size of its workspace.
    template <class Call>
    void with_work(const char* routine, const Call& call) {
        int info = 0;
        int size = -1;
        Real best = 0;
        if (queried_.empty() || std::find(queried_.begin(), queried_.end(), routine) == queried_.end()) {
            call(&best, &size, &info);
            require_success(info, routine);
            work_.resize(std::max(work_.size(), static_cast<std::size_t>(best)));
            queried_.push_back(routine);
        }
        size = static_cast<int>(work_.size());
        call(work_.data(), &size, &info);
        require_success(info, routine);
    }
    /// The leading eigenvectors of a symmetric tridiagonal matrix, largest eigenvalue first.
    void leading_eigenvectors(const std::vector<Real>& diagonal, const std::vector<Real>& off_diagonal,
                              const Real* ascending, Real* vectors) {
        ones_.assign(static_cast<std::size_t>(columns_), 1);
        integers_.resize(2 * static_cast<std::size_t>(columns_));
        work_.resize(std::max(work_.size(), 5 * static_cast<std::size_t>(columns_)));
        reversed_.resize(this->short_vectors_.size());
        int info = 0;
        L::stein(&columns_, diagonal.data(), off_diagonal.data(), &wanted_, ascending + (columns_ - wanted_),
                 ones_.data(), &columns_, reversed_.data(), &columns_, work_.data(), integers_.data(),
                 integers_.data() + columns_, &info);
        require_success(info, "stein");
        for (int k = 0; k < wanted_; ++k)
            std::copy_n(reversed_.begin() + static_cast<std::ptrdiff_t>(at(0, wanted_ - 1 - k, columns_)), columns_,
                        vectors + at(0, k, columns_));
    }

    int rows_;
    int columns_;
    int wanted_;
    bool wide_;
    std::vector<Real> block_;
    std::vector<Real> work_;
    std::vector<const char*> queried_;
    std::vector<int> integers_;

private:
    std::vector<int> ones_;
    std::vector<Real> reversed_;
};

template <class Real>
class Gesdd final : public Route<Real> {
public:
    Gesdd(Shape shape, std::size_t wanted) : Route<Real>(shape, wanted) {
        u_.resize(this->block_.size());
        vt_.resize(static_cast<std::size_t>(this->columns_) * static_cast<std::size_t>(this->columns_));
        this->integers_.resize(8 * static_cast<std::size_t>(this->columns_));
    }
    void run(const Real* block) override {
        this->load(block);
        const int m = this->rows_;
        const int n = this->columns_;
        this->with_work("gesdd", [&](Real* work, const int* size, int* info) {
            Lapack<Real>::gesdd("S", &m, &n, this->block_.data(), &m, this->values_.data(), u_.data(), &m, vt_.data(),
                                &n, work, size, this->integers_.data(), info, 1);
        });
        std::copy_n(u_.begin(), this->long_vectors_.size(), this->long_vectors_.begin());
        for (int k = 0; k < this->wanted_; ++k)
            for (int j = 0; j < n; ++j) this->short_vectors_[this->at(j, k, n)] = vt_[this->at(k, j, n)];
    }

private:
    std::vector<Real> u_;
    std::vector<Real> vt_;
};

template <class Real>
class Gesvdx final : public Route<Real> {
public:
    Gesvdx(Shape shape, std::size_t wanted) : Route<Real>(shape, wanted) {
        vt_.resize(this->short_vectors_.size());
        found_.resize(static_cast<std::size_t>(this->columns_));
        this->integers_.resize(12 * static_cast<std::size_t>(this->columns_));
    }
    void run(const Real* block) override {
        const int m = this->rows_;
        const int n = this->columns_;
        const int r = this->wanted_;
        const int one = 1;
        const Real unused = 0;
        this->load(block);
        this->with_work("gesvd", [&](Real* work, const int* size, int* info) {
            Lapack<Real>::gesvd("N", "N", &m, &n, this->block_.data(), &m, this->values_.data(), nullptr, &one, nullptr,
                                &one, work, size, info, 1, 1);
        });
        if (r == 0) return;
        this->load(block);
        int count = 0;
        this->with_work("gesvdx", [&](Real* work, const int* size, int* info) {
            Lapack<Real>::gesvdx("V", "V", "I", &m, &n, this->block_.data(), &m, &unused, &unused, &one, &r, &count,
                                 found_.data(), this->long_vectors_.data(), &m, vt_.data(), &r, work, size,
                                 this->integers_.data(), info, 1, 1, 1);
        });
        for (int k = 0; k < r; ++k)
            for (int j = 0; j < n; ++j) this->short_vectors_[this->at(j, k, n)] = vt_[this->at(k, j, r)];
    }

private:
    std::vector<Real> vt_;
    std::vector<Real> found_;
};

template <class Real>
class Bidiagonal final : public Route<Real> {
public:
    Bidiagonal(Shape shape, std::size_t wanted) : Route<Real>(shape, wanted) {
        const auto n = static_cast<std::size_t>(this->columns_);
        for (auto* one :
             {&diagonal_, &off_diagonal_, &tau_left_, &tau_right_, &squares_, &products_, &spare_, &ascending_})
            one->resize(n);
    }
    void run(const Real* block) override {
        const int m = this->rows_;
        const int n = this->columns_;
        const int r = this->wanted_;
        const int zero = 0;
        const int one = 1;
        int info = 0;
        this->load(block);
        this->with_work("gebrd", [&](Real* work, const int* size, int* status) {
            Lapack<Real>::gebrd(&m, &n, this->block_.data(), &m, diagonal_.data(), off_diagonal_.data(),
                                tau_left_.data(), tau_right_.data(), work, size, status);
        });
        for (int i = 0; i < n; ++i) {
            const auto at = static_cast<std::size_t>(i);
            const Real above = i == 0 ? Real{0} : off_diagonal_[at - 1];
            squares_[at] = diagonal_[at] * diagonal_[at] + above * above;
            products_[at] = i + 1 < n ? diagonal_[at] * off_diagonal_[at] : Real{0};
        }
        this->values_.assign(diagonal_.begin(), diagonal_.end());
        spare_ = off_diagonal_;
        this->work_.resize(std::max(this->work_.size(), 4 * static_cast<std::size_t>(n)));
        Lapack<Real>::bdsqr("U", &n, &zero, &zero, &zero, this->values_.data(), spare_.data(), nullptr, &one, nullptr,
                            &one, nullptr, &one, this->work_.data(), &info, 1);
        require_success(info, "bdsqr");
        if (r == 0) return;
        std::transform(this->values_.rbegin(), this->values_.rend(), ascending_.begin(), [](Real s) { return s * s; });
        this->leading_eigenvectors(squares_, products_, ascending_.data(), this->short_vectors_.data());
        std::fill(this->long_vectors_.begin(), this->long_vectors_.end(), Real{0});
        for (int k = 0; k < r; ++k) {
            const Real* v = this->short_vectors_.data() + this->at(0, k, n);
            Real* u = this->long_vectors_.data() + this->at(0, k, m);
            const Real value = this->values_[static_cast<std::size_t>(k)];
            for (int i = 0; i < n; ++i) {
                const auto at = static_cast<std::size_t>(i);
                u[i] = (diagonal_[at] * v[i] + (i + 1 < n ? off_diagonal_[at] * v[i + 1] : Real{0})) / value;
            }
        }
        this->with_work("ormbr", [&](Real* work, const int* size, int* status) {
            Lapack<Real>::ormbr("Q", "L", "N", &m, &r, &n, this->block_.data(), &m, tau_left_.data(),
                                this->long_vectors_.data(), &m, work, size, status, 1, 1, 1);
        });
        this->with_work("ormbr of P", [&](Real* work, const int* size, int* status) {
            Lapack<Real>::ormbr("P", "L", "N", &n, &r, &n, this->block_.data(), &m, tau_right_.data(),
                                this->short_vectors_.data(), &n, work, size, status, 1, 1, 1);
        });
    }

private:
    std::vector<Real> diagonal_, off_diagonal_, tau_left_, tau_right_, squares_, products_, spare_, ascending_;
};

template <class Real>
class Gram final : public Route<Real> {
public:
    Gram(Shape shape, std::size_t wanted) : Route<Real>(shape, wanted) {
        const auto n = static_cast<std::size_t>(this->columns_);
        gram_.resize(n * n);
        for (auto* one : {&diagonal_, &off_diagonal_, &tau_, &ascending_, &spare_}) one->resize(n);
    }
    void run(const Real* block) override {
        const int m = this->rows_;
        const int n = this->columns_;
        const int r = this->wanted_;
        const Real one = 1;
        const Real zero = 0;
        int info = 0;
        this->load(block);
        Lapack<Real>::syrk("L", "T", &n, &m, &one, this->block_.data(), &m, &zero, gram_.data(), &n, 1, 1);
        this->with_work("sytrd", [&](Real* work, const int* size, int* status) {
            Lapack<Real>::sytrd("L", &n, gram_.data(), &n, diagonal_.data(), off_diagonal_.data(), tau_.data(), work,
                                size, status, 1);
        });
        ascending_ = diagonal_;
        spare_ = off_diagonal_;
        Lapack<Real>::sterf(&n, ascending_.data(), spare_.data(), &info);
        require_success(info, "sterf");
        std::transform(ascending_.rbegin(), ascending_.rend(), this->values_.begin(),
                       [](Real square) { return std::sqrt(std::max(square, Real{0})); });
        if (r == 0) return;
        this->leading_eigenvectors(diagonal_, off_diagonal_, ascending_.data(), this->short_vectors_.data());
        this->with_work("ormtr", [&](Real* work, const int* size, int* status) {
            Lapack<Real>::ormtr("L", "L", "N", &n, &r, gram_.data(), &n, tau_.data(), this->short_vectors_.data(), &n,
                                work, size, status, 1, 1, 1);
        });
        Lapack<Real>::gemm("N", "N", &m, &r, &n, &one, this->block_.data(), &m, this->short_vectors_.data(), &n, &zero,
                           this->long_vectors_.data(), &m, 1, 1);
        for (int k = 0; k < r; ++k)
            for (int i = 0; i < m; ++i)
                this->long_vectors_[this->at(i, k, m)] /= this->values_[static_cast<std::size_t>(k)];
    }

private:
    std::vector<Real> gram_, diagonal_, off_diagonal_, tau_, ascending_, spare_;
};

}  // namespace

const std::vector<std::string>& lapack_routes() {
    static const std::vector<std::string> names = {"gesdd", "gesvdx", "bidiagonal", "gram"};
    return names;
}

template <class Real>
std::unique_ptr<LapackRoute<Real>> lapack_route(const std::string& name, Shape shape, std::size_t wanted) {
    if (name == "gesdd") return std::make_unique<Gesdd<Real>>(shape, wanted);
    if (name == "gesvdx") return std::make_unique<Gesvdx<Real>>(shape, wanted);
    if (name == "bidiagonal") return std::make_unique<Bidiagonal<Real>>(shape, wanted);
    if (name == "gram") return std::make_unique<Gram<Real>>(shape, wanted);
    throw precondition_error("there is no LAPACK route named {}", name);
}

template std::unique_ptr<LapackRoute<float>> lapack_route(const std::string&, Shape, std::size_t);
template std::unique_ptr<LapackRoute<double>> lapack_route(const std::string&, Shape, std::size_t);

}  // namespace spiked::estimators
