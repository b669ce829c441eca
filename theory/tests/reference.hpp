#pragma once
#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <string>
#include <vector>

#include "theory/laws/spectrum.hpp"

namespace spiked::theory::test {

inline constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
inline constexpr double infinite = std::numeric_limits<double>::infinity();

/// The path of a file in theory/.
[[nodiscard]] std::string data_file(const std::string& name);

/// One row of theory_reference.csv: numbers by column name. The last column is text and is left out.
struct ReferenceRow {
    std::string setting;
    std::map<std::string, double> value;
};

[[nodiscard]] std::vector<ReferenceRow> reference_rows();

/// The atoms that theory_settings.csv lists for side A (rows) or B (columns).
[[nodiscard]] Spectrum reference_spectrum(const std::string& setting, const std::string& side);

void expect_relative(double found, double expected, double tolerance, const std::string& what);

/// Expects the action to throw a usage error with a one-line message that contains `text`.
template <class Action>
void expect_rejected(Action action, const std::string& text) {
    try {
        action();
        ADD_FAILURE() << "accepted, but it should be rejected with: " << text;
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::usage);
        EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
        EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    }
}

}  // namespace spiked::theory::test
