#include "sim/kv/kv_dump.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "core/runtime/error.hpp"
#include "core/text/names.hpp"
#include "core/text/printable.hpp"
#include "sim/io/matrix_file.hpp"
#include "sim/kv/dump_scales.hpp"

namespace spiked::sim {
namespace {

/// The part that holds a token of a head.
const StoredPart& part_of(const DumpTensor& tensor, std::size_t head, std::size_t stored_token) {
    // Parts are in the order of their first tokens, so those behind the token are skipped at once.
    const auto behind = std::ranges::partition_point(
        tensor.parts, [&](const StoredPart& part) { return part.first_token <= stored_token; });
    for (auto at = behind; at != tensor.parts.begin();) {
        const StoredPart& part = *--at;
        if (stored_token - part.first_token >= part.axes.tokens) break;
        if (head >= part.first_head && head - part.first_head < part.axes.heads) return part;
    }
    throw precondition_error("tensor {} has no head {} at token {}", tensor.name, head, stored_token);
}

}  // namespace

KvDump::KvDump(const std::string& path, const DumpOptions& options) : options_(options) {
    check_options(options_);
    file_ = open_tensors(path);
    auto found = find_tensors(*file_, options_);
    tensors_ = std::move(found.tensors);
    layout_ = {std::move(found.layout), found.plain};
    block_table_ = std::move(found.block_table);
    sequences_ = found.sequences;
    notes_ = std::move(found.notes);
    reading_ = std::move(found.reading);
    for (std::size_t i = 0; i < file_->tensors().size(); ++i)
        if (!found.matched[i]) ignored_.push_back(file_->tensors()[i].name);
    metadata_ = file_->metadata();
    if (!found.metadata_prefix.empty())
        for (const auto& [key, value] : file_->metadata())
            if (key.starts_with(found.metadata_prefix)) {
                const std::string own = key.substr(found.metadata_prefix.size());
                if (find_metadata(metadata_, own) == nullptr) metadata_.emplace_back(own, value);
            }
    model_ = metadata("model").value_or("");
    prompt_id_ = metadata(options_.prompt_id_key);
    if (prompt_id_ && sequences_ > 1) *prompt_id_ += fmt::format("[{}]", sequence());
    reject_long_texts();
    select_tokens();
}

/// Names, model and prompt are stored once for each head, so long texts in a header of a megabyte could become
/// gigabytes.
void KvDump::reject_long_texts() const {
    constexpr std::size_t longest = 1000;
    const auto check = [&](const std::string& what, std::size_t size) {
        if (size > longest)
            throw input_error("{}: {} has {} bytes (at most {} are read, because every head repeats them): shorten it",
                              path(), what, size, longest);
    };
    for (const auto& tensor : tensors_) check("the name of tensor " + in_quotes(tensor.name), tensor.name.size());
    for (const std::string& key : {std::string("model"), options_.prompt_id_key})
        check("its metadata " + key, metadata(key).value_or("").size());
}

void KvDump::select_tokens() {
    bool by_metadata = false;
    if (const auto stated = metadata("tokens");
        options_.tokens.empty() && stated && stated->find(':') != std::string::npos) {
        options_.tokens = *stated;
        by_metadata = true;
        try {
            (void)token_range(*stated, 0);
        } catch (const Error& error) {
            throw input_error("{}: metadata tokens: {}", path(), error.what());
        }
    }
    if (const auto stated = metadata("skip_empty")) {
        const auto is_one_of = [&](std::initializer_list<std::string_view> words) {
            return std::ranges::find(words, *stated) != words.end();
        };
        if (is_one_of({"true", "True", "yes", "1"}))
            options_.skip_empty = true;
        else if (!is_one_of({"false", "False", "no", "0", ""}))
            throw input_error(
                "{}: metadata skip_empty is {} (true or false is needed): correct it where the dump is made", path(),
                in_quotes(*stated));
    }
    if (options_.tokens.empty() && !options_.skip_empty) return;
    const std::size_t most = std::ranges::max(tensors_, {}, &DumpTensor::tokens).tokens;
    if (!options_.tokens.empty())
        for (auto& tensor : tensors_) {
            const auto [first, end] = token_range(options_.tokens, tensor.tokens);
            all_tokens_ = all_tokens_ && first == 0 && end == tensor.tokens;
            tensor.first_token = first;
            tensor.tokens = end - first;
        }
    std::vector<std::string> outside;
    for (const auto& tensor : tensors_)
        if (tensor.tokens == 0) outside.push_back(tensor.name);
    if (outside.size() == tensors_.size())
        throw Error(by_metadata ? ErrorKind::input : ErrorKind::usage,
                    fmt::format("{}: the token range {} {}leaves no token (tensors have up to {}): correct --tokens",
                                path(), in_quotes(options_.tokens), by_metadata ? "of the metadata " : "", most));
    std::erase_if(tensors_, [](const DumpTensor& tensor) { return tensor.tokens == 0; });
    if (!outside.empty())
        notes_.push_back(
            fmt::format("tensors without a token in {} are left out: {}", options_.tokens, list_text(outside)));
    if (options_.skip_empty) skip_empty_tokens();
    shift_positions();
}

/// Leaves out the empty tokens of every layer.
void KvDump::skip_empty_tokens() {
    std::vector<std::string> zero;
    std::size_t skipped = 0;
    for (std::size_t i = 0; i < tensors_.size();) {
        std::size_t end = i;
        while (end < tensors_.size() && tensors_[end].layer == tensors_[i].layer) ++end;
        const auto empty = empty_tokens(tensors_[i].layer);
        const std::size_t tokens = tensors_[i].tokens;
        for (; i < end; ++i) {
            DumpTensor& tensor = tensors_[i];
            if (empty.empty() || tensor.tokens != tokens) continue;
            skipped = std::max(skipped, empty.size());
            std::vector<std::size_t> kept;
            for (std::size_t t = 0, next = 0; t < tokens; ++t) {
                if (next < empty.size() && empty[next] == t)
                    ++next;
                else
                    kept.push_back(tensor.stored_token(t));
            }
            tensor.tokens = kept.size();
            if (kept.empty()) {
                zero.push_back(tensor.name);
                continue;
            }
            tensor.first_token = kept.front();
            if (kept.back() - kept.front() + 1 != kept.size())
                tensor.kept = std::make_shared<const std::vector<std::size_t>>(std::move(kept));
        }
    }
    if (zero.size() == tensors_.size())
        throw input_error("{}: every token is zero (tensor {} and all others): dump the cache after it is filled",
                          path(), in_quotes(zero.front()));
    std::erase_if(tensors_, [](const DumpTensor& tensor) { return tensor.tokens == 0; });
    if (!zero.empty()) notes_.push_back(fmt::format("tensors of zeros are left out: {}", list_text(zero)));
    if (skipped == 0) return;
    all_tokens_ = false;
    notes_.push_back(fmt::format("{} {} in every head of a layer and left out", skipped,
                                 skipped == 1 ? "token is zero" : "tokens are zero"));
}

/// Makes the metadata state the positions of the tokens that are kept.
void KvDump::shift_positions() {
    bool follow = true;
    std::optional<std::size_t> first;
    for (const auto& tensor : tensors_) {
        if (tensor.side != Side::key) continue;
        follow = follow && !tensor.kept && first.value_or(tensor.first_token) == tensor.first_token;
        first = tensor.first_token;
    }
    if (!follow && metadata("keys") == "post-rope") {
        set_metadata("keys", "post-rope, with tokens left out between others");
    } else if (first.value_or(0) > 0) {
        const auto start = to_number(metadata("position_start").value_or("0"));
        if (start) set_metadata("position_start", fmt::format("{}", *start + static_cast<double>(*first)));
    }
}

void KvDump::set_metadata(std::string_view key, const std::string& value) {
    for (auto& [name, text] : metadata_)
        if (name == key) {
            text = value;
            return;
        }
    metadata_.emplace_back(key, value);
}

std::optional<std::string> KvDump::metadata(std::string_view key) const {
    const auto* value = find_metadata(metadata_, key);
    if (value == nullptr) return std::nullopt;
    return *value;
}

void KvDump::reject_tiny_heads() const {
    constexpr std::uint64_t always = 1024;
    constexpr std::uint64_t bytes_a_head = 1024;
    const std::uint64_t bytes = std::filesystem::file_size(path());
    std::uint64_t heads = 0;
    for (const auto& tensor : tensors_) heads += tensor.heads;
    if (heads > std::max(always, bytes / bytes_a_head))
        throw input_error(
            "{}: {} heads in {} (a head has some kilobytes, so layout {} may be wrong): give the right one with "
            "--layout",
            path(), heads, bytes_text(bytes), layout_.text());
}

const DumpTensor* KvDump::find(std::size_t layer, Side side) const {
    // Sorted by layer and side, each pair occurs once.
    const auto found = std::lower_bound(
        tensors_.begin(), tensors_.end(), std::pair(layer, side),
        [](const DumpTensor& tensor, const auto& wanted) { return std::pair(tensor.layer, tensor.side) < wanted; });
    return found != tensors_.end() && found->layer == layer && found->side == side ? &*found : nullptr;
}

arma::mat KvDump::gather(const DumpTensor& tensor, std::size_t head, std::size_t first_token,
                         std::size_t tokens) const {
    if (head >= tensor.heads || first_token > tensor.tokens || tokens > tensor.tokens - first_token || tokens == 0)
        throw precondition_error("a block of head {} and tokens {}+{} is requested of {} heads and {} tokens", head,
                                 first_token, tokens, tensor.heads, tensor.tokens);
    arma::mat block;
    for (std::size_t done = 0; done < tokens;) {
        const std::size_t stored = tensor.stored_token(first_token + done);
        // The longest run of tokens that are stored one after the other.
        std::size_t run = tensor.kept ? 1 : tokens - done;
        while (tensor.kept && done + run < tokens && tensor.stored_token(first_token + done + run) == stored + run)
            ++run;
        const StoredPart& part = part_of(tensor, head, stored);
        const std::size_t token = stored - part.first_token;
        const StoredRun found = stored_run(part, block_table_, token, std::min(run, part.axes.tokens - token));
        run = found.tokens;
        const auto read = [&](std::uint64_t first, std::span<double> out) {
            file_->read(part.index, found.offset + first, out);
        };
        arma::mat rows = gather_block(found.axes, head - part.first_head, found.token, run, read);
        if (part.scale) apply_scale(*part.scale, *file_, block_table_, head - part.first_head, token, rows);
        if (run == tokens) return rows;
        if (block.empty()) block.set_size(tokens, tensor.dim);
        block.rows(done, done + run - 1) = rows;
        done += run;
    }
    return block;
}

std::vector<std::size_t> KvDump::empty_tokens(std::size_t layer) const {
    constexpr std::size_t most_at_once = 4096;
    std::vector<std::size_t> empty;
    bool first = true;
    for (const auto& tensor : tensors_) {
        if (tensor.layer != layer || tensor.side == Side::query) continue;
        for (std::size_t head = 0; head < tensor.heads; ++head) {
            std::vector<std::size_t> still;
            for (std::size_t at = 0, next = 0; at < tensor.tokens; at += most_at_once) {
                const std::size_t end = std::min(at + most_at_once, tensor.tokens);
                const std::size_t before = next;
                while (next < empty.size() && empty[next] < end) ++next;
                if (!first && before == next) continue;
                const arma::mat rows = gather(tensor, head, at, end - at);
                const auto is_zero = [&](std::size_t token) { return arma::all(rows.row(token - at) == 0.0); };
                for (std::size_t i = first ? at : before; i < (first ? end : next); ++i)
                    if (const std::size_t token = first ? i : empty[i]; is_zero(token)) still.push_back(token);
            }
            empty = std::move(still);
            first = false;
            if (empty.empty()) return empty;
        }
    }
    return empty;
}

std::string KvDump::empty_tokens_note() const {
    std::size_t layers = 0, most = 0, of = 0;
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
        if (i > 0 && tensors_[i].layer == tensors_[i - 1].layer) continue;
        const std::size_t count = empty_tokens(tensors_[i].layer).size();
        layers += count > 0 ? 1 : 0;
        if (count > most) {
            most = count;
            of = tensors_[i].tokens;
        }
    }
    if (most == 0) return {};
    return fmt::format(
        "{} of {} tokens are zero in every head{} and count with the others (padding, or the unused part of a static "
        "cache?): leave them out with --skip-empty, or with --tokens",
        most, of, layers > 1 ? fmt::format(" of {} layers", layers) : "");
}

arma::mat KvDump::read_block(const DumpTensor& tensor, std::size_t head, std::size_t first_token,
                             std::size_t tokens) const {
    arma::mat block = gather(tensor, head, first_token, tokens);
    if (const auto found = find_nonfinite(block))
        throw input_error(
            "{}: tensor {} holds {} NaN or infinite {} in head {}, tokens {} to {} (first at token {}, dim {}, "
            "counted from 0): dump it again, in BF16 or F32 if it overflowed F16, or leave the tokens out with "
            "--tokens",
            path(), in_quotes(tensor.name), found->count, found->count == 1 ? "value" : "values", head,
            tensor.stored_token(first_token), tensor.stored_token(first_token + tokens - 1),
            tensor.stored_token(first_token + found->row), found->column);
    return block;
}

}  // namespace spiked::sim
