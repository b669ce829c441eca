#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <optional>

#include "app/cli/command.hpp"
#include "app/studies/store_results.hpp"
#include "app/studies/stored_claims.hpp"
#include "app/studies/study_run.hpp"
#include "core/files/output_file.hpp"
#include "core/runtime/error.hpp"
#include "core/text/names.hpp"
#include "core/text/printable.hpp"
#include "reports/page/claim_page.hpp"
#include "reports/page/html_report.hpp"
#include "reports/page/printed_values.hpp"
#include "reports/tables/claim_report.hpp"
#include "reports/tables/export.hpp"
#include "reports/tables/store_queries.hpp"
#include "reports/tables/store_text.hpp"
#include "validation/engine/judge.hpp"
#include "validation/store/open_store.hpp"
#include "validation/verdicts/claim_study.hpp"

// What a store holds, for people and for other programs: report, show, export.
namespace spiked::app {

namespace fs = std::filesystem;

namespace {

/// Throws input_error if a printed value has no counterpart in the store. A difference is no error, because the
/// comparison is made to show it.
void reject_uncompared(const Arguments& arguments, const std::string& path) {
    if (!arguments.has("--against")) return;
    validation::Database store = validation::open_store(path);
    const auto alone = reports::printed_without_partner(store, arguments.text("--against"));
    if (!alone.empty())
        throw input_error(
            "{}{} (the store has no such mean): correct the file, or name a store that measured it", alone.front(),
            alone.size() > 1 ? fmt::format(" and {} more printed values have no counterpart", alone.size() - 1)
                             : " has no counterpart");
}

/// The pages of a store of claims in Markdown; other stores have none.
std::vector<reports::ClaimPage> markdown_pages(const Arguments& arguments, const std::string& path) {
    for (const char* option : {"--figures", "--figure-format", "--against"})
        if (arguments.has(option))
            throw usage_error("{} has no place on a page of claims in Markdown: leave it out, or name FILE.html",
                              option);
    validation::Database store = open_judged(arguments, arguments.positionals.front());
    if (arguments.positionals.size() > 1 || !validation::holds_claims(store))
        throw usage_error("{}: only one store of claims (spiked validate -o) makes a page in Markdown: name FILE.html",
                          path);
    const auto claims = claims_of(arguments, store);
    auto pages = reports::claim_pages(store, validation::stored_verdicts(store, claims), path);
    for (const auto& page : pages) keep_apart(page.path, store.path());
    return pages;
}

int report(const Arguments& arguments) {
    const auto& stores = arguments.positionals;
    if (stores.size() > 1 && !arguments.has("--output"))
        throw usage_error("report: -o is missing (the page of {} stores): add for example -o report.html",
                          stores.size());
    const std::string path =
        arguments.has("--output") ? arguments.text("--output") : page_beside(stores.front(), "name the page with -o");
    for (const auto& store : stores) keep_apart(path, store);
    Json written = Json::array();
    if (path.ends_with(".md")) {
        for (const auto& page : markdown_pages(arguments, path)) {
            write_file(page.path, page.text);
            written.push(page.path);
        }
    } else {
        std::vector<validation::Claim> claims;
        if (stores.size() == 1) {
            validation::Database store = validation::open_store(stores.front());
            claims = claims_of(arguments, store);
        }
        reports::write_html_report(stores, path,
                                   {.figure_folder = arguments.text("--figures"),
                                    .figure_formats = arguments.list("--figure-format"),
                                    .against = arguments.text("--against"),
                                    .claims = claims,
                                    .false_alarm = false_alarm_of(arguments)});
        written.push(path);
    }
    if (arguments.json())
        print_json(Json::object({{"schema", "spiked.report/1"},
                                 {"store", stores.front()},
                                 {"stores", Json(Json::Array(stores.begin(), stores.end()))},
                                 {"report", path},
                                 {"pages", written}}));
    else
        for (const Json& page : *written.items()) print_text(fmt::format("report   {}\n", *page.string()));
    reject_uncompared(arguments, stores.front());
    return 0;
}

int show(const Arguments& arguments) {
    validation::Database store = open_judged(arguments, arguments.positionals.front());
    const std::string table =
        arguments.text("--table").empty() && arguments.has("--metric") ? "methods" : arguments.text("--table");
    const std::string format = arguments.json() ? "json" : "text";
    const auto print = arguments.json() ? print_data : print_text;
    const bool verdicts = validation::holds_claims(store) && table.empty() && !arguments.has("--against");
    const auto claims = verdicts || table == "checks" ? claims_of(arguments, store) : std::vector<validation::Claim>{};
    if (verdicts) {
        const auto found = validation::stored_verdicts(store, claims);
        print(arguments.json() ? reports::claims_json(found).text(2) + "\n"
                               : partial_text(store) + reports::stored_claims_text(found, arguments.verbose()));
    } else if (arguments.has("--against")) {
        print(reports::against_printed(store, arguments.text("--against"), format));
        reject_uncompared(arguments, arguments.positionals.front());
    } else if (arguments.json() || !table.empty())
        print(reports::export_table(store, table.empty() ? "summary" : table, format, arguments.list("--metric"),
                                    claims));
    else
        print_text(results_text(store));
    return 0;
}

int export_store(const Arguments& arguments) {
    validation::Database store = open_judged(arguments, arguments.positionals.front());
    const std::string format = arguments.json() ? "json" : arguments.text("--format");
    const std::string table = arguments.text("--table");
    const std::map<std::string, std::string> suffixes = {
        {"csv", ".csv"}, {"json", ".json"}, {"npy", ".npy"}, {"latex", ".tex"}};
    const std::string suffix = fs::path(arguments.text("--output")).extension().string();
    for (const auto& [other, of] : suffixes)
        if (suffix == of && other != format)
            throw usage_error(
                "{}: its name is that of a {} file, but {} is to be written: give --format {}, or another name",
                arguments.text("--output"), other, format, other);
    if (format == "npy" && !arguments.has("--output") && isatty(STDOUT_FILENO) != 0)
        throw usage_error("--format npy is binary, and standard output is a terminal: add -o FILE.npy, or > FILE.npy");
    const std::string content =
        format == "npy"
            ? reports::export_npy(store, table)
            : reports::export_table(store, table, format, arguments.list("--metric"),
                                    table == "checks" ? claims_of(arguments, store) : std::vector<validation::Claim>{});
    if (!arguments.has("--output")) {
        print_data(content);
        return 0;
    }
    keep_apart(arguments.text("--output"), arguments.positionals.front());
    write_file(arguments.text("--output"), content);
    return 0;
}

ValueSpec one_table() { return one_of(reports::store_tables().names()); }

const OptionSpec against = {
    "--against", file_with({".csv"}),
    "compare means with printed values: table,cell,method,metric,printed,note; exit 4 when one has no counterpart"};
const OptionSpec false_alarm = false_alarm_option("judge checks and claims");
const OptionSpec metric = {"--metric", names_from({"metrics"}, several(any_text("NAME"))),
                           "columns of the table methods; all when not given", "", true};

}  // namespace

Command report_command() {
    return {
        "report",
        "render stores as one self-contained HTML page, or claims in Markdown",
        {"spiked report results/demo.spiked", "spiked report a.spiked b.spiked -o both.html",
         "spiked report results/demo.spiked -o page.html --figures figures/ --figure-format pdf,svg",
         "spiked report paper-tables.spiked --against validation/studies/paper-tables.csv",
         "spiked report claims.spiked -o CLAIMS.md"},
        file_with({".spiked"}, "STORE.spiked"),
        1,
        1000,
        {{"-o,--output", file_with({".html", ".md"}, "FILE.html|FILE.md"),
          "where to write the page; beside the store when not given. A store of claims can also be a page in Markdown, "
          "that of spiked validate -o"},
         {"--figures", any_text("FOLDER"), "also write each figure there: picture, gnuplot script and data"},
         {.key = "--figure-format",
          .value = several(one_of({"svg", "pdf", "png"})),
          .help = "formats of the pictures",
          .fallback = "svg",
          .repeatable = true,
          .needs = {{"--figures"}, "pictures are written there"}},
         false_alarm,
         against},
        report};
}

Command show_command() {
    OptionSpec compared = against;
    compared.excludes = {{"--table"}, "it makes a table of its own"};
    return {"show",
            "print a store: its checks, the paper's table for dumps, or any table",
            {"spiked show results/demo.spiked", "spiked show results/demo.spiked --table summary",
             "spiked show paper-tables.spiked --against validation/studies/paper-tables.csv",
             "spiked show claims.spiked --false-alarm 1e-6"},
            file_with({".spiked"}, "STORE.spiked"),
            1,
            1,
            {{"--table", one_table(), "table to print in place of the overview"}, metric, false_alarm, compared},
            show};
}

Command export_command() {
    return {"export",
            "a table of a store as csv, json, npy or latex",
            {"spiked export results/demo.spiked --table summary --format csv",
             "spiked export results/demo.spiked --table methods --metric relative_error --format latex",
             "spiked export results/demo.spiked --table values --format npy -o values.npy"},
            file_with({".spiked"}, "STORE.spiked"),
            1,
            1,
            {{"--table", one_table(), "table to write", "summary"},
             metric,
             {"--format", one_of({"csv", "json", "npy", "latex"}), "format of the table", "csv"},
             false_alarm,
             {"-o,--output", any_text("FILE"), "file to write; standard output when not given"}},
            export_store};
}

}  // namespace spiked::app
