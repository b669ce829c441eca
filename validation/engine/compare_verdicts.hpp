#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "validation/store/sqlite.hpp"

namespace spiked::validation {

/// A check or claim of a study that two stores have judged: on the same cell, by the same method.
struct ComparedVerdict {
    std::string check;
    std::string cell;  ///< judged_cell
    std::string method;
    std::string metric;
    int k = 0;
    bool of_exponent = false;
    struct Side {
        std::string verdict;
        double estimate = 0.0;
        double standard_error = 0.0;
        std::uint64_t count = 0;
        double expected = 0.0;  ///< NaN where the claim states a region only
        double allowed_low = 0.0;
        double allowed_high = 0.0;
    };
    Side a;
    Side b;

    [[nodiscard]] bool same() const { return a.verdict == b.verdict; }
};

struct VerdictComparison {
    std::vector<ComparedVerdict> rows;  ///< in the order of store a
    std::size_t only_a = 0;             ///< verdicts of that store only
    std::size_t only_b = 0;

    /// Number of rows whose verdicts differ.
    [[nodiscard]] std::size_t others() const;
};

/// Joins the verdicts of two stores of studies. `cells` has the cell of b for each cell of a that b has too.
[[nodiscard]] VerdictComparison compare_verdicts(Database& a, Database& b,
                                                 const std::map<std::int64_t, std::int64_t>& cells);

}  // namespace spiked::validation
