#include "validation/kv/dump_inspection.hpp"

#include <fmt/format.h>

#include <string_view>

#include "sim/kv/dump_completeness.hpp"
#include "sim/kv/dump_formats.hpp"
#include "validation/kv/open_dumps.hpp"

namespace spiked::validation {

const std::vector<WantedMetadata>& wanted_metadata() {
    static const std::vector<WantedMetadata> keys = {
        {"layout", "the order of the axes; give --layout"},
        {"model", "dumps of different models cannot be told apart"},
        {"prompt_id", "errors are clustered by head, never by prompt"},
        {"keys", "whether rotary embedding was applied is unknown; unrope is rejected"},
        {"attention", "causal or bidirectional is unknown; attention metrics need --attention"},
    };
    return keys;
}

DumpInspection inspect_dump(const std::string& path, const sim::DumpOptions& options) {
    DumpInspection found;
    found.file = sim::open_tensors(path);
    const auto& metadata = found.file->metadata();
    for (const auto& wanted : wanted_metadata())
        if (sim::find_metadata(metadata, wanted.key) == nullptr ||
            (wanted.key == std::string_view("attention") && !stated_attention(metadata)))
            found.missing.push_back(wanted);
    for (const auto& tensor : found.file->tensors())
        if (found.possible_layouts.empty() && tensor.shape.size() >= 3)
            found.possible_layouts = sim::legal_layouts(tensor.shape, sim::stated_tokens(metadata));
    const auto* format = sim::find_metadata(metadata, "format");
    const bool stated = sim::find_metadata(metadata, "layout") != nullptr ||
                        (format != nullptr && sim::dump_formats().find(*format) != nullptr);
    if (options.layout.empty() && options.format.empty() && !stated) {
        if (const auto text = sim::unread_form(*found.file); !text.empty()) found.unusable.push_back(text);
        for (const auto& name : sim::possible_formats(*found.file))
            found.notes.push_back(fmt::format("names and shapes fit --format {}", name));
        return found;
    }
    found.dump.emplace(path, options);
    found.notes = found.dump->notes();
    if (!found.dump->reading().empty()) found.notes.push_back(found.dump->reading());
    if (found.dump->sequences() > 1)
        found.notes.push_back(fmt::format("{} sequences in a batch; this is number {}: choose another with --batch",
                                          found.dump->sequences(), found.dump->sequence()));
    if (const auto note = found.dump->empty_tokens_note(); !note.empty()) found.notes.push_back(note);
    for (const auto& tensor : found.dump->tensors())
        if (tensor.side == sim::Side::query)
            if (const auto why = queries_mismatch(*found.dump, tensor.layer); !why.empty())
                found.unusable.push_back("queries are not used (" + why + ")");
    return found;
}

}  // namespace spiked::validation
