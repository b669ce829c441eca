#include <fmt/format.h>

#include <optional>

#include "reports/tables/kv_report.hpp"
#include "reports/tables/text_table.hpp"

// The part of kv_report.hpp on the curves that a frontier shows beside methods.

namespace spiked::reports {

std::string references_text(const std::vector<validation::SpectrumReference>& references, std::string_view side) {
    std::optional<TextTable> table;
    for (const auto& reference : references) {
        if (reference.side != side) continue;
        std::vector<std::string> header = {"relative L2 % at bits of"};
        std::vector<std::string> cells = {reference.name};
        for (const auto& [bits, error] : reference.points) {
            header.push_back(fmt::format("{:g}", bits));
            cells.push_back(fmt::format("{:.2f}", 100.0 * error));
        }
        if (!table) table.emplace(header);
        table->add(cells);
    }
    return table ? table->text() + "\n" : "";
}

Json references_json(const std::vector<validation::SpectrumReference>& references) {
    Json list = Json::array();
    for (const auto& reference : references)
        for (const auto& [bits, error] : reference.points)
            list.push(Json::object({{"side", reference.side},
                                    {"name", reference.name},
                                    {"bits_per_entry", bits},
                                    {"relative_l2", error}}));
    return list;
}

}  // namespace spiked::reports
