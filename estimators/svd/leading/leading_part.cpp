#include "estimators/svd/leading/leading_part.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "core/runtime/error.hpp"
#include "core/runtime/stop_point.hpp"
#include "estimators/svd/batch_decomposition.hpp"
#include "estimators/svd/leading/block_krylov.hpp"
#include "estimators/svd/leading/convergence.hpp"
#include "estimators/svd/shape.hpp"

namespace spiked::estimators {
namespace {

Shape shape_of(const arma::mat& block) { return {block.n_rows, block.n_cols}; }

/// Vectors side by side: at least as many as values, so that equal values are found, and whole cache lines.
std::size_t width_for(std::size_t count) {
    constexpr std::size_t line = kernels::alignment / sizeof(double);
    return (count + line - 1) / line * line;
}

std::vector<double> bounds_of(const arma::mat& block, const LeadingPart& part) {
    stop_point();
    const arma::mat of_right = block * part.vectors.right;
    stop_point();
    const arma::mat of_left = block.t() * part.vectors.left;
    const arma::vec entries(const_cast<double*>(block.memptr()), block.n_elem, false, true);
    const double rounding =
        static_cast<double>(shape_of(block).long_side()) * std::numeric_limits<double>::epsilon() * arma::norm(entries);
    std::vector<double> bounds;
    for (std::size_t i = 0; i < part.values.size(); ++i) {
        const double left = arma::norm(of_right.col(i) - part.values[i] * part.vectors.left.col(i));
        const double right = arma::norm(of_left.col(i) - part.values[i] * part.vectors.right.col(i));
        bounds.push_back(std::hypot(left, right) / std::sqrt(2.0) + rounding);
    }
    return bounds;
}

LeadingPart decomposed_part(const arma::mat& block, std::size_t count, std::size_t threads) {
    LeadingPart part;
    BatchDecomposition<double> whole(shape_of(block), Instructions::best, threads);
    whole.decompose({block.memptr(), block.n_elem});
    const auto values = whole.singular_values(0);
    part.values.assign(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(count));
    whole.leading_vectors(0, count, &part.vectors.left, &part.vectors.right);
    part.bounds = bounds_of(block, part);
    return part;
}

/// The largest residual over the one at which the iteration ends.
double excess_of(const BlockKrylov::Ritz& found, double rounding) {
    double excess = 0.0;
    for (std::size_t i = 0; i < found.values.size(); ++i)
        if (found.residuals[i] > 0.0)
            excess = std::max(excess, found.residuals[i] / std::max(leading_tolerance * found.values[i], rounding));
    return excess;
}

/// The part that the iteration has found at this dimension or before; nothing where it was found too late, or where a
/// forecast says so.
std::optional<LeadingPart> iterate(const arma::mat& block, std::size_t count, std::size_t most_dimension,
                                   std::size_t threads, ConvergenceForecast* forecast) {
    const std::size_t short_side = shape_of(block).short_side();
    const std::size_t width = width_for(count);
    if (count == 0 || width > short_side)
        throw precondition_error("{} values by iteration of a {} x {} block", count, block.n_rows, block.n_cols);
    LeadingPart part;
    {
        BlockKrylov iteration(block, width, threads);
        BlockKrylov::Ritz found;
        // B is decomposed again once its side has grown by an eighth, which is seldom more work than the steps.
        for (std::size_t next = 2 * width; iteration.can_grow();) {
            iteration.grow();
            const std::size_t reached = iteration.dimension();
            const bool last = reached + width > most_dimension || !iteration.can_grow();
            if (reached < next && !last) continue;
            found = iteration.leading(count);
            const double excess = excess_of(found, iteration.rounding());
            part.converged = excess <= 1.0;
            if (part.converged) break;
            if (forecast != nullptr) {
                forecast->add(reached, excess);
                if (last || forecast->too_late()) return std::nullopt;
            }
            if (last) break;
            next = reached + std::max(width, reached / 8);
        }
        part.values = iteration.values(found);
        part.vectors = {iteration.left_vectors(found), iteration.right_vectors(found)};
        part.dimension = iteration.dimension();
    }
    part.bounds = bounds_of(block, part);
    return part;
}

}  // namespace

bool leading_part_iterates(std::size_t short_side, std::size_t count) {
    return short_side >= 1024 && count > 0 && count <= short_side / 256;
}

LeadingPart iterated_part(const arma::mat& block, std::size_t count, std::size_t most_dimension, std::size_t threads) {
    return *iterate(block, count, most_dimension, threads, nullptr);
}

LeadingPart leading_part(const arma::mat& block, std::size_t count, std::size_t threads) {
    const std::size_t short_side = shape_of(block).short_side();
    count = std::min(count, short_side);
    if (count == 0) return {.vectors = {arma::mat(block.n_rows, 0), arma::mat(block.n_cols, 0)}};
    if (leading_part_iterates(short_side, count)) {
        ConvergenceForecast forecast(short_side);
        if (auto part = iterate(block, count, forecast.most_dimension(), threads, &forecast)) return *std::move(part);
    }
    return decomposed_part(block, count, threads);
}

LeadingPart leading_part(const AnalysedBlock& block, std::size_t count, std::size_t threads) {
    const bool whole = block.shape().rows == block.block().n_rows && block.shape().columns == block.block().n_cols;
    LeadingPart part = leading_part(whole ? block.block() : block.core(), count, threads);
    part.vectors = block.at_full_length(std::move(part.vectors));
    return part;
}

}  // namespace spiked::estimators
