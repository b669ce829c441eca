#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "validation/engine/sqlite.hpp"
#include "validation/kv/kv_table.hpp"

namespace spiked::validation {

/// A method at a number of bits that every method it is compared with is measured around.
struct EqualBits {
    std::string group;  ///< the side in a dump study, else the label of the cell
    std::string method;
    double bits_per_entry = 0.0;
    MeanAndError error;  ///< of the metric asked for
    MeanAndError ratio;  ///< to the first method at the same bits; clusters are paired
};

struct EqualBitsTable {
    std::vector<EqualBits> rows;
    /// A method whose bits reach none that the others are measured around.
    struct Outside {
        std::string group;
        std::string method;
        double least = 0.0;
        double most = 0.0;
    };
    std::vector<Outside> outside;

    [[nodiscard]] std::vector<std::string> groups() const;  ///< of either, in their order
    /// Who of a group is not compared and why, as a sentence; empty where all are.
    [[nodiscard]] std::string outside_text(const std::string& group) const;
};

/// What methods lose at equal stored bits: the logarithm of the mean relative L2 error, interpolated linearly in the
/// mean stored bits between neighbouring bit widths. Compared are those methods of a side (in other studies than dumps:
/// of a cell) that can be around one number of bits, as many as possible; the others stand in `outside`. Levels are the
/// multiples of half a bit between the measured ends of every method compared, or the middle of that range when there
/// is none. Nothing for a group with fewer than two methods of more than one bit width.
///
/// Errors are those of v_cluster (in other studies: of batches) carried through the interpolation to first order: of
/// errors and of bits, which vary where ranks do. NaN with one cluster.
[[nodiscard]] EqualBitsTable equal_bits(Database& store);
/// The same of a dump study for any metric that is positive, at one number of bits: by side, the methods whose bit
/// widths reach around it, the least error first; ratios are to that one. Values have no rotary embedding: a method is
/// left out there behind `unrope` when it also stands without.
[[nodiscard]] std::vector<EqualBits> methods_at(Database& store, double bits, std::string_view metric);

struct BitsAndError {
    double bits = 0.0;   ///< an entry
    double error = 0.0;  ///< ||X - X^|| / ||X||, or another that is smaller where less is lost
};
/// Which points lie on the lower convex hull of the logarithms of errors over bits. An error at or below 0 (nothing
/// lost that its noise could tell) ends the hull: of such points the one of fewest bits is on it, and none of more
/// bits.
[[nodiscard]] std::vector<bool> convex_hull(const std::vector<BitsAndError>& points);
/// Which rows of a table lie on that of their side: the metric over bits_per_entry.
[[nodiscard]] std::vector<bool> convex_hull(const KvTable& table, std::string_view metric);
/// Whether the method of a row of values is there a second time, without the `unrope` that does nothing to values.
[[nodiscard]] bool repeats_without_unrope(const KvTable& table, const KvRow& row);

}  // namespace spiked::validation
