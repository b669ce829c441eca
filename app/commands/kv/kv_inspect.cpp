#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "app/cli/command.hpp"
#include "app/options/dump_options.hpp"
#include "core/runtime/error.hpp"
#include "core/text/printable.hpp"
#include "reports/tables/text_table.hpp"
#include "validation/kv/dump_inspection.hpp"

namespace spiked::app {
namespace {

std::size_t blocks_of(const sim::DumpTensor& tensor, std::size_t block) {
    return tensor.heads * (tensor.tokens / block);
}

Json as_json(const validation::DumpInspection& found, std::size_t block) {
    std::map<std::size_t, const sim::DumpTensor*> of_cache;
    Json cache = Json::array();
    if (found.dump) {
        std::map<std::size_t, std::size_t> empty;  // tokens, by layer
        for (const auto& tensor : found.dump->tensors()) {
            of_cache.emplace(tensor.index, &tensor);
            const auto [tokens, first_of_layer] = empty.try_emplace(tensor.layer);
            if (first_of_layer) tokens->second = found.dump->empty_tokens(tensor.layer).size();
            cache.push(Json::object({{"name", tensor.name},
                                     {"layer", tensor.layer},
                                     {"side", side_name(tensor.side)},
                                     {"heads", tensor.heads},
                                     {"tokens", tensor.tokens},
                                     {"dim", tensor.dim},
                                     {"blocks", blocks_of(tensor, block)},
                                     {"empty_tokens", tokens->second}}));
        }
    }
    Json tensors = Json::array();
    for (std::size_t i = 0; i < found.file->tensors().size(); ++i) {
        const auto& tensor = found.file->tensors()[i];
        Json shape = Json::array();
        for (const auto size : tensor.shape) shape.push(size);
        Json line = Json::object({{"name", tensor.name}, {"dtype", tensor.dtype_text}, {"shape", std::move(shape)}});
        if (const auto place = of_cache.find(i); place != of_cache.end())
            line.set("layer", place->second->layer)
                .set("side", side_name(place->second->side))
                .set("heads", place->second->heads)
                .set("tokens", place->second->tokens)
                .set("dim", place->second->dim)
                .set("blocks", blocks_of(*place->second, block));
        tensors.push(std::move(line));
    }
    Json::Object metadata;
    for (const auto& [key, value] : found.file->metadata()) metadata.emplace_back(key, value);
    Json missing = Json::array();
    for (const auto& one : found.missing) missing.push(one.key);
    Json notes = Json::array();
    for (const auto& one : found.unusable) notes.push(one);
    for (const auto& one : found.notes) notes.push(one);
    return Json::object({{"schema", "spiked.kv-inspect/1"},
                         {"file", found.file->path()},
                         {"block", block},
                         {"layout", found.dump ? Json(found.dump->layout().text()) : Json()},
                         {"legal_layouts", found.possible_layouts},
                         {"tensors", std::move(tensors)},
                         {"cache", std::move(cache)},
                         {"sequences", found.dump ? Json(found.dump->sequences()) : Json()},
                         {"ignored", found.dump ? Json(found.dump->ignored()) : Json::array()},
                         {"metadata", Json::object(std::move(metadata))},
                         {"missing", std::move(missing)},
                         {"remarks", std::move(notes)}});
}

/// `0-3,6-29`.
std::string ranges_text(const std::set<std::size_t>& numbers) {
    std::vector<std::string> ranges;
    for (auto at = numbers.begin(); at != numbers.end();) {
        const std::size_t first = *at;
        std::size_t last = first;
        while (++at != numbers.end() && *at == last + 1) last = *at;
        ranges.push_back(first == last ? std::to_string(first) : fmt::format("{}-{}", first, last));
    }
    return fmt::format("{}", fmt::join(ranges, ","));
}

/// A name as the texts around its numbers: `layers.12.key` is "layers.", 12, ".key". Numbers that begin with a zero or
/// have more than nine digits are text.
struct NameParts {
    std::vector<std::string> texts{""};
    std::vector<std::size_t> numbers;

    explicit NameParts(const std::string& name) {
        for (std::size_t at = 0; at < name.size();) {
            const std::size_t end = std::min(name.find_first_not_of("0123456789", at), name.size());
            const std::size_t digits = end - at;
            if (digits == 0) {
                texts.back() += name[at++];
            } else if (digits > 9 || (digits > 1 && name[at] == '0')) {
                texts.back() += name.substr(at, digits);
                at = end;
            } else {
                numbers.push_back(std::stoul(name.substr(at, digits)));
                texts.emplace_back();
                at = end;
            }
        }
    }
};

/// Tensors in one row of a table: their names differ in numbers alone, and they have one type and shape.
struct AlikeTensors {
    std::vector<std::string> texts;
    std::vector<std::set<std::size_t>> numbers;
    std::vector<std::string> cells;  ///< what all of them have in common
    std::size_t blocks = 0;
    std::set<std::size_t> layers;

    /// `layers.0-29.key`.
    [[nodiscard]] std::string name() const {
        std::string name = texts.front();
        for (std::size_t i = 0; i < numbers.size(); ++i) name += ranges_text(numbers[i]) + texts[i + 1];
        return printable(name);
    }
};

/// Rows in the order of their first tensors, each tensor alone where `every` is set.
class TensorRows {
public:
    explicit TensorRows(bool every) : every_(every) {}
    AlikeTensors& add(const std::string& name, const std::vector<std::string>& cells) {
        const NameParts parts(name);
        const auto [place, is_first] = index_of_.try_emplace({parts.texts, cells}, rows_.size());
        if (is_first || every_) {
            place->second = rows_.size();
            rows_.push_back({parts.texts, std::vector<std::set<std::size_t>>(parts.numbers.size()), cells});
        }
        AlikeTensors& row = rows_[place->second];
        for (std::size_t i = 0; i < parts.numbers.size(); ++i) row.numbers[i].insert(parts.numbers[i]);
        ++tensors_;
        return row;
    }
    [[nodiscard]] const std::vector<AlikeTensors>& rows() const { return rows_; }
    /// A sentence on rows of several tensors; empty without any.
    [[nodiscard]] std::string note() const {
        if (tensors_ == rows_.size()) return "";
        return fmt::format("\n{} tensors, those alike in one row; --all lists each.\n", tensors_);
    }

private:
    bool every_;
    std::size_t tensors_ = 0;
    std::vector<AlikeTensors> rows_;
    std::map<std::pair<std::vector<std::string>, std::vector<std::string>>, std::size_t> index_of_;
};

std::string cache_table(const validation::DumpInspection& found, std::size_t block, bool every) {
    TensorRows rows(every);
    for (const auto& tensor : found.dump->tensors()) {
        AlikeTensors& row = rows.add(
            tensor.name, {std::string(side_name(tensor.side)), found.file->tensors()[tensor.index].dtype_text,
                          std::to_string(tensor.heads), std::to_string(tensor.tokens), std::to_string(tensor.dim)});
        row.blocks += blocks_of(tensor, block);
        row.layers.insert(tensor.layer);
    }
    const std::string note = rows.note();
    reports::TextTable table({"tensor", "side", "dtype", note.empty() ? "layer" : "layers", "heads", "tokens", "dim",
                              "blocks of " + std::to_string(block)},
                             4);
    for (const auto& row : rows.rows())
        table.add({row.name(), row.cells[0], row.cells[1], ranges_text(row.layers), row.cells[2], row.cells[3],
                   row.cells[4], std::to_string(row.blocks)});
    return table.text() + note;
}

std::string file_table(const validation::DumpInspection& found, bool every) {
    TensorRows rows(every);
    for (const auto& tensor : found.file->tensors())
        rows.add(tensor.name, {printable(tensor.dtype_text), shape_text(tensor.shape)});
    reports::TextTable table({"tensor", "dtype", "shape"}, 3);
    for (const auto& row : rows.rows()) table.add({row.name(), row.cells[0], row.cells[1]});
    return table.text() + rows.note();
}

std::string as_text(const validation::DumpInspection& found, std::size_t block, bool every) {
    std::string text = one_line(found.file->path()) + "\n";
    if (found.dump) {
        text += fmt::format("layout {}\n\n{}", found.dump->layout().text(), cache_table(found, block, every));
        if (!found.dump->ignored().empty())
            text += fmt::format("\noutside the cache: {}\n", list_text(found.dump->ignored()));
    } else {
        text += "\n" + file_table(found, every);
    }
    for (const auto& one : found.unusable) text += "\n" + one + "\n";
    for (const auto& one : found.notes) text += "\n" + one + "\n";
    text += fmt::format("\nlayouts its shape allows: {}\n",
                        found.possible_layouts.empty() ? "none (no tensor has three axes)"
                                                       : fmt::format("{}", fmt::join(found.possible_layouts, " | ")));
    if (!found.file->metadata().empty()) text += "\nmetadata\n";
    std::size_t width = 16;
    for (const auto& [key, value] : found.file->metadata()) width = std::max(width, printable(key).size() + 2);
    for (const auto& [key, value] : found.file->metadata())
        text += fmt::format("  {:<{}}{}\n", printable(key), width, printable(value));
    if (!found.missing.empty()) text += "\nmissing\n";
    for (const auto& one : found.missing) text += fmt::format("  {:<16}{}\n", one.key, one.without);
    return text;
}

int run_kv_inspect(const Arguments& arguments) {
    sim::DumpOptions options = read_dump_options(arguments);
    options.any_sequence = true;
    const std::size_t block = arguments.count("--block");
    const auto found = validation::inspect_dump(arguments.positionals.front(), options);
    if (arguments.json())
        print_json(as_json(found, block));
    else
        print_text(as_text(found, block, arguments.has("--all")));
    return 0;
}

}  // namespace

Command kv_inspect_command() {
    const OptionSpec every{"--all", {}, "list every tensor, not those alike in one row"};
    const auto options = joined({{block_option(), every}, token_options(), storage_options()});
    return {"kv inspect",
            "tensors, possible layouts and missing metadata of a KV dump",
            {"spiked kv inspect dump.safetensors", "spiked kv inspect dump.npz --layout head,token,dim --json",
             "spiked kv inspect prompt.safetensors --format mlx"},
            dump_value("DUMP"),
            1,
            1,
            options,
            run_kv_inspect};
}

}  // namespace spiked::app
