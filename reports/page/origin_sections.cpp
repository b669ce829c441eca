#include "reports/page/origin_sections.hpp"

#include <fmt/format.h>

#include "core/runtime/error.hpp"
#include "core/text/json.hpp"
#include "reports/page/html.hpp"

namespace spiked::reports {
namespace {

using validation::Database;
using validation::Statement;

constexpr std::size_t sessions_shown = 50;
constexpr std::size_t inputs_shown = 200;
constexpr std::size_t long_text = 60'000;  // bytes shown of a configuration

std::string preformatted(const std::string& text, std::string_view css_class = "") {
    const std::string end =
        text.size() > long_text ? fmt::format("\n... {} more bytes are in the store", text.size() - long_text) : "";
    return fmt::format("<pre{}>{}{}</pre>\n", css_class.empty() ? "" : fmt::format(" class=\"{}\"", css_class),
                       escape(std::string_view(text).substr(0, long_text)), escape(end));
}

void flatten(const Json& json, const std::string& prefix, std::string& terms) {
    if (json.members() != nullptr) {
        for (const auto& [name, value] : *json.members())
            flatten(value, prefix.empty() ? name : fmt::format("{}.{}", prefix, name), terms);
        return;
    }
    const std::string text = json.string() != nullptr ? *json.string() : json.text();
    terms += fmt::format("<dt>{}</dt><dd>{}</dd>\n", escape(prefix), escape(text));
}

/// The build of the first session; the table of sessions marks later sessions with another build.
Json provenance(Database& store) {
    Statement query(store, "SELECT provenance FROM session ORDER BY session_id LIMIT 1");
    if (!query.step()) return {};
    try {
        return Json::parse(query.text(0), "provenance");
    } catch (const Error&) {
        return query.text(0);
    }
}

}  // namespace

std::string reproduce_markup(Database& store, const StudyRow& study) {
    Statement first(store, "SELECT argv FROM session ORDER BY session_id LIMIT 1");
    const std::string command = first.step() ? first.text(0) : "";
    std::string terms;
    const auto term = [&](std::string_view name, const Html& value) {
        terms += fmt::format("<dt>{}</dt><dd>{}</dd>\n", escape(name), value.markup);
    };
    term("seed", Html::raw(fmt::format("{} ({})", code(study.seed).markup, escape(study.seed_source))));
    term("SHA-256 of the settings", code(study.science_hash));
    term("backend", study.backend);
    term("created", study.created);
    term("status", study.status);
    std::string markup =
        paragraph("The command as recorded in the store by the author of the store: read it before you run it.") +
        preformatted(command) + "<dl>\n" + terms + "</dl>\n";
    markup += folded("Study as its author wrote it", preformatted(study.config_source));
    markup += folded("Study as it was run, defaults included", preformatted(study.config_resolved, "machine"));

    std::string build;
    flatten(provenance(store), "", build);
    if (!build.empty()) markup += folded("Build", "<dl>\n" + build + "</dl>\n");

    const auto input_count = store.integer("SELECT COUNT(*) FROM input");
    HtmlTable inputs(fmt::format("Inputs{}", input_count > static_cast<std::int64_t>(inputs_shown)
                                                 ? fmt::format(", the first {} of {}", inputs_shown, input_count)
                                                 : ""),
                     {"file", "#bytes", "sha256", "format", "layout", "model"});
    Statement input(store, "SELECT path, bytes, sha256, format, layout, model FROM input ORDER BY input_id LIMIT ?1");
    input.bind(1, inputs_shown);
    while (input.step())
        inputs.add({input.text(0), input.text(1), code(input.text(2)), input.text(3), input.text(4), input.text(5)});
    if (inputs.rows() > 0) markup += inputs.html();

    const auto session_count = store.integer("SELECT COUNT(*) FROM session");
    HtmlTable sessions(
        fmt::format("Sessions{}", session_count > static_cast<std::int64_t>(sessions_shown)
                                      ? fmt::format(", the last {} of {}", sessions_shown, session_count)
                                      : ""),
        {"#session", "started", "ended", "exit", "why it stopped", "host", "#threads", "device", "build"});
    Statement session(store,
                      "SELECT session_id, started_utc, ended_utc, exit_code, stop_reason, host, threads, device, "
                      "provenance = (SELECT provenance FROM session ORDER BY session_id LIMIT 1) FROM (SELECT * FROM "
                      "session ORDER BY session_id DESC LIMIT ?1) ORDER BY session_id");
    session.bind(1, sessions_shown);
    while (session.step())
        sessions.add({session.text(0), session.text(1), session.is_null(2) ? "no end recorded" : session.text(2),
                      session.text(3), session.text(4), session.text(5), session.text(6), session.text(7),
                      session.integer(8) != 0 ? "as above" : "another build"});
    if (sessions.rows() > 0) markup += sessions.html();
    return markup;
}

std::string cite_markup(Database& store, const StudyRow& study) {
    const Json build = provenance(store);
    const std::string version = text_of(build, "version");
    const std::string commit = text_of(build, "commit");
    const std::string who =
        "Spiked" + (version.empty() ? "" : " " + version) + (commit.empty() ? "" : " (" + commit + ")");
    return preformatted(fmt::format(
        "The Spiked authors. {}: study \"{}\", settings {}, seed {}, {}. BSD 3-Clause License.\n\nThe method, its "
        "theory and the tables that it is judged by:\nPei-Chun Su. eOptShrinkQ: Near-Lossless KV Cache Compression "
        "Through Optimal Spectral Denoising and Quantization.",
        who, study.name, study.science_hash, study.seed, study.created));
}

}  // namespace spiked::reports
