#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "validation/kv/kv_table.hpp"
#include "validation/store/sqlite.hpp"

namespace spiked::validation {

/// A method at a number of bits that lies within the measured range of every method in the comparison.
struct EqualBits {
    std::string group;  ///< the side in a dump study, otherwise the label of the cell
    std::string method;
    double bits_per_entry = 0.0;
    MeanAndError error;  ///< the requested metric
    MeanAndError ratio;  ///< to the first method at the same bits; clusters are paired
};

struct EqualBitsTable {
    std::vector<EqualBits> rows;
    /// A method whose range of bits does not overlap that of the compared methods.
    struct Outside {
        std::string group;
        std::string method;
        double least = 0.0;
        double most = 0.0;
    };
    std::vector<Outside> outside;

    [[nodiscard]] std::vector<std::string> groups() const;  ///< of rows and outside, in their order
    /// The methods of a group that are not compared, with the reason, as a sentence; empty if all are compared.
    [[nodiscard]] std::string outside_text(const std::string& group) const;
};

/// Compares methods at equal stored bits: the logarithm of the mean relative L2 error is interpolated linearly in the
/// mean stored bits between neighbouring bit widths. Within each side (in studies other than dump studies: each cell)
/// it compares as many methods as possible whose ranges of bits have a common point; the others are listed in
/// `outside`. Levels are the multiples of half a bit in the common range, or its midpoint if there are none. A group
/// with fewer than two methods of more than one bit width is skipped.
///
/// Standard errors come from the clusters of the dump study (in other studies: from batches) as in Parts::mean,
/// propagated through the interpolation to first order. They include the variation of bits, which vary with the rank.
/// NaN with one cluster.
[[nodiscard]] EqualBitsTable equal_bits(Database& store);
/// The same for a dump study, any positive metric and one number of bits: for each side, the methods whose range of
/// bits contains it, smallest error first; ratios are to that first method. Values have no rotary embedding, so for
/// values a method with `unrope+` is left out if the study also has it without.
[[nodiscard]] std::vector<EqualBits> methods_at(Database& store, double bits, std::string_view metric);

struct BitsAndError {
    double bits = 0.0;   ///< per entry
    double error = 0.0;  ///< ||X - X^|| / ||X||, or another metric for which smaller is better
};
/// Which points lie on the lower convex hull of log(error) as a function of bits. An error of 0 or less (no loss
/// detectable above the noise) ends the hull: among such points the one with the fewest bits is on the hull, and no
/// point with more bits is.
[[nodiscard]] std::vector<bool> convex_hull(const std::vector<BitsAndError>& points);
/// Which rows of a table lie on the hull of their side, for the metric as a function of bits_per_entry.
[[nodiscard]] std::vector<bool> convex_hull(const KvTable& table, std::string_view metric);
/// Whether the table has the method of a row of values also without `unrope`, which has no effect on values.
[[nodiscard]] bool repeats_without_unrope(const KvTable& table, const KvRow& row);

}  // namespace spiked::validation
