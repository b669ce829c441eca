#include "estimators/svd/bidiagonal_svd.hpp"

#include <algorithm>
#include <armadillo>
#include <cmath>
#include <vector>

#include "core/runtime/error.hpp"
#include "core/runtime/stop_point.hpp"
#include "estimators/svd/bidiagonal_tolerances.hpp"
#include "estimators/svd/transposition.hpp"

// Fortran passes the length of a character argument after all others.
extern "C" void dbdsdc_(const char* triangle, const char* vectors, const int* size, double* diagonal,
                        double* off_diagonal, double* left, const int* left_step, double* right, const int* right_step,
                        double* compact, int* compact_integers, double* work, int* integers, int* info, std::size_t,
                        std::size_t);

extern "C" void dbdsqr_(const char* triangle, const int* size, const int* columns, const int* rows, const int* others,
                        double* diagonal, double* off_diagonal, double* right, const int* right_step, double* left,
                        const int* left_step, double* other, const int* other_step, double* work, int* info,
                        std::size_t);

namespace spiked::estimators {
using namespace bidiagonal;
namespace {

double flushed(double entry) { return std::abs(entry) < smallest_entry ? 0.0 : entry; }

/// Whether the columns are orthonormal, with a margin to the bound of batch_decomposition.hpp.
bool orthonormal(const arma::mat& vectors) {
    const arma::mat products = vectors.t() * vectors;
    return arma::abs(products - arma::eye(arma::size(products))).max() < 2e-13;
}

/// Largest number of vectors for which twisted factorisations are faster than LAPACK.
std::size_t most_twisted_vectors(std::size_t size) { return std::max<std::size_t>(32, size / 4); }

}  // namespace

template <class Real>
BidiagonalSvd<Real>::BidiagonalSvd(const kernels::Kernels<Real>& kernels, std::size_t size)
    : kernels_(kernels),
      size_(size),
      stride_((size + 7) / 8 * 8),
      diagonals_(size * kernels::value_lanes),
      off_diagonals_(size * kernels::value_lanes),
      eigenvalues_(size * kernels::value_lanes),
      links_(2 * size),
      vector_work_(4 * size * kernels::vector_lanes) {}

template <class Real>
void BidiagonalSvd<Real>::values(std::span<const Bidiagonal> matrices, bool exact_small, double* values) {
    constexpr std::size_t lanes = kernels::value_lanes;
    kernels::TridiagonalBatch batch{
        size_, negligible_link<Real>, diagonals_.data(), off_diagonals_.data(), eigenvalues_.data(), {}, {}};
    for (std::size_t lane = 0; lane < lanes; ++lane) {
        batch.present[lane] = lane < matrices.size();
        for (std::size_t i = 0; i < size_; ++i) {
            // B B^T is stored from its last row upwards: its large entries are most often in the first rows, and QL
            // needs them last.
            const std::size_t row = size_ - 1 - i;
            const auto at = i * lanes + lane;
            diagonals_[at] = off_diagonals_[at] = 0.0;
            if (!batch.present[lane]) continue;
            const double d = matrices[lane].diagonal[row];
            const double e = i == 0 ? 0.0 : matrices[lane].off_diagonal[row];
            const double before = row == 0 ? 0.0 : matrices[lane].off_diagonal[row - 1];
            diagonals_[at] = d * d + e * e;
            off_diagonals_[at] = d * d * (before * before);
        }
    }
    kernels_.eigenvalues(batch);
    for (std::size_t lane = 0; lane < matrices.size(); ++lane) {
        const std::span<double> found(values + lane * size_, size_);
        if (!batch.converged[lane]) {
            double upper = 0.0;
            for (const double d : matrices[lane].diagonal) upper += d * d;
            for (const double e : matrices[lane].off_diagonal) upper += e * e;
            bisect(matrices[lane], std::sqrt(upper) * rounded_bound, found);
            continue;
        }
        const double* const eigenvalues = eigenvalues_.data() + lane * size_;
        std::transform(eigenvalues, eigenvalues + size_, found.begin(),
                       [](double x) { return std::sqrt(std::max(x, 0.0)); });
        std::sort(found.begin(), found.end(), std::greater<>());
        if (!exact_small) continue;
        const double limit = too_small_for_squares * found[0];
        const auto small = std::lower_bound(found.begin(), found.end(), limit, std::greater<>());
        if (small == found.end()) continue;
        bisect(matrices[lane], generous_bound * limit, {small, found.end()});
        // Sort again, because equal values may have been on both sides of the limit.
        std::sort(found.begin(), found.end(), std::greater<>());
    }
}

/// Computes the smallest values, all below `upper`, by multisection: 16 points per round, divided among up to 16
/// values.
template <class Real>
void BidiagonalSvd<Real>::bisect(const Bidiagonal& matrix, double upper, std::span<double> smallest) {
    constexpr std::size_t lanes = kernels::value_lanes;
    std::vector<double> diagonal(size_);
    std::vector<double> off_diagonal(size_);
    double largest = 0.0;
    for (std::size_t i = 0; i < size_; ++i) {
        diagonal[i] = matrix.diagonal[i] * matrix.diagonal[i];
        if (i + 1 < size_) off_diagonal[i] = matrix.off_diagonal[i] * matrix.off_diagonal[i];
        largest = std::max({largest, diagonal[i], off_diagonal[i]});
    }
    const double precise = epsilon * std::sqrt(largest);
    const std::size_t count = smallest.size();
    for (std::size_t start = 0; start < count; start += lanes) {
        stop_point();
        const std::size_t some = std::min(lanes, count - start);
        const std::size_t points = lanes / some;
        double low[lanes] = {};
        double high[lanes];
        std::fill_n(high, some, upper);
        for (double width = upper; width > precise; width /= static_cast<double>(points + 1)) {
            alignas(64) double at[lanes] = {};
            alignas(64) double below[lanes];
            for (std::size_t j = 0; j < some; ++j)
                for (std::size_t k = 0; k < points; ++k)
                    at[j * points + k] =
                        low[j] + (high[j] - low[j]) * static_cast<double>(k + 1) / static_cast<double>(points + 1);
            kernels_.count_below(size_, diagonal.data(), off_diagonal.data(), at, below);
            for (std::size_t j = 0; j < some; ++j)
                for (std::size_t k = points; k-- > 0;) {
                    const double point = at[j * points + k];
                    if (below[j * points + k] > static_cast<double>(start + j)) {
                        high[j] = point;
                    } else {
                        low[j] = point;
                        break;
                    }
                }
        }
        for (std::size_t j = 0; j < some; ++j) smallest[count - 1 - start - j] = 0.5 * (low[j] + high[j]);
    }
    std::sort(smallest.begin(), smallest.end(), std::greater<>());
}

template <class Real>
void BidiagonalSvd<Real>::vectors(const Bidiagonal& matrix, std::span<const double> values, std::size_t wanted) {
    if (wanted == 0) return;
    if (wanted > most_twisted_vectors(size_) || !(values[wanted - 1] > smallest_for_twisted * values[0]) ||
        !twisted(matrix, values, wanted))
        lapack(matrix, wanted);
}

template <class Real>
void BidiagonalSvd<Real>::make_room(std::size_t wanted) {
    const std::size_t lanes = kernels::vector_lanes;
    const std::size_t room = (wanted + lanes - 1) / lanes * lanes;
    if (right_.size() >= room * size_) return;
    right_ = AlignedArray<Real>(room * size_);
    left_ = AlignedArray<Real>(room * size_);
    columns_ = AlignedArray<double>(2 * room * stride_);
}

template <class Real>
void BidiagonalSvd<Real>::copy(const AlignedArray<Real>& lanes, std::size_t first, Real* to) const {
    static_assert(kernels::applied_lanes == kernels::vector_lanes);
    std::copy_n(lanes.data() + first * size_, kernels::applied_lanes * size_, to);
}

template <class Real>
bool BidiagonalSvd<Real>::twisted(const Bidiagonal& matrix, std::span<const double> values, std::size_t wanted) {
    make_room(wanted);
    for (std::size_t i = 0; i < size_; ++i) {
        links_[2 * i] = matrix.diagonal[i];
        if (i + 1 < size_) links_[2 * i + 1] = matrix.off_diagonal[i];
    }
    for (std::size_t first = 0; first < wanted; first += kernels::vector_lanes) {
        stop_point();
        const std::size_t some = std::min(kernels::vector_lanes, wanted - first);
        if (!twisted_group(values.subspan(first, some), values[0], first)) return false;
    }
    return make_orthogonal(values, wanted);
}

/// Makes each vector orthogonal to the preceding ones whose values are close. Only these vectors are copied out of the
/// lanes.
template <class Real>
bool BidiagonalSvd<Real>::make_orthogonal(std::span<const double> values, std::size_t wanted) {
    constexpr std::size_t lanes = kernels::vector_lanes;
    std::size_t first_close = 0;
    std::size_t taken = 0;
    for (std::size_t i = 1; i < wanted; ++i) {
        while (values[first_close] - values[i] > close<Real> * values[0]) ++first_close;
        if (first_close == i) continue;
        stop_point();
        const std::size_t first_new = std::max(taken, first_close);
        taken = i + 1;
        for (AlignedArray<Real>* side : {&right_, &left_}) {
            double* const columns = columns_.data() + (side == &right_ ? 0 : columns_.size() / 2);
            const auto in_lanes = [&](std::size_t k) { return side->data() + k / lanes * lanes * size_ + k % lanes; };
            for (std::size_t k = first_new; k <= i; ++k)
                for (std::size_t j = 0; j < size_; ++j) columns[k * stride_ + j] = in_lanes(k)[j * lanes];
            if (kernels_.orthogonalise(columns + first_close * stride_, stride_, stride_, i + 1 - first_close) < 0.5)
                return false;
            for (std::size_t j = 0; j < size_; ++j)
                in_lanes(i)[j * lanes] = static_cast<Real>(flushed(columns[i * stride_ + j]));
        }
    }
    return true;
}

template <class Real>
bool BidiagonalSvd<Real>::twisted_group(std::span<const double> values, double largest, std::size_t first) {
    constexpr std::size_t lanes = kernels::vector_lanes;
    alignas(64) double eigenvalues[lanes];
    alignas(64) double right_square[lanes];
    alignas(64) double left_square[lanes];
    alignas(64) double remainders[lanes];
    for (std::size_t lane = 0; lane < lanes; ++lane) eigenvalues[lane] = values[std::min(lane, values.size() - 1)];
    const kernels::GolubKahan matrix{2 * size_, links_.data(), vector_work_.data()};
    for (int round = 0;; ++round) {
        kernels_.twisted_vectors(matrix, eigenvalues, values.size(), right_square, left_square, remainders);
        bool again = false;
        for (std::size_t lane = 0; lane < values.size(); ++lane) {
            const double square = right_square[lane] + left_square[lane];
            const double residual = std::abs(remainders[lane]) / std::sqrt(square);
            if (!(residual < acceptable_residual * largest) && round == last_round) return false;
            if (residual < good_residual<Real> * largest) continue;
            again = true;
            eigenvalues[lane] += remainders[lane] / square;  // Rayleigh quotient
        }
        if (!again || round == last_round) break;
    }
    alignas(64) double scales[2][lanes] = {};
    for (std::size_t lane = 0; lane < values.size(); ++lane) {
        if (!(std::abs(right_square[lane] - left_square[lane]) < unequal_halves * right_square[lane])) return false;
        scales[0][lane] = 1.0 / std::sqrt(right_square[lane]);
        scales[1][lane] = 1.0 / std::sqrt(left_square[lane]);
    }
    kernels_.scale_vectors(matrix, scales[0], scales[1], smallest_entry, right_.data() + first * size_,
                           left_.data() + first * size_);
    return true;
}

template <class Real>
void BidiagonalSvd<Real>::lapack(const Bidiagonal& matrix, std::size_t wanted) {
    make_room(wanted);
    std::vector<double> diagonal;
    std::vector<double> off_diagonal;
    const auto load = [&] {
        diagonal.assign(matrix.diagonal.begin(), matrix.diagonal.end());
        off_diagonal.assign(matrix.off_diagonal.begin(), matrix.off_diagonal.end());
        off_diagonal.resize(size_);
    };
    load();
    arma::mat left(size_, size_);
    arma::mat right(size_, size_);  // transposed
    std::vector<double> work(size_ * (3 * size_ + 4));
    std::vector<int> integers(8 * size_);
    const int size = static_cast<int>(size_);
    int info = 0;
    dbdsdc_("U", "I", &size, diagonal.data(), off_diagonal.data(), left.memptr(), &size, right.memptr(), &size, nullptr,
            nullptr, work.data(), integers.data(), &info, 1, 1);
    if (info != 0 || !orthonormal(left.head_cols(wanted)) || !orthonormal(right.head_rows(wanted).t())) {
        // Divide and conquer fails, or loses orthogonality, when the values lie in a few tight clusters. QL is slower.
        load();
        left.eye();
        right.eye();
        const int none = 0;
        const int one = 1;
        double unused = 0.0;
        dbdsqr_("U", &size, &size, &size, &none, diagonal.data(), off_diagonal.data(), right.memptr(), &size,
                left.memptr(), &size, &unused, &one, work.data(), &info, 1);
        if (info != 0)
            throw input_error(
                "the singular vectors of a block did not converge (LAPACK's bdsdc and bdsqr failed): leave it out");
    }
    constexpr std::size_t lanes = kernels::vector_lanes;
    for (std::size_t first = 0; first < wanted; first += lanes) {
        const std::size_t some = std::min(lanes, wanted - first);
        copy_transposed(left.memptr() + first * size_, size_, size_, some, left_.data() + first * size_, lanes);
        for (std::size_t i = 0; i < size_; ++i)
            std::copy_n(right.memptr() + i * size_ + first, some, right_.data() + first * size_ + i * lanes);
    }
}

template class BidiagonalSvd<float>;
template class BidiagonalSvd<double>;

}  // namespace spiked::estimators
