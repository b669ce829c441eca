#include "sim/kv/dump_tensors.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/runtime/error.hpp"
#include "core/text/names.hpp"
#include "core/text/printable.hpp"
#include "sim/io/matrix_file.hpp"
#include "sim/kv/dump_completeness.hpp"
#include "sim/kv/dump_formats.hpp"
#include "sim/kv/dump_parts.hpp"
#include "sim/kv/dump_scales.hpp"
#include "sim/kv/name_pattern.hpp"

namespace spiked::sim {
namespace {

std::string tensor_text(const StoredTensor& held) { return "tensor " + in_quotes(held.name); }

class TensorFinder {
public:
    TensorFinder(const TensorContainer& file, const DumpOptions& options)
        : file_(file), given_(options), options_(options) {}

    FoundTensors find() {
        complete_options();
        auto [pattern, places] = matching();
        found_.matched.resize(file_.tensors().size());
        for (const std::size_t index : scales_->tensors()) found_.matched[index] = true;
        for (const auto& place : places) found_.matched[place.index] = true;
        select(places);
        leave_out_unfit(pattern, places);
        for (const auto& place : places) add_slices(pattern, place);
        require_some(places);
        for (const auto& text : scales_->notes()) note(text);
        for (auto& [key, parts] : parts_)
            found_.tensors.push_back(join_parts(path(), key.first, key.second, pattern.has_head(), parts));
        check_sides();
        set_layout();
        require_effect();
        if (const auto text = incomplete_note(found_, file_); !text.empty()) note(text);
        if (options_.tokens.empty())
            if (const auto text = mask_note(found_, file_, options_.batch.value_or(0)); !text.empty()) note(text);
        for (const std::size_t index : unfit_) found_.matched[index] = false;
        if (!given_.format.empty()) found_.reading = reading_note(found_);
        return std::move(found_);
    }

private:
    [[nodiscard]] const std::string& path() const { return file_.path(); }
    [[nodiscard]] std::string where(const std::string& name) const {
        return fmt::format("{}: tensor {}", path(), in_quotes(name));
    }
    [[nodiscard]] const std::string* stated(std::string_view key) const {
        const auto* value = find_metadata(file_.metadata(), key);
        return value != nullptr || found_.metadata_prefix.empty()
                   ? value
                   : find_metadata(file_.metadata(), found_.metadata_prefix + std::string(key));
    }

    void complete_options() {
        std::string name = options_.format;
        // Other programs use this key too: safetensors of torch state `pt`.
        if (const auto* value = stated("format"); name.empty() && value != nullptr) name = *value;
        format_ = dump_formats().find(name);
        if (format_ != nullptr) found_.metadata_prefix = format_->metadata_prefix;
        if (const auto* value = stated("pattern"); options_.tensor_pattern.empty() && value != nullptr) {
            options_.tensor_pattern = *value;
            try {
                (void)NamePattern(*value);
            } catch (const Error& error) {
                throw input_error("{}: metadata pattern: {}", path(), error.what());
            }
        }
        if (const auto* value = stated("head_dim"); options_.head_dim == 0 && value != nullptr) {
            const auto number = to_integer(*value);
            if (!number || *number <= 0)
                throw input_error("{}: metadata head_dim is {} (a number of channels is needed): give --head-dim",
                                  path(), in_quotes(*value));
            options_.head_dim = static_cast<std::size_t>(*number);
        }
        std::string table = options_.block_table;
        if (const auto* value = stated("block_table"); table.empty() && value != nullptr) table = *value;
        if (!table.empty()) {
            const auto parsed = parse_block_table(table);
            if (!parsed)
                throw input_error(
                    "{}: metadata block_table is {} (numbers of pages are needed, each once, as in 3,1,7): give "
                    "--block-table",
                    path(), in_quotes(table));
            found_.block_table = *parsed;
        }
        const auto option_or = [&](const std::string& option, std::string_view key) {
            return option.empty() && stated(key) != nullptr ? *stated(key) : option;
        };
        scales_.emplace(file_, option_or(options_.scale, "scale"), option_or(options_.zero_point, "zero_point"),
                        option_or(options_.codes, "codes"), given_);
        const auto* layout = stated("layout");
        if (!options_.layout.empty())
            layouts_.push_back(*parse_side_layouts(options_.layout));
        else if (layout != nullptr) {
            stated_layout_ = *layout;
            if (const auto parsed = parse_side_layouts(*layout)) layouts_.push_back(*parsed);
        } else if (format_ != nullptr)
            for (const auto& text : format_->layouts) layouts_.push_back(*parse_side_layouts(text));
    }

    /// The pattern that some tensor matches, and these tensors.
    [[nodiscard]] std::pair<NamePattern, std::vector<NamedPlace>> matching() const {
        std::vector<std::string> patterns;
        if (!options_.tensor_pattern.empty())
            patterns = {options_.tensor_pattern};
        else if (format_ != nullptr)
            patterns = format_->patterns;
        // A format that only the metadata state may be meant otherwise.
        if (patterns.empty() || (options_.tensor_pattern.empty() && options_.format.empty()))
            patterns.emplace_back(default_pattern);
        for (const auto& text : patterns) {
            const NamePattern pattern(text);
            if (auto places = pattern.matches(file_.tensors()); !places.empty()) return {pattern, std::move(places)};
        }
        reject_names(patterns);
    }

    [[noreturn]] void reject_names(const std::vector<std::string>& patterns) const {
        if (options_.tensor_pattern.empty()) reject_unread_form();
        std::vector<std::string> names;
        for (const auto& tensor : file_.tensors()) names.push_back(tensor.name);
        const std::string has = names.empty() ? "no tensors" : list_text(names);
        if (!options_.tensor_pattern.empty())
            throw input_error(
                "{}: no tensor is named like {} (it has {}; {{layer}} and {{head}} stand for numbers, {{side}} for "
                "key, keys, k, K or 0): correct --pattern",
                path(), in_quotes(patterns.front()), has);
        if (!options_.format.empty())
            throw input_error("{}: no tensor is named as {} names it, {} (it has {}): give the names with --pattern",
                              path(), format_->name, fmt::join(patterns, ", "), has);
        if (names.size() == 1 && !layouts_.empty() && layouts_.front()[0] && layouts_.front()[0]->has(CacheAxis::side))
            throw input_error("{}: no tensor is named like {} (it has {}): name its one tensor with --pattern {}",
                              path(), in_quotes(default_pattern), has, in_quotes(names.front()));
        std::vector<std::string> formats;
        for (const auto& name : possible_formats(file_)) formats.push_back("--format " + name);
        throw input_error("{}: no tensor is named like {} (it has {}): give {}{}", path(), in_quotes(default_pattern),
                          has, formats.empty() ? "" : fmt::format("{}, or ", fmt::join(formats, " or ")),
                          pattern_advice(formats.empty() ? guessed_pattern(file_) : ""));
    }

    /// The layout of a tensor; `side` is empty where the name does not state it.
    [[nodiscard]] const CacheLayout& layout_for(const StoredTensor& held, std::optional<Side> side) const {
        const bool by_format = options_.layout.empty() && stated_layout_.empty();
        if (by_format) reject_unread_form();
        const auto legal = legal_layouts(held.shape, stated_tokens(file_.metadata()));
        if (layouts_.empty()) reject_layout(held, legal);
        const std::size_t at = static_cast<std::size_t>(side.value_or(Side::key));
        std::vector<const CacheLayout*> fitting;
        for (const auto& layouts : layouts_)
            if (layouts[at] && layouts[at]->fits(held.shape)) fitting.push_back(&*layouts[at]);
        // Of the layouts of a format, one with two sides is meant before one with three.
        if (by_format && fitting.size() > 1 && std::any_of(fitting.begin(), fitting.end(), [&](const auto* layout) {
                return layout->size(CacheAxis::side, held.shape) == 2;
            }))
            std::erase_if(fitting, [&](const auto* layout) { return layout->size(CacheAxis::side, held.shape) != 2; });
        if (fitting.size() == 1) return *fitting.front();
        if (fitting.empty()) reject_unread_form();
        if (!fitting.empty()) {
            std::vector<std::string> texts;
            for (const auto* layout : fitting) texts.push_back(layout->text());
            throw Unfit("{} of shape {} can be {} in the format {}: give the right one with --layout",
                        tensor_text(held), shape_text(held.shape), fmt::join(texts, " or "), format_->name);
        }
        if (by_format)
            throw Unfit(
                "{} of shape {} has none of the shapes of the format {} ({}): give the meaning of its axes with "
                "--layout{}",
                tensor_text(held), shape_text(held.shape), format_->name, fmt::join(format_->layouts, "; "),
                format_->advice.empty() ? "" : format_->advice + pages_advice(format_->name, held.shape));
        if (!layouts_.front()[at])
            throw Unfit("the layout {} does not name the {} (tensor {}): add it to --layout, as in key=A,B value=C,D",
                        side_layouts_text(layouts_.front()), side_name(side.value_or(Side::key)), in_quotes(held.name));
        if (legal.empty())
            throw Unfit(
                "{} has shape {} (in layout {} it has {} axes; a cache tensor has 3 axes, head, token and dim in any "
                "order, or more with batch, layer, side or block): name all its axes with --layout",
                tensor_text(held), shape_text(held.shape), layouts_.front()[at]->text(),
                layouts_.front()[at]->axes.size());
        throw Unfit("{} of shape {} does not fit layout {} (it can be {}): correct the layout with --layout",
                    tensor_text(held), shape_text(held.shape), layouts_.front()[at]->text(), choices_of(legal));
    }

    void reject_unread_form() const {
        if (!unread_form_) unread_form_ = unread_form(file_);
        if (!unread_form_->empty()) throw Unfit("{}", *unread_form_);
    }

    [[noreturn]] void reject_layout(const StoredTensor& held, const std::vector<std::string>& legal) const {
        if (!stated_layout_.empty())
            throw Unfit("metadata layout {} is unknown (shape {} can be {}): give it with --layout",
                        in_quotes(stated_layout_), shape_text(held.shape), choices_of(legal));
        if (legal.empty())
            throw Unfit(
                "layout of tensor {} unknown (shape {}; the file names none; a plain one has 3 axes): name its axes "
                "with --layout, of layer, side, batch, block, head, token, dim and hidden, or the program that wrote "
                "it with --format, one of {}",
                in_quotes(held.name), shape_text(held.shape), fmt::join(dump_formats().names(), ", "));
        throw Unfit("layout of tensor {} unknown (shape {} can be {}; the file names none): give it with --layout",
                    in_quotes(held.name), shape_text(held.shape), choices_of(legal));
    }

    /// Leaves out the layers and sides that nobody asked for.
    void select(std::vector<NamedPlace>& places) const {
        const auto other_layer = [&](const NamedPlace& place) {
            return place.layer && !options_.layers.contains(*place.layer);
        };
        if (!options_.layers.empty() && !std::ranges::all_of(places, other_layer)) std::erase_if(places, other_layer);
        const auto other_side = [&](const NamedPlace& place) {
            return options_.side && place.side && place.side != options_.side && !layouts_.empty() &&
                   !layouts_.front()[static_cast<std::size_t>(*place.side)];
        };
        if (!std::ranges::all_of(places, other_side)) std::erase_if(places, other_side);
    }

    /// Leaves out the layers with a tensor that cannot belong to the cache, where others can and none was asked for.
    void leave_out_unfit(const NamePattern& pattern, std::vector<NamedPlace>& places) {
        std::optional<Unfit> first;
        std::set<std::size_t> layers;
        for (const auto& place : places) {
            try {
                require_fit(pattern, place);
            } catch (const Unfit& found) {
                if (!place.layer || options_.layers.contains(*place.layer)) throw;
                if (!first) first = found;
                layers.insert(*place.layer);
            }
        }
        if (layers.empty()) return;
        const auto unfit = [&](const NamedPlace& place) { return place.layer && layers.contains(*place.layer); };
        if (std::ranges::all_of(places, unfit)) throw *first;
        std::vector<std::string> names;
        for (const auto& place : places)
            if (unfit(place)) {
                names.push_back(file_.tensors()[place.index].name);
                unfit_.push_back(place.index);
            }
        std::erase_if(places, unfit);
        note_left_out(names, first->reason);
    }

    /// Throws Unfit.
    void require_fit(const NamePattern& pattern, const NamedPlace& place) const {
        const auto& held = file_.tensors()[place.index];
        if (format_ != nullptr && format_->unfit != nullptr && place.layer)
            if (const auto why = format_->unfit(file_.metadata(), *place.layer, held); !why.empty())
                throw Unfit("layer {} {} (tensor {}): store a cache that keeps every token", *place.layer, why,
                            in_quotes(held.name));
        if (!holds_numbers_or_codes(held)) throw Unfit("{}", unread_type_text(held));
        require_readable(pattern, held, place, layout_for(held, place.side));
    }

    /// Rejects options that change nothing.
    void require_effect() const {
        if (given_.head_dim != 0 && !has_hidden_)
            throw usage_error("{}: no axis of layout {} holds all heads (heads have an axis): leave --head-dim out",
                              path(), found_.layout);
        if (!given_.block_table.empty() && !has_pages_)
            throw usage_error(
                "{}: no axis of layout {} counts pages: leave --block-table out, or name the axis block with --layout",
                path(), found_.layout);
    }

    void add_slices(const NamePattern& pattern, const NamedPlace& place) {
        const auto& held = file_.tensors()[place.index];
        const DType dtype = scales_->number_type(held);
        const CacheLayout& layout = layout_for(held, place.side);
        has_hidden_ = has_hidden_ || layout.has(CacheAxis::hidden);
        has_pages_ = has_pages_ || layout.has(CacheAxis::block);
        if (std::find(held.shape.begin(), held.shape.end(), 0) != held.shape.end()) {
            empty_.push_back(held.name);
            return;
        }
        const std::size_t sequences = layout.size(CacheAxis::batch, held.shape);
        found_.sequences = std::max(found_.sequences, sequences);
        if (sequences > 1 && !options_.batch && !options_.any_sequence)
            throw input_error("{} of shape {} holds {} sequences (layout {}): choose one with --batch, from 0",
                              where(held.name), shape_text(held.shape), sequences, layout.text());
        const std::size_t batch = options_.batch.value_or(0);
        if (batch >= sequences)
            throw usage_error("{}: there is no sequence {} (tensor {} holds {}, from 0): correct --batch", path(),
                              batch, in_quotes(held.name), sequences);
        auto slices =
            cache_slices(layout, held.shape, held.fortran_order, options_.head_dim, batch, !found_.block_table.empty());
        if (layout.size(CacheAxis::side, held.shape) == all_sides.size())
            note(
                "the axis side of size 3 is read as keys, values, queries: a tensor of queries, keys, values is "
                "another");
        stored_alone_ = stored_alone_ && held.dtype == dtype;
        for (std::size_t i = 0; i < slices.size(); ++i) {
            auto& slice = slices[i];
            slice.part.index = place.index;
            use_block_table(held, layout, slice.part);
            const std::size_t layer = slice.layer ? *slice.layer : place.layer ? *place.layer : layer_of_file(path());
            const Side side = slice.side ? *slice.side : *place.side;
            const NamedPlace own{place.index, side, layer, place.head, place.chunk};
            slice.part.scale = scales_->of(held, layout, own, i, options_.head_dim, batch);
            parts_[{layer, side}].push_back(
                {place.chunk, place.head.value_or(0), held.name + slice.place, dtype, slice.part});
            stored_alone_ = stored_alone_ && slice.place.empty() && !place.head && !pattern.has_chunk();
        }
        const auto side = place.side.value_or(Side::key);
        auto& used = used_[static_cast<std::size_t>(side)];
        if (!used) used = layout;
        same_layout_ = same_layout_ && used->axes == layout.axes;
    }

    /// Checks what the axes and the name say together.
    void require_readable(const NamePattern& pattern, const StoredTensor& held, const NamedPlace& place,
                          const CacheLayout& layout) const {
        if (pattern.has_side() == layout.has(CacheAxis::side))
            throw Unfit("the names {} and the layout {} {} which tensors are keys and which are values: {}",
                        in_quotes(pattern.text()), layout.text(), pattern.has_side() ? "both say" : "do not say",
                        pattern.has_side() ? "leave {side} or the axis side out"
                                           : "write {side} into --pattern, or the axis side into --layout");
        if (place.layer && layout.has(CacheAxis::layer))
            throw Unfit("the names {} and the layout {} both count layers: leave {{layer}} or the axis out",
                        in_quotes(pattern.text()), layout.text());
        if (place.head && layout.size(CacheAxis::head, held.shape) != 1)
            throw Unfit("the names {} and the layout {} both count heads: leave {{head}} or the axis out",
                        in_quotes(pattern.text()), layout.text());
        constexpr std::size_t most_layers = 10000;
        if (layout.size(CacheAxis::layer, held.shape) > most_layers)
            throw Unfit("{} of shape {} has {} layers in layout {}: correct the layout with --layout",
                        tensor_text(held), shape_text(held.shape), layout.size(CacheAxis::layer, held.shape),
                        layout.text());
        if (layout.has(CacheAxis::hidden)) {
            const std::size_t hidden = layout.size(CacheAxis::hidden, held.shape);
            if (options_.head_dim == 0)
                throw Unfit(
                    "{} of shape {} holds all heads in one axis of {} (layout {}): give the channels of a head with "
                    "--head-dim",
                    tensor_text(held), shape_text(held.shape), hidden, layout.text());
            if (hidden % options_.head_dim != 0)
                throw Unfit("{} of shape {} has {} channels in all, not whole heads of {}: correct --head-dim",
                            tensor_text(held), shape_text(held.shape), hidden, options_.head_dim);
        }
        const auto tokens = stated_tokens(file_.metadata());
        const std::size_t on_axis = layout.size(CacheAxis::token, held.shape);
        if (tokens && layout.plain() && !pattern.has_chunk() && *tokens != on_axis &&
            std::find(held.shape.begin(), held.shape.end(), *tokens) != held.shape.end())
            throw Unfit(
                "{} of shape {} does not fit layout {} (its token axis has {}, the metadata state {} tokens; it can be "
                "{}): correct the layout with --layout",
                tensor_text(held), shape_text(held.shape), layout.text(), on_axis, *tokens,
                choices_of(legal_layouts(held.shape, tokens)));
    }

    /// The tokens of a paged cache: those of the pages in the table, as many as the metadata state.
    void use_block_table(const StoredTensor& held, const CacheLayout& layout, StoredPart& part) {
        if (!layout.has(CacheAxis::block)) return;
        const std::size_t pages = layout.size(CacheAxis::block, held.shape);
        const std::size_t of_page = layout.size(CacheAxis::token, held.shape);
        for (const std::size_t page : found_.block_table)
            if (page >= pages)
                throw input_error(
                    "{} of shape {} has {} pages and the block table names page {} (from 0): correct --block-table",
                    where(held.name), shape_text(held.shape), pages, page);
        if (!found_.block_table.empty())
            part.axes.tokens = found_.block_table.size() * of_page;
        else if (pages > 1)
            note(
                "pages are read in the order of the file (it has no block_table): give the order of the sequence with "
                "--block-table");
        if (const auto tokens = stated_tokens(file_.metadata())) part.axes.tokens = std::min(part.axes.tokens, *tokens);
    }

    void note(const std::string& text) {
        if (std::find(found_.notes.begin(), found_.notes.end(), text) == found_.notes.end())
            found_.notes.push_back(text);
    }

    void require_some(const std::vector<NamedPlace>& places) {
        if (parts_.empty()) {
            const auto& held = file_.tensors()[places.front().index];
            throw input_error("{} is empty (shape {}): dump at least one head, token and channel", where(held.name),
                              shape_text(held.shape));
        }
        if (!empty_.empty()) note(fmt::format("empty tensors are left out: {}", list_text(empty_)));
    }

    /// Leaves out the layers whose keys and values disagree, where others agree and none was asked for.
    void check_sides() {
        const auto unequal = take_unequal_layers(found_.tensors, side_layouts_text(used_));
        for (const std::size_t layer : unequal.layers)
            if (found_.tensors.empty() || options_.layers.contains(layer)) throw Unfit("{}", unequal.reason);
        if (!unequal.layers.empty()) note_left_out(unequal.names, unequal.reason);
        unfit_.insert(unfit_.end(), unequal.indexes.begin(), unequal.indexes.end());
    }
    void note_left_out(const std::vector<std::string>& names, const std::string& reason) {
        note(fmt::format("layers that do not fit are left out: {} ({})", list_text(names), reason));
    }

    void set_layout() {
        SideLayouts used = used_;
        auto& values = used[static_cast<std::size_t>(Side::value)];
        if (!values) values = used[static_cast<std::size_t>(Side::key)];
        found_.layout = side_layouts_text(used);
        const auto& any = used_[0] ? used_[0] : used_[1] ? used_[1] : used_[2];
        const bool one = std::all_of(used_.begin(), used_.end(),
                                     [&](const auto& layout) { return !layout || layout->axes == any->axes; });
        if (stored_alone_ && same_layout_ && one) found_.plain = any->plain();
    }

    const TensorContainer& file_;
    const DumpOptions given_;
    DumpOptions options_;  ///< completed by the metadata
    const DumpFormat* format_ = nullptr;
    std::string stated_layout_;         ///< by the metadata, where no option overrules it
    std::vector<SideLayouts> layouts_;  ///< that may be meant
    SideLayouts used_;                  ///< by the first tensor of each side
    bool stored_alone_ = true, same_layout_ = true;
    bool has_hidden_ = false, has_pages_ = false;
    std::map<std::pair<std::size_t, Side>, std::vector<NamedPart>> parts_;
    std::vector<std::string> empty_;
    std::vector<std::size_t> unfit_;  ///< tensors of layers that are left out
    std::optional<CacheScales> scales_;
    mutable std::optional<std::string> unread_form_;  ///< of the whole file, looked for once
    FoundTensors found_;
};

}  // namespace

FoundTensors find_tensors(const TensorContainer& file, const DumpOptions& options) {
    try {
        return TensorFinder(file, options).find();
    } catch (const Unfit& unfit) {
        throw input_error("{}: {}", file.path(), unfit.reason);
    }
}

}  // namespace spiked::sim
