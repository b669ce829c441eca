#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

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

std::string as_text(const validation::DumpInspection& found, std::size_t block) {
    std::string text = one_line(found.file->path()) + "\n";
    if (found.dump) {
        text += fmt::format("layout {}\n\n", found.dump->layout().text());
        reports::TextTable table(
            {"tensor", "side", "dtype", "layer", "heads", "tokens", "dim", "blocks of " + std::to_string(block)}, 3);
        for (const auto& tensor : found.dump->tensors())
            table.add({printable(tensor.name), std::string(side_name(tensor.side)),
                       found.file->tensors()[tensor.index].dtype_text, std::to_string(tensor.layer),
                       std::to_string(tensor.heads), std::to_string(tensor.tokens), std::to_string(tensor.dim),
                       std::to_string(blocks_of(tensor, block))});
        text += table.text();
        if (!found.dump->ignored().empty())
            text += fmt::format("\noutside the cache: {}\n", list_text(found.dump->ignored()));
    } else {
        text += "\n";
        reports::TextTable table({"tensor", "dtype", "shape"}, 3);
        for (const auto& tensor : found.file->tensors())
            table.add({printable(tensor.name), printable(tensor.dtype_text), shape_text(tensor.shape)});
        text += table.text();
    }
    for (const auto& one : found.unusable) text += "\n" + one + "\n";
    for (const auto& one : found.notes) text += "\n" + one + "\n";
    text += fmt::format("\nlayouts its shape allows: {}\n",
                        found.possible_layouts.empty() ? "none (no tensor has three axes)"
                                                       : fmt::format("{}", fmt::join(found.possible_layouts, " | ")));
    if (!found.file->metadata().empty()) text += "\nmetadata\n";
    for (const auto& [key, value] : found.file->metadata())
        text += fmt::format("  {:<16}{}\n", printable(key), printable(value));
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
        print_text(as_text(found, block));
    return 0;
}

}  // namespace

Command kv_inspect_command() {
    const auto options = joined({{block_option()}, token_options(), storage_options()});
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
