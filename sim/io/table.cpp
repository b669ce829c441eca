#include "sim/io/table.hpp"

#include "core/files/byte_file.hpp"
#include "sim/io/file_formats.hpp"
#include "sim/io/text_lines.hpp"

namespace spiked::sim {

Table read_table(const std::string& path, const TableReading& reading) {
    const ByteFile file(path);
    reject_other_format(file, ".csv");
    return table_of_lines(path, reading, [&](const auto& use) { each_line(file, use); });
}

}  // namespace spiked::sim
