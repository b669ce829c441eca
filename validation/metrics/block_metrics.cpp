#include "validation/metrics/block_metrics.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/runtime/error.hpp"
#include "estimators/compressors/relative_error.hpp"
#include "validation/statistics/moments.hpp"

namespace spiked::validation {
namespace {

/// Rows scaled to unit length, as columns; zero rows stay zero.
arma::mat unit_rows(const arma::mat& block) {
    arma::mat rows = block.t();
    for (arma::uword t = 0; t < rows.n_cols; ++t) {
        const double norm = arma::norm(rows.col(t));
        if (norm > 0.0) rows.col(t) /= norm;
    }
    return rows;
}

/// Unit rows and errors of the decoded rows, all d x n.
struct RowErrors {
    arma::mat units;         ///< x / |x|
    arma::mat renormalised;  ///< x^ / |x^| - x / |x|
    arma::mat plain;         ///< (x^ - x) / |x|
};

enum class Pairs { all, different };

struct MeanAndDeviation {
    double mean = std::numeric_limits<double>::quiet_NaN();
    double deviation = std::numeric_limits<double>::quiet_NaN();
};

/// Mean and standard deviation of inner products over pairs of a query and a row. The rows are processed in chunks,
/// because for a long block the matrix of all pairs would not fit in memory.
MeanAndDeviation mean_and_deviation(const arma::mat& queries, const arma::mat& errors, Pairs pairs) {
    constexpr arma::uword at_once = 512;
    Moments all;
    for (arma::uword first = 0; first < errors.n_cols; first += at_once) {
        const arma::uword last = std::min(errors.n_cols, first + at_once) - 1;
        const arma::mat products = queries.t() * errors.cols(first, last);
        // The products that count, in their order: of row t all but that with itself, where that is left out.
        const auto for_each_counted = [&](const auto& work) {
            for (arma::uword t = 0; t < products.n_cols; ++t) {
                const double* const of_row = products.colptr(t);
                const arma::uword own = pairs == Pairs::all ? products.n_rows : std::min(first + t, products.n_rows);
                for (arma::uword q = 0; q < own; ++q) work(of_row[q]);
                for (arma::uword q = own + 1; q < products.n_rows; ++q) work(of_row[q]);
            }
        };
        Moments part;
        double sum = 0.0;
        for_each_counted([&](double product) {
            sum += product;
            ++part.count;
        });
        if (part.count == 0) continue;
        const double mean = sum / static_cast<double>(part.count);
        double squares = 0.0;
        for_each_counted([&](double product) { squares += (product - mean) * (product - mean); });
        part.mean = mean;
        part.m2 = squares;
        all.merge(part);
    }
    if (all.count == 0) return {};
    return {all.mean, std::sqrt(all.m2 / static_cast<double>(all.count))};
}

InnerProductErrors errors_for(const arma::mat& unit_queries, const RowErrors& rows, Pairs pairs) {
    const MeanAndDeviation renormalised = mean_and_deviation(unit_queries, rows.renormalised, pairs);
    const MeanAndDeviation plain = mean_and_deviation(unit_queries, rows.plain, pairs);
    return {renormalised.mean, renormalised.deviation, plain.mean, plain.deviation};
}

InnerProductErrors own_errors(const RowErrors& rows) {
    const arma::mat one(1, 1, arma::fill::ones);
    const MeanAndDeviation renormalised =
        mean_and_deviation(one, arma::sum(rows.units % rows.renormalised, 0), Pairs::all);
    const MeanAndDeviation plain = mean_and_deviation(one, arma::sum(rows.units % rows.plain, 0), Pairs::all);
    return {renormalised.mean, renormalised.deviation, plain.mean, plain.deviation};
}

arma::mat without_zero_rows(const arma::mat& rows) {
    const arma::uvec kept = arma::find(arma::any(rows, 1));
    return kept.n_elem == rows.n_rows ? rows : arma::mat(rows.rows(kept));
}

}  // namespace

const std::array<QueryModel, 5>& query_models() {
    static const std::array<QueryModel, 5> models = {{
        {"", &BlockMetrics::other, "the other rows of the block", ""},
        {"_random", &BlockMetrics::random, "random directions", "random"},
        {"_aligned", &BlockMetrics::aligned,
         "the leading right singular vector of the block, with the sign that points towards its mean row", "aligned"},
        {"_own", &BlockMetrics::own, "the row itself", "own row"},
        {"_query", &BlockMetrics::dumped, "the model's queries at the tokens of the block (keys of dumps)", "dumped"},
    }};
    return models;
}

BlockMetrics measure_block(const arma::mat& block, const arma::mat& decoded, const BlockQueries& queries) {
    if (arma::size(block) != arma::size(decoded))
        throw data_error("a {} x {} block was decoded as {} x {}", block.n_rows, block.n_cols, decoded.n_rows,
                         decoded.n_cols);
    BlockMetrics metrics;
    const arma::mat error = decoded - block;
    metrics.relative_l2 = estimators::relative_l2(block, decoded);
    metrics.linear_gain = arma::dot(block, decoded) / arma::accu(arma::square(block));

    const arma::uvec kept = arma::find(arma::any(block, 1));
    RowErrors rows{unit_rows(block.rows(kept)), unit_rows(decoded.rows(kept)), error.rows(kept).t()};
    rows.renormalised -= rows.units;
    for (arma::uword t = 0; t < kept.n_elem; ++t) rows.plain.col(t) /= arma::norm(block.row(kept(t)));

    metrics.other = errors_for(rows.units, rows, Pairs::different);
    metrics.own = own_errors(rows);
    if (!queries.random.is_empty())
        metrics.random = errors_for(unit_rows(without_zero_rows(queries.random)), rows, Pairs::all);
    if (!queries.aligned.is_empty()) metrics.aligned = errors_for(unit_rows(queries.aligned), rows, Pairs::all);
    metrics.has_dumped_queries = !queries.dumped.is_empty();
    if (metrics.has_dumped_queries)
        metrics.dumped = errors_for(unit_rows(without_zero_rows(queries.dumped)), rows, Pairs::all);
    return metrics;
}

}  // namespace spiked::validation
