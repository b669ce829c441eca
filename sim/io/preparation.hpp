#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/text/enum_names.hpp"
#include "sim/io/matrix_file.hpp"

namespace spiked::sim {

/// The lines of a matrix that a preparation is about.
enum class Lines { none, rows, columns, both };

/// What is done to a matrix before a method sees it. By default nothing is.
struct Preparation {
    Lines center = Lines::none;       ///< both: double centring
    Lines standardize = Lines::none;  ///< rows or columns, which it also centres

    [[nodiscard]] bool empty() const { return center == Lines::none && standardize == Lines::none; }
    /// The lines whose mean is 0 afterwards.
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
    /// Throws usage_error for other lines to centre than to standardize, which would undo each other.
    void check() const;
};

/// The prepared matrix, of the same shape, and notes on constant lines that centring made zero and on zero lines that
/// it took for data.
///
/// Every entry counts: a zero row is a sample of zeros when columns are centred, as for NumPy, R and scikit-learn, and
/// afterwards it is minus their means. Lines that are still zero then may be left out as before.
///
/// Columns are centred by subtracting the mean of each (`scale(x, scale = FALSE)` in R), rows likewise; both means
/// x_ij - mean of row i - mean of column j + mean of all. To standardize columns is to centre them and to divide each
/// by its standard deviation with n - 1 in the denominator, as `scale(x)` in R. scikit-learn's StandardScaler divides
/// by n, so that its values are larger by sqrt(n / (n - 1)) throughout.
///
/// Centred columns are orthogonal to the vector of ones: n rows have rank n - 1, and where n <= d the smallest singular
/// value is 0 (`Preparation::independent_shape`).
///
/// Throws input_error with the number of lines and the first one where a line to be standardized is constant (zero
/// lines too), and for a single row or column, of which centring would leave nothing. Cost O(n d), accurate to rounding
/// of the largest entry of a line.
[[nodiscard]] NotedMatrix prepared(arma::mat matrix, const Preparation& preparation);

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

}  // namespace spiked::sim

template <>
struct spiked::EnumNames<spiked::sim::Lines> {
    static constexpr EnumName<spiked::sim::Lines> table[] = {{spiked::sim::Lines::none, "none"},
                                                             {spiked::sim::Lines::rows, "rows"},
                                                             {spiked::sim::Lines::columns, "columns"},
                                                             {spiked::sim::Lines::both, "both"}};
};
