#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "validation/kv_measurement.hpp"
#include "validation/sqlite.hpp"

namespace spiked::validation {

/// A method of one side at a number of bits that every method of the side is measured around.
struct EqualBits {
    std::string side;
    std::string method;
    double bits_per_entry = 0.0;
    ClusteredValue error;  ///< of the metric asked for
    ClusteredValue ratio;  ///< to the first method at the same bits; clusters are paired
};

/// What methods lose at equal stored bits, from the store of a dump study: the logarithm of the mean relative L2 error,
/// interpolated linearly in the mean stored bits between neighbouring bit widths. Levels are the multiples of half a
/// bit that lie between the measured ends of every method, or the middle of that range when there is none; a method
/// with one bit width has no range and is left out. Nothing for a side with fewer than two methods, or whose ranges do
/// not meet.
///
/// Errors are those of v_cluster carried through the interpolation to first order: of errors and of bits, which vary
/// where ranks do. NaN with one cluster.
[[nodiscard]] std::vector<EqualBits> equal_bits(Database& store);
/// The same for any metric that is positive, at one number of bits: by side, the methods whose bit widths reach around
/// it, the least error first; ratios are to that one. Values have no rotary embedding: a method is left out there
/// behind `unrope` when it also stands without.
[[nodiscard]] std::vector<EqualBits> methods_at(Database& store, double bits, std::string_view metric);

/// Which rows of a table lie on the lower convex hull of their side: the logarithm of the metric over bits_per_entry.
[[nodiscard]] std::vector<bool> convex_hull(const KvTable& table, std::string_view metric);
/// Whether the method of a row of values is there a second time, without the `unrope` that does nothing to values.
[[nodiscard]] bool repeats_without_unrope(const KvTable& table, const KvRow& row);

}  // namespace spiked::validation
