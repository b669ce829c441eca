#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/text/enum_names.hpp"
#include "sim/io/matrix_file.hpp"

namespace spiked::sim {

/// The part of a matrix that a preparation is about.
enum class Lines { none, rows, columns, both };

/// What the probability that an entry is seen depends on, for matrices with missing entries, which are NaN. Entries are
/// taken to be seen independently of each other and of their values. `none`: no entry may be missing; `uniform`: one
/// probability p for all; `rows`, `columns`: one for each; `both`: p_ij = r_i c_j / p.
enum class Missing { none, uniform, rows, columns, both };

/// What is done to a matrix before a method sees it. By default nothing is.
struct Preparation {
    Lines center = Lines::none;       ///< both: double centring
    Lines standardize = Lines::none;  ///< rows or columns, which it also centres
    Missing missing = Missing::none;

    [[nodiscard]] bool empty() const {
        return center == Lines::none && standardize == Lines::none && missing == Missing::none;
    }
    /// The rows or columns that have mean 0 afterwards.
    [[nodiscard]] Lines centered() const { return standardize == Lines::none ? center : standardize; }
    [[nodiscard]] bool centers(Lines side) const { return centered() == Lines::both || centered() == side; }
    /// A shape {rows, columns} without the dimensions that centring takes: noise of n rows with centred columns has the
    /// singular values of n - 1 rows of noise, and one that is 0 where n <= d.
    template <class Shape>
    [[nodiscard]] Shape independent_shape(Shape shape) const {
        if (shape.rows > 0 && centers(Lines::columns)) --shape.rows;
        if (shape.columns > 0 && centers(Lines::rows)) --shape.columns;
        return shape;
    }
    /// Throws usage_error where rows are to be centred and columns standardized, or the other way, which would undo
    /// each other.
    void check() const;
};

/// The entries that are seen of a matrix, and the weight of each, 1 / p_ij = row_weights[i] * column_weights[j].
struct SeenEntries {
    double share = 1.0;                  ///< in rows and columns of which some entry is seen
    std::size_t missing = 0;             ///< number of missing entries
    arma::Mat<unsigned char> seen = {};  ///< 1 or 0; empty where nothing is missing, as the weights
    arma::vec row_weights = {};          ///< 0 for rows of which no entry is seen
    arma::rowvec column_weights = {};

    /// The entries without their weights, NaN where they are missing, of the weighted matrix.
    [[nodiscard]] arma::mat unweighted(const arma::mat& weighted) const;
};

/// Replaces NaN by 0 and multiplies every other entry by its weight. Averaged over which entries are seen, the result
/// is the whole matrix (inverse-probability weighting, Horvitz and Thompson 1952), because the expected value of
/// seen_ij / p_ij is 1: a low-rank part keeps its singular values and vectors, and what the weights add is noise
/// (theory/laws/missing_entries.hpp). Probabilities are estimated by the shares seen: p = seen / (n d), r_i and c_j
/// those of row i and column j; rows and columns of which nothing is seen stay zero and do not count. Infinite entries
/// are the caller's to reject. Throws input_error where every entry is missing. Cost O(n d).
[[nodiscard]] SeenEntries weight_seen_entries(arma::mat& matrix, Missing kind);

struct PreparedMatrix : NotedMatrix {
    SeenEntries entries = {};
};

/// The prepared matrix, of the same shape, and notes on constant rows and columns that centring made zero and on zero
/// ones that it took for data.
///
/// Every entry counts: a zero row is a sample of zeros when columns are centred, as for NumPy, R and scikit-learn, and
/// afterwards it is minus their means. Rows and columns that are still zero then may be left out as before.
///
/// Columns are centred by subtracting the mean of each (`scale(x, scale = FALSE)` in R), rows likewise; both means
/// x_ij - mean of row i - mean of column j + mean of all. To standardize columns is to centre them and to divide each
/// by its standard deviation with n - 1 in the denominator, as `scale(x)` in R. scikit-learn's StandardScaler divides
/// by n, so that its values are larger by sqrt(n / (n - 1)) throughout.
///
/// Centred columns are orthogonal to the vector of ones: n rows have rank n - 1, and where n <= d the smallest singular
/// value is 0 (`Preparation::independent_shape`).
///
/// Where entries may be missing, means and deviations are those of the entries seen (for `both`, the least-squares fit
/// of row and column effects to them), and then the entries are weighted (`weight_seen_entries`). Notes say how many
/// are missing, and where the shares seen of rows or of columns differ by more than chance (chi-square test at level
/// 1e-4) although the weights take them as equal.
///
/// Throws input_error with the number of rows or columns and the first one where one to be standardized is constant
/// (zero ones too), and for a single row or column, of which centring would leave nothing. Cost O(n d), accurate to
/// rounding of the largest entry of a row or column.
[[nodiscard]] PreparedMatrix prepared(arma::mat matrix, const Preparation& preparation);

/// What is known about a matrix when its notes are written.
struct NoteContext {
    bool of_text = false;                 ///< a table of text: its reader has said what counts in it
    std::optional<double> largest_value;  ///< the largest singular value, without which means are not noted
};

/// Sentences on what may surround the data in a matrix as it was read: a first row or column that counts 0, 1, 2, ...
/// or 1, 2, 3, ... (of at least 3), a matrix that could be a covariance or correlation matrix (symmetric, of positive
/// diagonal and no entry above that of a correlation of 1; at least 3 x 3), and means of columns or rows that make up
/// more than half of the square of the largest singular value while chance would leave a tenth of them at most.
/// Cost O(n d).
[[nodiscard]] std::vector<std::string> data_notes(const arma::mat& matrix, const NoteContext& context = {});

/// The last of these sentences alone. Of weighted entries (`weight_seen_entries`) too, whose means estimate those of
/// the whole matrix.
[[nodiscard]] std::optional<std::string> note_on_means(const arma::mat& matrix, double largest_value);

/// What a symmetric matrix changes: its limits are those of independent entries, their fluctuations are not. Nothing
/// for other matrices, nor for those of a positive diagonal, which look like covariances. docs/METHODS.md, "Symmetric
/// matrices".
[[nodiscard]] std::optional<std::string> note_on_symmetry(const arma::mat& matrix);

/// The largest singular value for those sentences, by power iteration from the means: right where they make up most of
/// it, never too large. 0 where the means of rows and columns are 0. Cost O(n d).
[[nodiscard]] double largest_value_of_means(const arma::mat& matrix);

}  // namespace spiked::sim

template <>
struct spiked::EnumNames<spiked::sim::Lines> {
    static constexpr EnumName<spiked::sim::Lines> table[] = {{spiked::sim::Lines::none, "none"},
                                                             {spiked::sim::Lines::rows, "rows"},
                                                             {spiked::sim::Lines::columns, "columns"},
                                                             {spiked::sim::Lines::both, "both"}};
};

template <>
struct spiked::EnumNames<spiked::sim::Missing> {
    static constexpr EnumName<spiked::sim::Missing> table[] = {{spiked::sim::Missing::none, "none"},
                                                               {spiked::sim::Missing::uniform, "uniform"},
                                                               {spiked::sim::Missing::rows, "rows"},
                                                               {spiked::sim::Missing::columns, "columns"},
                                                               {spiked::sim::Missing::both, "both"}};
};
