#include "validation/kv/open_dumps.hpp"

#include <dirent.h>
#include <fmt/format.h>
#include <glob.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <map>

#include "core/files/sha256.hpp"
#include "core/runtime/error.hpp"
#include "core/text/name_options.hpp"
#include "core/text/printable.hpp"

namespace spiked::validation {
namespace {

using sim::Side;

constexpr std::size_t prompts_that_cluster = 8;

/// Limit on the folder entries that the patterns of this process read, because one pattern may walk a whole disk. The
/// counter is global because glob() passes no user data to its callbacks.
constexpr std::size_t most_entries = 200'000;
std::atomic<std::size_t> entries_read = 0;

bool wanted(const std::set<std::size_t>& chosen, std::size_t index) { return chosen.empty() || chosen.contains(index); }

std::string what_it_has(const sim::KvDump& dump) {
    std::set<std::size_t> layers, heads;
    for (const auto& tensor : dump.tensors()) {
        layers.insert(tensor.layer);
        if (tensor.side == Side::query) continue;
        for (std::size_t head = 0; head < tensor.heads; ++head) heads.insert(head);
    }
    const auto text = [](const std::set<std::size_t>& numbers) {
        if (numbers.size() > 2 && *numbers.rbegin() - *numbers.begin() + 1 == numbers.size())
            return fmt::format("{} to {}", *numbers.begin(), *numbers.rbegin());
        return fmt::format("{}", fmt::join(numbers, ", "));
    };
    return fmt::format("it has layers {} and heads {}", text(layers), text(heads));
}

void list_heads(const KvPlan& plan, OpenDumps& open) {
    std::map<std::size_t, std::size_t> short_layers;  // and their tokens
    for (std::size_t f = 0; f < open.dumps.size(); ++f) {
        const auto& dump = *open.dumps[f];
        const std::size_t before = open.heads.size();
        std::vector<const sim::DumpTensor*> too_short;
        for (const auto& tensor : dump.tensors()) {
            if (tensor.side == Side::query || (plan.side && *plan.side != tensor.side)) continue;
            if (!wanted(plan.layers, tensor.layer)) continue;
            if (tensor.tokens < plan.block_tokens) {
                too_short.push_back(&tensor);
                short_layers[tensor.layer] = std::max(short_layers[tensor.layer], tensor.tokens);
                continue;
            }
            for (std::size_t head = 0; head < tensor.heads; ++head)
                if (wanted(plan.heads, head)) open.heads.push_back({f, &tensor, head});
        }
        if (open.heads.size() == before && !too_short.empty())
            throw input_error(
                "{}: tensor {} has {} tokens, fewer than one block of {} (layout {}): choose a smaller --block, or "
                "correct --layout",
                dump.path(), too_short.front()->name, too_short.front()->tokens, plan.block_tokens,
                dump.layout().text());
        if (!too_short.empty()) {
            std::vector<std::string> names;
            for (const auto* tensor : too_short) names.push_back(tensor->name);
            open.notes.push_back(
                fmt::format("{}: tensors of fewer tokens than one block of {} are left out ({}; {} has {}): choose a "
                            "smaller --block to measure them, or --layers to measure others",
                            open.name_of(f), plan.block_tokens, list_text(names), too_short.front()->name,
                            too_short.front()->tokens));
        }
        if (open.heads.size() == before)
            throw input_error(
                "{}: no layer, head and side is left to measure (--layers, --heads or --side exclude all; {}): see "
                "spiked kv inspect {}",
                dump.path(), what_it_has(dump), dump.path());
    }
    for (const std::size_t layer : plan.layers)
        if (std::none_of(open.heads.begin(), open.heads.end(),
                         [&](const DumpHeadPlace& at) { return at.tensor->layer == layer; })) {
            if (short_layers.contains(layer))
                throw input_error(
                    "layer {} (asked for with --layers) has {} tokens, fewer than one block of {}: choose a smaller "
                    "--block, or leave the layer out",
                    layer, short_layers[layer], plan.block_tokens);
            throw input_error("no dump has a layer {} (asked for with --layers): see spiked kv inspect", layer);
        }
    for (const std::size_t head : plan.heads)
        if (std::none_of(open.heads.begin(), open.heads.end(),
                         [&](const DumpHeadPlace& at) { return at.head == head; }))
            throw input_error("no dump has a head {} (asked for with --heads): see spiked kv inspect", head);
}

/// Opens the sequences of a file that the plan selects.
void open_sequences(const std::string& path, const KvPlan& plan, OpenDumps& open) {
    sim::DumpOptions options = plan.dump;
    options.any_sequence = true;
    const auto add = [&] { return open.dumps.emplace_back(std::make_unique<sim::KvDump>(path, options)).get(); };
    const auto& dump = *add();
    if (plan.dump.prompt_id_key != sim::DumpOptions{}.prompt_id_key && !dump.prompt_id())
        throw input_error("{}: the metadata have no \"{}\" (asked for with --prompt-id): see spiked kv inspect {}",
                          path, plan.dump.prompt_id_key, path);
    dump.reject_tiny_heads();
    if (plan.dump.batch || dump.sequences() == 1) return;
    constexpr std::size_t most_sequences = 1024;
    if (dump.sequences() > most_sequences)
        throw input_error("{}: {} sequences in layout {} (at most {} are measured at once): choose one with --batch",
                          path, dump.sequences(), dump.layout().text(), most_sequences);
    const std::size_t count = dump.sequences();
    for (std::size_t batch = 1; batch < count; ++batch) {
        options.batch = batch;
        add();
    }
    open.notes.push_back(
        fmt::format("{}: its {} sequences are measured one by one: choose one with --batch", path, count));
}

void add_notes(std::size_t dump, OpenDumps& open) {
    std::vector<std::string> notes = open.dumps[dump]->notes();
    if (const auto note = open.dumps[dump]->empty_tokens_note(); !note.empty()) notes.push_back(note);
    for (const auto& note : notes) open.notes.push_back(fmt::format("{}: {}", open.name_of(dump), note));
}

}  // namespace

std::string queries_mismatch(const sim::KvDump& dump, std::size_t layer) {
    const auto* queries = dump.find(layer, sim::Side::query);
    const auto* keys = dump.find(layer, sim::Side::key);
    if (queries == nullptr || keys == nullptr) return {};
    if (queries->tokens == keys->tokens && queries->dim == keys->dim && queries->heads % keys->heads == 0) return {};
    return fmt::format(
        "tensor {} has {} heads, {} tokens and {} channels, its keys {}, {} and {}: heads must be a multiple, tokens "
        "and channels the same",
        in_quotes(queries->name), queries->heads, queries->tokens, queries->dim, keys->heads, keys->tokens, keys->dim);
}

OpenDumps open_dumps(const KvPlan& plan) {
    if (plan.block_tokens == 0) throw precondition_error("blocks of 0 tokens");
    if (plan.dumps.empty()) throw usage_error("no dump was named: give one or more files");
    OpenDumps open;
    for (const auto& path : plan.dumps) {
        const std::size_t first = open.dumps.size();
        open_sequences(path, plan, open);
        const std::string sum = hex(sha256_of_file(path));
        for (std::size_t earlier = 0; earlier < open.sha256.size(); ++earlier)
            if (open.sha256[earlier] == sum)
                throw usage_error("{}: the same content as {} (a dump counts once): name each dump once", path,
                                  open.dumps[earlier]->path());
        open.sha256.resize(open.dumps.size(), sum);
        for (std::size_t f = first; f < open.dumps.size(); ++f) add_notes(f, open);
    }
    std::set<std::string> readings;
    for (std::size_t f = 0; f < open.dumps.size(); ++f)
        if (const auto& text = open.dumps[f]->reading(); !text.empty() && readings.insert(text).second)
            open.notes.push_back(fmt::format("{}: {}", open.dumps[f]->path(), text));
    list_heads(plan, open);
    return open;
}

std::set<std::string> models_of(const KvPlan& plan) {
    std::set<std::string> models;
    sim::DumpOptions options = plan.dump;
    options.any_sequence = true;
    for (const auto& path : plan.dumps) {
        const sim::KvDump dump(path, options);
        models.insert(fmt::format("{} ({} channels a head)", dump.model().empty() ? "unnamed" : dump.model(),
                                  dump.tensors().front().dim));
    }
    return models;
}

bool all_have_rotary_keys(const std::vector<std::string>& dumps, sim::DumpOptions options) {
    options.any_sequence = true;
    return std::all_of(dumps.begin(), dumps.end(), [&](const std::string& path) {
        try {
            return sim::has_rotary(sim::KvDump(path, options));
        } catch (const Error&) {
            return false;
        }
    });
}

bool OpenDumps::clusters_by_prompt() const {
    std::set<std::string> prompts;
    for (const auto& dump : dumps) {
        if (!dump->prompt_id()) return false;
        prompts.insert(*dump->prompt_id());
    }
    return prompts.size() >= prompts_that_cluster;
}

std::string OpenDumps::name_of(std::size_t dump) const {
    const auto& one = *dumps[dump];
    return one.sequences() == 1 ? one.path() : fmt::format("{}[{}]", one.path(), one.sequence());
}

std::string OpenDumps::cluster_of(const DumpHeadPlace& at, bool by_prompt) const {
    const auto& dump = *dumps[at.dump];
    return by_prompt ? dump.prompt_id().value_or("")
                     : fmt::format("{} layer {} head {}", dump.model(), at.tensor->layer, at.head);
}

AttentionMode attention_mode(std::string_view name) { return enum_named<AttentionMode>(name, "attention"); }

std::optional<AttentionMode> stated_attention(const sim::Metadata& metadata) {
    const std::string* value = sim::find_metadata(metadata, "attention");
    const auto mode = value == nullptr ? std::nullopt : find_enum<AttentionMode>(*value);
    return mode == AttentionMode::none ? std::nullopt : mode;
}

std::vector<std::string> expand_pattern(const std::string& pattern) {
    // glob() recurses once for each part of the path, so a long path would exhaust the stack.
    constexpr std::ptrdiff_t most_parts = 64;
    if (pattern.size() >= PATH_MAX || std::count(pattern.begin(), pattern.end(), '/') > most_parts)
        throw usage_error("{}: a path or pattern of {} bytes (at most {}, and {} folders): shorten it",
                          in_quotes(pattern), pattern.size(), PATH_MAX - 1, most_parts);
    glob_t found{};
    found.gl_opendir = [](const char* path) -> void* { return opendir(path); };
    found.gl_readdir = [](void* folder) -> dirent* {
        return ++entries_read > most_entries ? nullptr : readdir(static_cast<DIR*>(folder));
    };
    found.gl_closedir = [](void* folder) { closedir(static_cast<DIR*>(folder)); };
    found.gl_stat = stat;
    found.gl_lstat = lstat;
    std::vector<std::string> files;
    if (glob(pattern.c_str(), GLOB_ALTDIRFUNC, nullptr, &found) == 0)
        files.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
    globfree(&found);
    if (entries_read > most_entries)
        throw usage_error("{}: the patterns of this study look at more than {} files and folders: name fewer folders",
                          pattern, most_entries);
    return files;
}

}  // namespace spiked::validation
