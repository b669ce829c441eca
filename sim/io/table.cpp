#include "sim/io/table.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <iterator>

#include "core/files/byte_file.hpp"
#include "core/files/output_file.hpp"
#include "core/runtime/error.hpp"
#include "core/text/names.hpp"
#include "sim/io/file_formats.hpp"
#include "sim/io/npy.hpp"
#include "sim/io/text_lines.hpp"

namespace spiked::sim {

Table read_table(const std::string& path, const TableReading& reading) {
    const ByteFile file(path);
    reject_other_format(file, ".csv");
    return table_of_lines(path, reading, [&](const auto& use) { each_line(file, use); });
}

namespace {

std::string suffix_of(const std::string& path) { return lower_case(std::filesystem::path(path).extension().string()); }

}  // namespace

void require_matrix_name(const std::string& path) {
    const std::string suffix = suffix_of(path);
    if (!suffix.empty() && suffix != ".npy" && suffix != ".csv")
        throw usage_error("{}: matrices are not written as {}: name it FILE.npy or FILE.csv", path, suffix);
}

void write_matrix(const std::string& path, const arma::mat& matrix) {
    if (suffix_of(path) != ".csv") return write_npy(path, matrix);
    constexpr std::size_t bytes_of_number = 20;  // with its comma, mostly
    OutputFile file(path, matrix.n_elem * bytes_of_number);
    for (std::size_t i = 0; i < matrix.n_rows; ++i) {
        fmt::memory_buffer line;
        for (std::size_t j = 0; j < matrix.n_cols; ++j)
            fmt::format_to(std::back_inserter(line), "{}{}", j == 0 ? "" : ",", matrix(i, j));
        line.push_back('\n');
        file.write(fmt::to_string(line));
    }
    file.commit();
}

}  // namespace spiked::sim
