#include "theory/tests/reference.hpp"

#include <cmath>
#include <fstream>
#include <sstream>

namespace spiked::theory::test {
namespace {

std::vector<std::string> fields(const std::string& line) {
    std::vector<std::string> parts;
    std::stringstream stream(line);
    for (std::string part; std::getline(stream, part, ',');) parts.push_back(part);
    return parts;
}

}  // namespace

std::string data_file(const std::string& name) { return std::string(SPIKED_SOURCE_DIR) + "/theory/" + name; }

std::vector<ReferenceRow> reference_rows() {
    std::ifstream file(data_file("laws/tests/data/theory_reference.csv"));
    std::vector<std::string> names;
    std::vector<ReferenceRow> rows;
    for (std::string line; std::getline(file, line);) {
        if (line.empty() || line[0] == '#') continue;
        const auto parts = fields(line);
        if (names.empty()) {
            names = parts;
            continue;
        }
        ReferenceRow row{parts[0], {}};
        for (std::size_t i = 1; i + 1 < names.size(); ++i) row.value[names[i]] = std::stod(parts[i]);
        rows.push_back(row);
    }
    return rows;
}

Spectrum reference_spectrum(const std::string& setting, const std::string& side) {
    std::ifstream file(data_file("laws/tests/data/theory_settings.csv"));
    std::vector<Atom> atoms;
    for (std::string line; std::getline(file, line);) {
        const auto parts = fields(line);
        if (parts.size() == 5 && parts[0] == setting && parts[2] == side)
            atoms.push_back({std::stod(parts[3]), std::stod(parts[4])});
    }
    return Spectrum(std::move(atoms));
}

void expect_relative(double found, double expected, double tolerance, const std::string& what) {
    EXPECT_LE(std::abs(found - expected), tolerance * std::abs(expected))
        << what << ": found " << found << ", expected " << expected;
}

}  // namespace spiked::theory::test
