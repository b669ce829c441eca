#include "app/studies/store_results.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "core/runtime/error.hpp"
#include "core/text/printable.hpp"
#include "reports/page/html_report.hpp"
#include "reports/tables/export.hpp"
#include "reports/tables/kv_report.hpp"
#include "reports/tables/store_queries.hpp"
#include "reports/tables/store_text.hpp"
#include "validation/kv/kv_table.hpp"
#include "validation/store/open_store.hpp"

namespace spiked::app {

std::string partial_text(validation::Database& store) {
    validation::Statement study(store, "SELECT status FROM study");
    if (!study.step()) throw validation::damaged_store(store.path(), "it has no study");
    if (study.text(0) == "complete") return "";
    return fmt::format("PARTIAL ({}): {} of {}{} replicates\n\n", one_line(study.text(0)),
                       store.integer("SELECT coalesce(sum(reps), 0) FROM batch"),
                       store.integer("SELECT sum(reps_least < reps_target) FROM cell") > 0 ? "at most " : "",
                       store.integer("SELECT sum(reps_target) FROM cell"));
}

std::string results_text(validation::Database& store) {
    const std::string partial = partial_text(store);
    if (reports::replicate_name(store) == "block")
        return partial + reports::kv_text(kv_table(store), equal_bits(store));
    if (reports::is_dump_study(store))
        return partial + reports::frontier_text(kv_table(store), reports::frontier_metric(store), {});
    if (store.integer("SELECT count(*) FROM verdict") == 0)
        return partial + reports::export_table(store, "summary", "text");
    return partial + reports::checks_text(store);
}

std::string page_beside(const std::string& store, const char* advice) {
    const std::string page = std::filesystem::path(store).replace_extension(".html").string();
    if (!reports::may_replace(page))
        throw output_error("{}: would be replaced by the report, and is no report of this program: {}, or move it",
                           page, advice);
    return page;
}

}  // namespace spiked::app
