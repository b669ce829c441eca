#include "estimators/inference/noise_tails.hpp"

#include <fmt/format.h>

#include <cmath>

namespace spiked::estimators {
namespace {

constexpr double least_lines = 8.0;

/// Means over one line of the squares and of the fourth powers, for every line that counts.
struct Lines {
    arma::vec squares;
    arma::vec fourth;
    double count = 0.0;

    /// Lines without entries above `nothing` are left out.
    Lines(const arma::vec& sums, const arma::vec& fourth_sums, double nothing) {
        const arma::uvec kept = arma::find(sums > nothing);
        squares = sums.elem(kept);
        fourth = fourth_sums.elem(kept);
        count = static_cast<double>(kept.n_elem);
    }
    [[nodiscard]] double mean_square_of_means() const { return arma::mean(arma::square(squares)); }
    /// The standard error of the mean fourth power over `fourth_moment` times the squared variance of the line, which
    /// is estimated by its squared mean square less what that varies by.
    [[nodiscard]] double error(double fourth_moment, double excess) const {
        const arma::vec left = fourth - fourth_moment * arma::square(squares) / excess;
        return arma::stddev(left) / std::sqrt(count);
    }
};

std::vector<double> fourth_powers(const arma::mat& vectors, arma::uword count) {
    std::vector<double> sums;
    for (arma::uword i = 0; i < count; ++i) sums.push_back(arma::accu(arma::square(arma::square(vectors.col(i)))));
    return sums;
}

}  // namespace

std::optional<NoiseTails> noise_tails(const arma::mat& block, std::span<const double> values,
                                      const SingularVectors& vectors) {
    const arma::uword rank = values.size();
    const arma::vec strengths(std::vector<double>(values.begin(), values.end()));
    arma::mat scaled;
    if (rank > 0) {
        scaled = vectors.left.head_cols(rank);
        scaled.each_row() %= strengths.t();
    }
    const auto squares_of = [&](arma::uword column) -> arma::vec {
        if (rank == 0) return arma::square(block.col(column));
        return arma::square(block.col(column) - scaled * vectors.right.head_cols(rank).row(column).t());
    };
    arma::vec of_rows(block.n_rows, arma::fill::zeros), of_columns(block.n_cols);
    arma::vec fourth_of_rows(block.n_rows, arma::fill::zeros), fourth_of_columns(block.n_cols);
    for (arma::uword j = 0; j < block.n_cols; ++j) {
        const arma::vec squares = squares_of(j);
        const arma::vec fourth = arma::square(squares);
        of_rows += squares;
        of_columns(j) = arma::accu(squares);
        fourth_of_rows += fourth;
        fourth_of_columns(j) = arma::accu(fourth);
    }
    const double all = arma::accu(of_rows);
    if (!(all > 1e-20 * arma::accu(arma::square(strengths)))) return std::nullopt;
    // Rows and columns of zeros have residuals of zeros, or of rounding errors.
    Lines rows(of_rows, fourth_of_rows, 1e-20 * all), columns(of_columns, fourth_of_columns, 1e-20 * all);
    const double n = rows.count;
    const double d = columns.count;
    if (n < least_lines || d < least_lines) return std::nullopt;
    const double unit = n * d / all;
    rows.squares *= unit / d, rows.fourth *= unit * unit / d;
    columns.squares *= unit / n, columns.fourth *= unit * unit / n;

    // The mean square of the estimated variances of rows is that of the variances, A, times 1 + (2 + k) B / d, and
    // likewise B for columns; the mean fourth power is (3 + k) A B.
    double k = 0.0, a = 1.0, b = 1.0;
    for (int round = 0; round < 50; ++round) {
        a = rows.mean_square_of_means() / (1.0 + (2.0 + k) * b / d);
        b = columns.mean_square_of_means() / (1.0 + (2.0 + k) * a / n);
        k = std::max(-2.0, arma::mean(rows.fourth) / (a * b) - 3.0);
    }
    const double error = std::max(rows.error((3.0 + k) * b, 1.0 + (2.0 + k) * b / d),
                                  columns.error((3.0 + k) * a, 1.0 + (2.0 + k) * a / n));
    return NoiseTails{k, error / (a * b), fourth_powers(vectors.left, rank), fourth_powers(vectors.right, rank)};
}

void add_note_on_tails(Shrinkage& found, const NoiseTails& tails) {
    if (!tails.heavy()) return;
    if (!found.note.empty()) found.note += "; ";
    found.note += fmt::format(
        "the entries behind the components have an excess kurtosis of {:.3g} (standard error {:.1g}, 0 for normal "
        "noise): heavy tails, or variances that differ within rows and columns. Intervals allow for it to first order "
        "only, tw-test and gd-shrink may count noise, and clip+NAME loses less (tw-test:null=signflip keeps its level "
        "where entries are symmetric)",
        tails.excess_kurtosis, tails.error);
}

}  // namespace spiked::estimators
