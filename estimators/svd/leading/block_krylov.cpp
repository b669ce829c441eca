#include "estimators/svd/leading/block_krylov.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "core/runtime/error.hpp"
#include "core/runtime/parts.hpp"
#include "estimators/svd/batch_decomposition.hpp"
#include "estimators/svd/scaling_exponent.hpp"
#include "estimators/svd/transposition.hpp"
#include "sim/random/normal.hpp"

namespace spiked::estimators {
namespace {

/// Rows or columns of a part of the work, a multiple of a cache line.
constexpr std::size_t part = 192;

}  // namespace

void Columns::reserve(std::size_t count) {
    if (count * stride_ <= entries_.size()) return;
    AlignedArray<double> more(std::max(count * stride_, entries_.size() + entries_.size() / 2));
    std::copy_n(entries_.data(), entries_.size(), more.data());
    entries_ = std::move(more);
}

arma::mat Columns::times(std::size_t count, const arma::mat& weights) const {
    const arma::mat padded(const_cast<double*>(at(0)), stride_, count, false, true);
    return (padded * weights).eval().head_rows(rows_);
}

BlockKrylov::BlockKrylov(const arma::mat& block, std::size_t width, std::size_t threads)
    : width_(width),
      kernels_(*kernels::best_path<double>().kernels),
      team_(threads),
      copy_(block.n_rows),
      columns_(block.n_cols),
      left_(block.n_rows),
      right_(block.n_cols) {
    copy_.reserve(columns_);
    const double largest =
        kernels_.scale(block.memptr(), block.n_rows, block.n_rows, block.n_cols, 1.0, copy_.at(0), copy_.stride());
    if (!std::isfinite(largest))
        throw input_error("a block holds NaN or infinity (no decomposition exists): clean the data first");
    exponent_ = scaling_exponent<double>(largest);
    if (exponent_ != 0)
        kernels_.scale(copy_.at(0), copy_.stride(), block.n_rows, block.n_cols, std::ldexp(1.0, exponent_), copy_.at(0),
                       copy_.stride());
    double squares = 0.0;
    for (std::size_t j = 0; j < columns_; ++j) {
        const arma::vec column(copy_.at(j), copy_.rows(), false, true);
        squares += arma::dot(column, column);
    }
    rounding_ = static_cast<double>(std::max(block.n_rows, block.n_cols)) * std::numeric_limits<double>::epsilon() *
                std::sqrt(squares);
    right_.reserve(width_);
    for (std::size_t j = 0; j < width_; ++j) draw(right_.at(j), columns_);
    (void)orthonormalise(right_, 0);
}

bool BlockKrylov::can_grow() const { return dimension_ + width_ <= std::min(copy_.rows(), columns_); }

/// Fills a column with normals that are drawn for nothing else.
void BlockKrylov::draw(double* column, std::size_t length) {
    static const stream::StudySeed seed = stream::StudySeed::parse("0x1ead");
    static const stream::Stream normals(seed, "leading values", stream::Role::projection, 0);
    stream::fill_normal(normals, drawn_, std::span(column, length));
    drawn_ += length + length % 2;
}

/// result <- block panel
void BlockKrylov::multiply(const Columns& block, std::size_t columns, const double* panel, std::size_t panel_stride,
                           double* result, std::size_t result_stride) {
    for_each_part(team_, block.rows(), part, [&](std::size_t from, std::size_t end) {
        kernels_.multiply_by_panel({end - from, columns, width_, block.at(0) + from, block.stride(), panel,
                                    panel_stride, result + from, result_stride});
    });
}

/// result <- panel^T block, with the panel stored by rows and the result by columns, of `width_` numbers each.
void BlockKrylov::project(const Columns& block, std::size_t columns, const double* panel, double* result) {
    for_each_part(team_, columns, part, [&](std::size_t from, std::size_t end) {
        kernels_.project_on_panel({block.rows(), end - from, width_, block.at(from), block.stride(), panel, width_,
                                   result + from * width_, width_});
    });
}

/// Subtracts from the columns behind the first `before` their projection on those, and returns its coefficients.
arma::mat BlockKrylov::take_out(Columns& basis, std::size_t before) {
    AlignedArray<double> by_rows(width_ * basis.rows());
    copy_transposed(basis.at(before), basis.stride(), basis.rows(), width_, by_rows.data(), width_);
    AlignedArray<double> coefficients(width_ * before);
    project(basis, before, by_rows.data(), coefficients.data());
    arma::mat found(before, width_);
    copy_transposed(coefficients.data(), width_, width_, before, found.memptr(), before);
    AlignedArray<double> projection(width_ * basis.stride());
    multiply(basis, before, found.memptr(), before, projection.data(), basis.stride());
    double* const columns = basis.at(before);
    for (std::size_t i = 0; i < width_ * basis.stride(); ++i) columns[i] -= projection[i];
    return found;
}

/// Makes columns orthonormal, one after the other, and returns R. Where nothing is left of a column, it becomes a
/// random one and the diagonal of R is 0.
arma::mat BlockKrylov::make_orthonormal(double* columns, std::size_t stride, std::size_t rows) {
    arma::mat triangle(width_, width_);
    for (std::size_t j = 0; j < width_; ++j) {
        arma::vec column(columns + j * stride, rows, false, true);
        const auto take_out_others = [&](bool keep) {
            for (int round = 0; round < 2; ++round)
                for (std::size_t i = 0; i < j; ++i) {
                    const arma::vec other(columns + i * stride, rows, false, true);
                    const double along = arma::dot(other, column);
                    column -= along * other;
                    if (keep) triangle(i, j) += along;
                }
        };
        take_out_others(true);
        double length = arma::norm(column);
        if (length > rounding_) {
            triangle(j, j) = length;
        } else {
            draw(column.memptr(), rows);
            take_out_others(false);
            length = arma::norm(column);
        }
        column /= length;
    }
    return triangle;
}

/// In two rounds, since rounding errors of the first one grow where little is left of a column.
BlockKrylov::Coefficients BlockKrylov::orthonormalise(Columns& basis, std::size_t before) {
    Coefficients found{arma::mat(before, width_), arma::mat(width_, width_, arma::fill::eye)};
    for (int round = 0; round < 2; ++round) {
        if (before > 0) found.before += take_out(basis, before) * found.triangle;
        found.triangle = make_orthonormal(basis.at(before), basis.stride(), basis.rows()) * found.triangle;
    }
    return found;
}

void BlockKrylov::grow() {
    const std::size_t m = dimension_;
    left_.reserve(m + width_);
    right_.reserve(m + 2 * width_);
    multiply(copy_, columns_, right_.at(m), right_.stride(), left_.at(m), left_.stride());
    const Coefficients of_left = orthonormalise(left_, m);
    projected_.resize(m + width_, m + width_);
    if (m > 0) projected_.submat(0, m, m - 1, m + width_ - 1) = of_left.before;
    projected_.submat(m, m, m + width_ - 1, m + width_ - 1) = of_left.triangle;

    AlignedArray<double> by_rows(width_ * left_.rows());
    copy_transposed(left_.at(m), left_.stride(), left_.rows(), width_, by_rows.data(), width_);
    AlignedArray<double> next(width_ * columns_);
    project(copy_, columns_, by_rows.data(), next.data());
    dimension_ += width_;
    copy_transposed(next.data(), width_, width_, columns_, right_.at(dimension_), right_.stride());
    rest_ = orthonormalise(right_, dimension_).triangle;
}

BlockKrylov::Ritz BlockKrylov::leading(std::size_t count) const {
    BatchDecomposition<double> of_projected({dimension_, dimension_});
    of_projected.decompose({projected_.memptr(), projected_.n_elem});
    Ritz found;
    const auto values = of_projected.singular_values(0);
    found.values.assign(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(count));
    of_projected.leading_vectors(0, count, &found.left, &found.right);
    const arma::mat last = rest_ * found.left.tail_rows(width_);
    for (std::size_t i = 0; i < count; ++i) found.residuals.push_back(arma::norm(last.col(i)));
    return found;
}

std::vector<double> BlockKrylov::values(const Ritz& found) const {
    std::vector<double> values = found.values;
    for (double& value : values) value = std::ldexp(value, -exponent_);
    return values;
}

}  // namespace spiked::estimators
