#include "estimators/ranks/bi_cross_validation.hpp"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>

#include "core/runtime/stop_point.hpp"
#include "estimators/svd/relative_spectrum.hpp"
#include "sim/random/address.hpp"

namespace spiked::estimators {
namespace {

/// The fold of each of `count` rows or columns: Fisher and Yates' order of 0, 1, .., folds - 1, 0, 1, ..
std::vector<std::size_t> folds_in_random_order(const stream::Stream& stream, std::size_t count, std::size_t folds) {
    std::vector<std::size_t> of(count);
    for (std::size_t i = 0; i < count; ++i) of[i] = i % folds;
    for (std::size_t i = count; i > 1; --i) {
        const stream::PhiloxCounter words = stream.words(static_cast<std::uint32_t>(i - 1));
        const std::uint64_t word = static_cast<std::uint64_t>(words[0]) << 32 | words[1];
        std::swap(of[i - 1], of[word % i]);
    }
    return of;
}

/// The indices of a fold, and the others.
std::pair<arma::uvec, arma::uvec> fold_and_others(const std::vector<std::size_t>& of, std::size_t fold) {
    std::vector<arma::uword> in, out;
    for (std::size_t i = 0; i < of.size(); ++i) (of[i] == fold ? in : out).push_back(i);
    return {arma::uvec(in), arma::uvec(out)};
}

/// The errors of one pair of folds.
std::vector<double> errors_of_pair(const arma::mat& a, const arma::mat& b, const arma::mat& c, const arma::mat& d) {
    arma::mat u, v;
    arma::vec s;
    if (d.is_empty() || !arma::svd_econ(u, s, v, d)) return {};
    const arma::mat left = b * v;
    const arma::mat right = u.t() * c;
    arma::mat rest = a;
    std::vector<double> errors = {arma::accu(arma::square(rest))};
    for (arma::uword k = 0; k < s.n_elem; ++k) {
        if (relative_value(s[k], s[0], std::max(d.n_rows, d.n_cols)) == 0.0) break;
        rest -= left.col(k) * (right.row(k) / s[k]);
        errors.push_back(arma::accu(arma::square(rest)));
    }
    return errors;
}

}  // namespace

HeldOutFolds random_folds(const arma::mat& matrix, std::size_t folds) {
    static const stream::StudySeed seed = stream::StudySeed::parse("0x516a");
    const std::string_view bytes(reinterpret_cast<const char*>(matrix.memptr()), matrix.n_elem * sizeof(double));
    const auto of = [&](std::size_t count, std::uint64_t side) {
        return folds_in_random_order(stream::Stream(seed, bytes, stream::Role::resampling, side), count, folds);
    };
    return {folds, of(matrix.n_rows, 0), of(matrix.n_cols, 1)};
}

std::vector<double> held_out_errors(const arma::mat& matrix, const HeldOutFolds& folds) {
    std::vector<double> errors;
    for (std::size_t i = 0; i < folds.folds; ++i)
        for (std::size_t j = 0; j < folds.folds; ++j) {
            stop_point();
            const auto [rows, other_rows] = fold_and_others(folds.of_row, i);
            const auto [columns, other_columns] = fold_and_others(folds.of_column, j);
            const std::vector<double> of_pair =
                errors_of_pair(matrix.submat(rows, columns), matrix.submat(rows, other_columns),
                               matrix.submat(other_rows, columns), matrix.submat(other_rows, other_columns));
            if (i + j == 0) errors.assign(of_pair.size(), 0.0);
            errors.resize(std::min(errors.size(), of_pair.size()));
            for (std::size_t k = 0; k < errors.size(); ++k) errors[k] += of_pair[k];
        }
    return errors;
}

std::size_t bi_cross_validation_rank(const arma::mat& matrix, std::size_t folds) {
    if (std::min(matrix.n_rows, matrix.n_cols) < folds) return 0;
    const double largest = arma::abs(matrix).max();
    if (largest == 0.0) return 0;
    const std::vector<double> errors = held_out_errors(matrix / largest, random_folds(matrix, folds));
    return static_cast<std::size_t>(std::min_element(errors.begin(), errors.end()) - errors.begin());
}

}  // namespace spiked::estimators
