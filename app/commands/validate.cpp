#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>

#include "app/cli/command.hpp"
#include "app/cli/exit_code.hpp"
#include "app/cli/progress.hpp"
#include "app/cli/stop_requests.hpp"
#include "app/options/dump_options.hpp"
#include "app/studies/stored_claims.hpp"
#include "app/studies/study_run.hpp"
#include "app/studies/validate_study.hpp"
#include "core/files/output_file.hpp"
#include "core/runtime/error.hpp"
#include "core/text/printable.hpp"
#include "reports/page/claim_page.hpp"
#include "reports/tables/claim_report.hpp"
#include "reports/verdicts/claim_summary.hpp"
#include "validation/store/open_store.hpp"
#include "validation/verdicts/claim_study.hpp"
#include "validation/verdicts/selftest.hpp"

namespace spiked::app {
namespace {

/// The seed of --seed, or that of the store that is resumed: a fresh one is drawn once for a store. A seed that the
/// command does not name is printed, because the same command with it gives the same verdicts.
stream::StudySeed seed_from(const Arguments& arguments, const std::string& store = ":memory:") {
    const std::string text = arguments.text("--seed");
    const bool fresh = text == "fresh";
    const bool resumes = store != ":memory:" && (fresh || !arguments.has("--seed"));
    if (const std::string stored = resumes ? validation::stored_seed(store) : ""; !stored.empty()) {
        if (fresh || stored != stream::StudySeed::parse(text).text())
            print_note(arguments, fmt::format("seed {}, that of {}", one_line(stored), store));
        return stream::StudySeed::parse(stored);
    }
    if (!fresh) return stream::StudySeed::parse(text);
    const auto seed = stream::StudySeed::fresh();
    print_note(arguments, "seed " + seed.text());
    return seed;
}

using Output = std::unique_ptr<OutputFile>;
Output output_of(const Arguments& arguments, std::string_view option) {
    return arguments.has(option) ? std::make_unique<OutputFile>(arguments.text(option), 0) : nullptr;
}
template <class Text>
void finish(const Output& output, const Text& text) {
    if (!output) return;
    output->write(text());
    output->commit();
}

/// The store that -o names; results are kept in memory without one.
std::string store_of(const Arguments& arguments) {
    const std::string path = arguments.text("--output");
    return path.ends_with(".spiked") ? path : ":memory:";
}

/// Whether the name of the page that an option gives is that of an HTML file.
bool as_html(std::string_view option, const std::string& path) {
    if (path.ends_with(".html")) return true;
    if (path.ends_with(".md")) return false;
    throw usage_error("{} {}: the format of the page is unclear: let the name end in .md or .html{}", option, path,
                      option == "-o" ? ", or in .spiked for a store" : "");
}

/// The pages that a call writes.
struct Pages {
    using Found = validation::Validation;

    explicit Pages(const Arguments& arguments)
        : page_path(store_of(arguments) == ":memory:" ? arguments.text("--output") : ""),
          summary_html(arguments.has("--summary") && as_html("--summary", arguments.text("--summary"))) {
        if (!page_path.empty()) (void)as_html("-o", page_path);
        if (!page_path.empty() && !arguments.positionals.empty()) dumps_path = reports::dumps_page_of(page_path);
        const std::string paths[] = {arguments.text("--output"), dumps_path, arguments.text("--summary"),
                                     arguments.text("--junit")};
        for (const auto& path : paths)
            for (const auto* other = paths; other != &path; ++other) keep_apart(path, *other);
        // Opened first, so that the work of minutes is not lost because a folder does not exist.
        if (!page_path.empty()) page = std::make_unique<OutputFile>(page_path, 0);
        if (!dumps_path.empty()) dumps_page = std::make_unique<OutputFile>(dumps_path, 0);
        summary = output_of(arguments, "--summary");
        junit = output_of(arguments, "--junit");
    }

    void write(validation::Database& store, const Found& found) const {
        finish(junit, [&] { return reports::claims_junit(found); });
        if (!page_path.empty())
            for (const auto& made : reports::claim_pages(store, found, page_path))
                finish(made.path == page_path ? page : dumps_page, [&] { return made.text; });
        finish(summary, [&] {
            const auto lines = reports::summary_of(found);
            const std::string made_by = reports::claims_origin(store, found);
            return summary_html ? reports::summary_html(lines, made_by) : reports::summary_markdown(lines, made_by);
        });
    }

    /// Writes the page of a run that ended early; the other pages stay as they were.
    void write_undecided(const Arguments& arguments, const Found& found,
                         const std::vector<std::string>& without_verdict) const {
        finish(junit, [&] { return reports::claims_junit(found, without_verdict); });
        for (const auto& path : {page_path, dumps_path, arguments.text("--summary")})
            if (!path.empty()) print_note(arguments, path + " is not written: the run ended before its verdicts");
    }

    std::string page_path;  ///< empty: no page
    bool summary_html;
    std::string dumps_path = {};  ///< empty without dumps
    Output page = {}, dumps_page = {}, summary = {}, junit = {};
};

/// Prints notes on the parts of claims about blocks that are not tested on a dump, and why.
void print_notes_on_untested(const Arguments& arguments, const validation::OpenDumps& dumps,
                             const std::vector<validation::Claim>& claims) {
    const auto wanted = arguments.list("--claim");
    std::vector<std::string> about_blocks;
    for (const auto& claim : validation::claims_about_blocks) about_blocks.emplace_back(claim.id);
    const auto is_about_blocks = [&](const std::string& id) {
        return std::find(about_blocks.begin(), about_blocks.end(), id) != about_blocks.end();
    };
    if (!wanted.empty() && std::none_of(wanted.begin(), wanted.end(), is_about_blocks))
        print_note(arguments, fmt::format("dumps are left out: no chosen claim is about their blocks ({} are)",
                                          fmt::join(about_blocks, ", ")));
    const auto names = names_of_dumps(dumps);
    const auto titles = validation::dump_titles(names);
    const std::string side = arguments.text("--side");
    for (std::size_t i = 0; i < titles.size(); ++i)
        for (const auto& about : validation::claims_about_blocks) {
            if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), about.id) == wanted.end()) continue;
            const auto claim = std::find_if(claims.begin(), claims.end(),
                                            [&](const auto& one) { return one.id == about.id && one.on == titles[i]; });
            if (claim == claims.end()) {
                print_note(arguments, fmt::format("{} is not tested on {}: it has no {}, or all of them are zero",
                                                  about.id, names[i], about.needs));
                continue;
            }
            for (const auto& part : about.parts)
                if ((side.empty() || side == part.side) &&
                    std::none_of(claim->criteria.begin(), claim->criteria.end(),
                                 [&](const auto& one) { return one.name.starts_with(part.criteria); }))
                    print_note(arguments, fmt::format("{} is not tested on {} of {}: {}", about.id, part.what, names[i],
                                                      part.why_untested));
        }
}

/// The names of claims that the plan judges and of which the store lacks trials.
std::vector<std::string> claims_without_verdict(const validation::ValidationPlan& plan,
                                                const std::vector<validation::Claim>& claims,
                                                const validation::Validation& found) {
    std::vector<std::string> titles;
    for (const auto& claim : claims) {
        if (!plan.judges(claim)) continue;
        validation::ClaimOutcome outcome;
        outcome.claim = &claim;
        const std::string title = reports::claim_title(outcome);
        if (std::none_of(found.claims.begin(), found.claims.end(),
                         [&](const auto& one) { return reports::claim_title(one) == title; }))
            titles.push_back(title);
    }
    return titles;
}

int validate(const Arguments& arguments) {
    const Pages pages(arguments);
    StudyRun run = run_options(arguments);
    run.junit_path.clear();  // the claims' own, with the pages
    run.store_path = store_of(arguments);
    run.threads = arguments.count("--threads");
    run.label = "validate";
    if (run.shard.of > 1 && run.store_path == ":memory:")
        throw usage_error("--shard {}: the part would be lost (it is kept in memory): add -o PART.spiked",
                          run.shard.text());
    validation::ValidationPlan plan;
    plan.tier = *find_enum<validation::Tier>(arguments.text("--tier"));
    plan.seed = seed_from(arguments, run.store_path);
    plan.claims = arguments.list("--claim");
    const Json settings = dump_settings(arguments);
    const ValidateStudy study =
        validate_study(plan, arguments.positionals, settings, {command_line(), arguments.has("--seed")});
    if (study.dumps) print_notes_on_untested(arguments, *study.dumps, study.claims);
    run.executor = executor_for(study.experiment, validate_recipe(plan, arguments.positionals, settings));
    validation::Validation found;
    run.verdicts = [&](validation::Database& database) {
        validation::ClaimStore store(database);
        found = judge_claims(store, study.claims, plan.false_alarm);
        return counts_of(found);
    };
    return run_study(arguments, study.experiment, run, [&](validation::Database& store) {
        validation::Statement status(store, "SELECT status FROM study");
        (void)status.step();
        if (status.text(0) != "complete") {
            if (run.shard.of == 1)
                pages.write_undecided(arguments, found, claims_without_verdict(plan, study.claims, found));
            return;
        }
        pages.write(store, found);
        if (arguments.json())
            print_json(reports::claims_json(found));
        else
            print_text(reports::claims_text(found, arguments.verbose()));
    });
}

int selftest(const Arguments& arguments) {
    validation::SelftestPlan plan;
    plan.seed = seed_from(arguments);
    plan.threads = arguments.count("--threads");
    validation::Selftest found;
    {
        ProgressDisplay display(arguments, "selftest");
        plan.progress = [&](std::size_t done, std::size_t of) { display.show(done, of); };
        found = validation::run_selftest(plan);
    }
    if (arguments.json())
        print_json(reports::selftest_json(found));
    else
        print_text(reports::selftest_text(found));
    return static_cast<int>(found.passed() ? ExitCode::fine : ExitCode::check_failed);
}

const OptionSpec seed_option = {"--seed", one_of_or({"fresh"}, "HEX"), "seed of the draws",
                                "0x5eed000000000000000000000000c1a1"};

}  // namespace

Command selftest_command() {
    return {"selftest",
            "test the verdicts themselves: planted defects must be detected, and tests must keep their levels",
            {"spiked selftest", "spiked selftest --json"},
            {},
            0,
            0,
            {seed_option, threads_option("verdicts do")},
            selftest};
}

Command validate_command() {
    std::vector<OptionSpec> options = {
        {"--tier", one_of<validation::Tier>(),
         "quick takes minutes; full also has larger sizes and convergence rates. Each has a false-alarm rate of 1e-3, "
         "exact for fractions and distances, nominal for means and slopes",
         "quick"},
        {"--claim", names_from({"claims"}, several(any_text("ID"), "ID[,ID]")),
         "only these claims; spiked list claims names them", "", true},
        seed_option,
        {"-o,--output", file_with({".spiked", ".md", ".html"}, "STORE.spiked|FILE.md|FILE.html"),
         "keep the trials in a store, with which the same command resumes; or write statement, verdict and evidence as "
         "a page (with dumps, what was found on them as FILE-dumps beside it)"},
        {"--summary", file_with({".md", ".html"}, "FILE.md|FILE.html"),
         "write a summary: a line for each claim, and what a user of the method loses"},
    };
    const auto where = in_group(where_and_how_long, {threads_option("verdicts do"), max_time_option(), shard_option()});
    const auto verdicts =
        in_group(verdicts_for_programs, {{"--strict", {}, "exit 3 when a claim is inconclusive"},
                                         {"--junit", file_with({".xml"}), "write the claims as JUnit XML"}});
    std::vector<OptionSpec> of_dumps = dump_options();
    for (OptionSpec& option : of_dumps) option.needs = {{"DUMP"}, "it is about dumps"};
    options = joined({options, where, verdicts, of_dumps});
    return {"validate",
            "judge the statements of the eOptShrinkQ paper, each with controls that must fail; with dumps, those about "
            "blocks on each dump too",
            {"spiked validate", "spiked validate --claim bits.formula,prop.norm -v",
             "spiked validate --claim one-bit-saved,rope.cost dump.safetensors",
             "spiked validate --tier full --seed fresh -o CLAIMS.md --summary SUMMARY.md",
             "spiked validate --tier full -o claims.spiked"},
            dump_value("DUMP"),
            0,
            1 << 20,
            options,
            validate};
}

}  // namespace spiked::app
