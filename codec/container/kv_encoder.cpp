#include "codec/container/kv_encoder.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "codec/cache/cache_rows.hpp"
#include "codec/cache/head_rotation.hpp"
#include "codec/container/kv_codec_blocks.hpp"
#include "core/files/sha256.hpp"
#include "core/runtime/error.hpp"
#include "core/runtime/parallel.hpp"
#include "core/text/printable.hpp"
#include "estimators/compressors/relative_error.hpp"
#include "estimators/svd/batch_decomposition.hpp"

namespace spiked::codec {
namespace {

using estimators::Compressor;
using sim::Side;

/// Most blocks of a batch for a block coder, and most entries of them and of their rotations.
constexpr std::size_t coder_batch = 4096;
constexpr std::uint64_t coder_entries = 8 * batch_entries;

/// Runs the work on groups of at most the batch size of the decomposition, smaller if that leaves threads without work.
void for_each_group(std::size_t count, std::size_t threads,
                    const std::function<void(std::size_t first, std::size_t end)>& work) {
    const std::size_t lanes = estimators::BatchDecomposition<double>::lanes;
    const std::size_t size = std::clamp<std::size_t>(count / thread_count(threads), 1, lanes);
    for_each_parallel((count + size - 1) / size, threads,
                      [&](std::size_t group) { work(group * size, std::min(count, (group + 1) * size)); });
}

struct Coded {
    estimators::Encoded encoded;
    std::size_t rank = 0;
    double paper_bits = 0.0;
    std::vector<double> relative_l2;  ///< of each head, in the order of its tensors
};

/// Whether the container holds the stored tensors. Otherwise, because these hold several layers or sides, or because
/// tokens are left out, it holds a tensor `layers.L.SIDE` of head,token,dim for each layer and side.
bool keeps_tensors(const sim::KvDump& dump) { return dump.layout().plain && dump.has_all_tokens(); }

ContainedTensor kept_tensor(const sim::KvDump& dump, const sim::StoredTensor& stored) {
    if (!stored.dtype)
        throw input_error("{}: tensor {} of type {} cannot be stored (this type is not supported): leave it out",
                          dump.path(), in_quotes(stored.name), in_quotes(stored.dtype_text));
    const auto bytes = sim::tensor_bytes(stored.shape, *stored.dtype);
    if (!bytes) throw data_error("{}: tensor {} has no size", dump.path(), in_quotes(stored.name));
    return {stored.name, *stored.dtype, stored.shape, *bytes, std::nullopt};
}

ContainedTensor separate_tensor(const sim::KvDump& dump, const sim::DumpTensor& tensor) {
    ContainedTensor contained{fmt::format("layers.{}.{}", tensor.layer, side_name(tensor.side)),
                              tensor.dtype,
                              {tensor.heads, tensor.tokens, tensor.dim},
                              0,
                              std::nullopt};
    const auto bytes = sim::tensor_bytes(contained.shape, contained.dtype);
    if (!bytes) throw data_error("{}: tensor {} has no size", dump.path(), in_quotes(tensor.name));
    contained.bytes = *bytes;
    return contained;
}

/// The metadata of a dump whose tensors are stored as `layers.L.SIDE`.
sim::Metadata separate_metadata(const sim::KvDump& dump, const sim::TensorLayout& layout) {
    sim::Metadata metadata;
    for (const auto& [key, value] : dump.metadata())
        if (const auto of_storage = {"layout", "format", "pattern", "tokens", "skip_empty", "head_dim", "block_table",
                                     "scale", "zero_point", "codes"};
            std::ranges::find(of_storage, key) == of_storage.end())
            metadata.emplace_back(key, value);
    metadata.emplace_back("layout", layout.text());
    return metadata;
}

std::size_t longest_sequence(const sim::KvDump& dump) {
    std::size_t most = 1;
    for (const auto& tensor : dump.tensors())
        if (tensor.side != Side::query) most = std::max(most, tensor.tokens);
    return most;
}

/// What is written about a dump before its blocks.
struct PlannedContainer {
    KvContainerHeader header;
    std::vector<const sim::DumpTensor*> sources;  ///< of the tensors of the header; null: outside the cache
};

PlannedContainer planned_container(const EncodePlan& plan, const sim::KvDump& dump) {
    dump.reject_tiny_heads();
    KvContainerHeader header;
    header.method = plan.method;
    header.cache = plan.cache;
    if (plan.cache) {
        header.method = {.text = plan.cache->text};
        header.derotated = plan.cache->derotates && sim::has_rotary(dump);
    }
    header.bits = plan.bits;
    header.quantizer = plan.quantizer;
    header.block_tokens = plan.cache ? longest_sequence(dump) : plan.block_tokens;
    header.dump_sha256 = hex(sha256_of_file(plan.dump));
    const bool keeps = keeps_tensors(dump);
    header.layout = keeps ? *dump.layout().plain : sim::TensorLayout{};
    header.metadata = keeps ? dump.metadata() : separate_metadata(dump, header.layout);
    std::vector<const sim::DumpTensor*> sources;
    const std::set<std::string> outside(dump.ignored().begin(), dump.ignored().end());
    for (const auto& stored : dump.file().tensors())
        if (keeps || outside.contains(stored.name)) {
            header.tensors.push_back(kept_tensor(dump, stored));
            sources.push_back(nullptr);
        }
    for (const auto& tensor : dump.tensors()) {
        const std::size_t at = keeps ? tensor.index : header.tensors.size();
        if (!keeps) {
            header.tensors.push_back(separate_tensor(dump, tensor));
            if (const std::string& name = header.tensors[at].name; outside.contains(name))
                throw input_error("{}: tensor {} is not of the cache and has the name of the {} of layer {}: rename it",
                                  dump.path(), in_quotes(name), side_name(tensor.side), tensor.layer);
            sources.push_back(nullptr);
        }
        sources[at] = &tensor;
        if (tensor.side == Side::query) continue;
        CodedTensor coded{tensor.layer, tensor.side, tensor.heads, tensor.tokens, tensor.dim, {}};
        for (std::size_t head = 0; head < tensor.heads; ++head)
            coded.rotations.push_back(
                rotation_of(head_identity(header.dump_sha256, tensor.name, head, plan.block_tokens)));
        header.tensors[at].coded = std::move(coded);
    }
    spiked::located([&] { return dump.path(); }, [&] { join_sides(header); });
    check_bounds(header);
    return {std::move(header), std::move(sources)};
}

class Encoder {
public:
    explicit Encoder(const EncodePlan& plan)
        : plan_(plan),
          dump_(plan.dump, plan.dump_options),
          container_(planned_container(plan, dump_)),
          rotary_(container_.header, plan.dump),
          compressors_(container_.header, plan.dump) {
        for (std::size_t i = 0; i < dump_.file().tensors().size(); ++i)
            in_file_.emplace(dump_.file().tensors()[i].name, i);
    }

    EncodeSummary run() {
        KvContainerWriter writer(plan_.output, container_.header, expected_bytes());
        BlockOrder order(container_.header);
        const std::uint64_t total = block_count(container_.header);
        std::uint64_t done = 0;
        std::size_t tensor = 0;
        while (!order.at_end()) {
            const bool has_coder = plan_.coder && !plan_.cache;
            const auto batch = has_coder ? next_batch(order, container_.header, coder_batch, coder_entries)
                                         : next_batch(order, container_.header, most_blocks(plan_.threads));
            const auto coded = encode(batch);
            for (std::size_t i = 0; i < batch.size(); ++i) {
                finish_tensors(writer, tensor, batch[i].tensor);
                writer.block(batch[i], coded[i].encoded);
                count(batch[i], coded[i]);
            }
            done += batch.size();
            if (plan_.progress) plan_.progress(done, total);
        }
        finish_tensors(writer, tensor, container_.header.tensors.size());
        writer.commit();
        return summary(writer);
    }

private:
    /// Ends the tensors from `at` up to `next`, and copies those of them that are stored unchanged.
    void finish_tensors(KvContainerWriter& writer, std::size_t& at, std::size_t next) {
        for (; at < next; ++at) {
            if (!container_.header.tensors[at].coded) copy(writer, at);
            writer.end_tensor();
        }
    }

    void copy(KvContainerWriter& writer, std::size_t index) {
        if (container_.sources[index] != nullptr && !keeps_tensors(dump_)) {
            copy_heads(writer, *container_.sources[index]);
            return;
        }
        const std::size_t stored = in_file_.at(container_.header.tensors[index].name);
        const std::uint64_t bytes = container_.header.tensors[index].bytes;
        std::vector<std::byte> chunk(std::min<std::uint64_t>(bytes, copied_bytes));
        for (std::uint64_t first = 0; first < bytes; first += chunk.size()) {
            const auto part = std::span(chunk).first(std::min<std::uint64_t>(chunk.size(), bytes - first));
            dump_.file().read_bytes(stored, first, part);
            writer.raw(part);
        }
    }

    /// Stores a tensor of the cache unchanged, in the layout head,token,dim.
    void copy_heads(KvContainerWriter& writer, const sim::DumpTensor& tensor) {
        constexpr std::size_t most_tokens = 4096;
        for (std::size_t head = 0; head < tensor.heads; ++head)
            for (std::size_t first = 0; first < tensor.tokens; first += most_tokens) {
                const arma::mat rows =
                    dump_.read_block(tensor, head, first, std::min(most_tokens, tensor.tokens - first)).t();
                std::vector<std::byte> bytes(rows.n_elem * (sim::dtype_bits(tensor.dtype) / 8));
                (void)sim::encode({rows.memptr(), rows.n_elem}, tensor.dtype, bytes);
                writer.raw(bytes);
            }
    }

    /// The tensors of a block in the dump.
    [[nodiscard]] std::vector<const sim::DumpTensor*> sources(const BlockPlace& place) const {
        std::vector<const sim::DumpTensor*> all;
        for (const std::size_t tensor : place.tensors(container_.header)) all.push_back(container_.sources.at(tensor));
        return all;
    }

    /// The rows of a block as the method codes them: keys are de-rotated if it demands that.
    [[nodiscard]] arma::mat rows_at(const BlockPlace& place) const {
        if (container_.header.cache)
            return joined_rows(dump_, sources(place), place.head, place.heads(container_.header), rotary_.taken_off());
        arma::mat block = dump_.read_block(*container_.sources.at(place.tensor), place.head,
                                           place.first_token(container_.header), place.tokens(container_.header));
        if (!place.full(container_.header)) return block;
        return located(plan_.dump, place, container_.header,
                       [&] { return rotary_.derotated(place, std::move(block)); });
    }

    /// Blocks of a batch, of one side and width, that the block coder codes in one call.
    struct Part {
        const CodedTensor* tensor = nullptr;   ///< of the first block
        std::vector<std::size_t> blocks = {};  ///< indices in the batch
    };
    /// The full blocks of a batch that the block coder supports. Heads and layers are together, in a part for each
    /// thread where that leaves enough blocks.
    [[nodiscard]] std::vector<Part> parts_for_block_coder(const std::vector<BlockPlace>& batch) const {
        constexpr std::size_t least_blocks = 128;
        std::map<std::pair<Side, std::size_t>, std::vector<std::size_t>> by_shape;
        for (std::size_t i = 0; i < batch.size(); ++i) {
            const CodedTensor& tensor = *container_.header.tensors[batch[i].tensor].coded;
            if (batch[i].full(container_.header)) by_shape[{tensor.side, tensor.dim}].push_back(i);
        }
        std::vector<Part> parts;
        for (const auto& [shape, blocks] : by_shape) {
            const CodedTensor& tensor = *container_.header.tensors[batch[blocks.front()].tensor].coded;
            if (!plan_.coder
                     ->unsupported_reason({container_.header.method,
                                           container_.header.quantizer,
                                           {container_.header.block_tokens, tensor.dim},
                                           container_.header.bits})
                     .empty())
                continue;
            const std::size_t each = std::max(least_blocks, blocks.size() / thread_count(plan_.threads) + 1);
            for (std::size_t first = 0; first < blocks.size(); first += each) {
                const auto begin = blocks.begin() + static_cast<std::ptrdiff_t>(first);
                const std::size_t some = std::min(each, blocks.size() - first);
                parts.push_back({&tensor, {begin, begin + static_cast<std::ptrdiff_t>(some)}});
            }
        }
        return parts;
    }

    /// Codes the full blocks of a batch that the block coder supports. Returns which blocks were coded; the entries of
    /// `coded` for the others are unchanged.
    std::vector<bool> encode_with_block_coder(const std::vector<BlockPlace>& batch, std::vector<Coded>& coded) {
        std::vector<bool> done(batch.size(), false);
        if (!plan_.coder) return done;
        const std::vector<Part> parts = parts_for_block_coder(batch);
        std::vector<char> by_coder(batch.size(), 0);  // char, not bool: several threads write different elements
        for_each_parallel(parts.size(), plan_.threads, [&](std::size_t p) {
            const auto& [tensor, blocks] = parts[p];
            const auto options = options_of(container_.header, *tensor, 0);
            std::vector<std::uint64_t> rotations;
            for (const std::size_t block : blocks)
                rotations.push_back(container_.header.tensors[batch[block].tensor].coded->rotations[batch[block].head]);
            auto found = plan_.coder->code(
                {container_.header.method,
                 options,
                 {container_.header.block_tokens, tensor->dim},
                 container_.header.bits},
                rotations, [&, &blocks = blocks](std::size_t b, float* to) {  // clang 14 needs the explicit capture
                    const arma::mat rows = rows_at(batch[blocks[b]]);
                    std::transform(rows.begin(), rows.end(), to,
                                   [](double entry) { return static_cast<float>(entry); });
                });
            for (std::size_t b = 0; b < blocks.size(); ++b) {
                if (!found[b]) continue;
                coded[blocks[b]] = {
                    std::move(found[b]->encoded), found[b]->rank, found[b]->paper_bits, {found[b]->relative_l2}};
                by_coder[blocks[b]] = 1;
            }
        });
        for (std::size_t i = 0; i < batch.size(); ++i) {
            done[i] = by_coder[i] != 0;
            device_blocks_ += done[i] ? 1 : 0;
        }
        return done;
    }

    std::vector<Coded> encode(const std::vector<BlockPlace>& batch) {
        std::vector<Coded> coded(batch.size());
        if (container_.header.cache) {
            for_each_parallel(batch.size(), plan_.threads, [&](std::size_t i) {
                coded[i] = located(plan_.dump, batch[i], container_.header, [&] { return code_sequence(batch[i]); });
            });
            return coded;
        }
        const std::vector<bool> done = encode_with_block_coder(batch, coded);
        std::vector<BlockPlace> left;
        for (std::size_t i = 0; i < batch.size(); ++i)
            if (!done[i]) left.push_back(batch[i]);
        compressors_.prepare(left, plan_.threads);
        for_each_group(batch.size(), plan_.threads, [&](std::size_t first, std::size_t end) {
            std::vector<arma::mat> rows;
            std::vector<std::size_t> full;
            for (std::size_t i = first; i < end; ++i) {
                if (done[i]) continue;
                const auto& place = batch[i];
                arma::mat block = rows_at(place);
                if (place.full(container_.header)) {
                    full.push_back(i);
                    rows.push_back(std::move(block));
                } else {
                    coded[i].encoded =
                        located(plan_.dump, place, container_.header, [&] { return estimators::keep_rows(block); });
                }
            }
            auto blocks = estimators::AnalysedBlock::as_batch(std::move(rows));
            for (std::size_t b = 0; b < full.size(); ++b)
                coded[full[b]] = located(plan_.dump, batch[full[b]], container_.header,
                                         [&] { return code(compressors_.of(batch[full[b]]), blocks[b]); });
        });
        return coded;
    }

    /// Codes all tokens of the heads of a block.
    [[nodiscard]] Coded code_sequence(const BlockPlace& place) const {
        const arma::mat rows = rows_at(place);
        const std::size_t heads = place.heads(container_.header);
        const auto coder = sequence_coder(container_.header, place,
                                          first_queries(dump_, sources(place), place.head, heads, rotary_.taken_off()));
        Coded coded{coder.sequence.encode(rows), coder.rank, plan_.bits, {}};
        const arma::mat decoded = coder.sequence.decode(coded.encoded.bytes, rows.n_rows);
        const std::size_t dim = container_.header.tensors[place.tensor].coded->dim;
        for (std::size_t at = 0; at < rows.n_cols; at += dim)
            coded.relative_l2.push_back(
                estimators::relative_l2(rows.cols(at, at + dim - 1), decoded.cols(at, at + dim - 1)));
        return coded;
    }

    static Coded code(const Compressor& compressor, estimators::AnalysedBlock& block) {
        auto [encoded, rank] = compressor.encode(block);
        const arma::mat& rows = block.block();
        const double error = estimators::relative_l2(rows, compressor.decode(encoded.bytes, rows.n_rows));
        return {std::move(encoded), rank, compressor.paper_bits(rank, rows.n_rows), {error}};
    }

    void count(const BlockPlace& place, const Coded& coded) {
        if (!place.full(container_.header)) {
            window_tokens_ += place.tokens(container_.header);
            return;
        }
        ++blocks_;
        paper_bits_ += coded.paper_bits;
        ranks_ += static_cast<double>(coded.rank);
        const std::size_t heads = place.heads(container_.header);
        auto error = coded.relative_l2.begin();
        for (const std::size_t tensor : place.tensors(container_.header)) {
            auto& [sum, number] = errors_[container_.header.tensors[tensor].coded->side == Side::key ? 0 : 1];
            for (std::size_t h = 0; h < heads; ++h) sum += *error++;
            number += heads;
        }
    }

    [[nodiscard]] EncodeSummary summary(const KvContainerWriter& writer) const {
        const auto mean = [](double sum, std::uint64_t number) {
            return number == 0 ? std::nullopt : std::optional(sum / static_cast<double>(number));
        };
        EncodeSummary found;
        found.bytes = writer.bytes();
        found.blocks = blocks_;
        found.block_tokens = container_.header.block_tokens;
        found.notes = dump_.notes();
        if (const auto note = dump_.empty_tokens_note(); !note.empty()) found.notes.push_back(note);
        if (!keeps_tensors(dump_))
            found.notes.emplace_back(
                "the coded dump has a tensor layers.LAYER.SIDE of head,token,dim for each layer and side, because the "
                "stored tensors hold more than one or tokens are left out");
        found.device_blocks = device_blocks_;
        found.kept_bytes = writer.kept_bytes();
        found.window_tokens = window_tokens_;
        found.ledger = writer.ledger();
        found.paper_bits = mean(paper_bits_, blocks_);
        found.mean_rank = mean(ranks_, blocks_);
        found.key_error = mean(errors_[0].first, errors_[0].second);
        found.value_error = mean(errors_[1].first, errors_[1].second);
        for (const auto& tensor : container_.header.tensors) {
            ++(tensor.coded ? found.tensors : found.kept_tensors);
            if (tensor.coded) found.entries += tensor.coded->heads * tensor.coded->tokens * tensor.coded->dim;
        }
        return found;
    }

    /// An estimate, which is used to detect in advance that the disk is too full.
    [[nodiscard]] std::uint64_t expected_bytes() const {
        std::uint64_t bytes = 0;
        for (const auto& tensor : container_.header.tensors)
            bytes += tensor.coded
                         ? tensor.bytes * static_cast<std::uint64_t>(plan_.bits + 1.0) / sim::dtype_bits(tensor.dtype)
                         : tensor.bytes;
        return bytes;
    }

    const EncodePlan& plan_;
    sim::KvDump dump_;
    const PlannedContainer container_;
    KeyRotary rotary_;
    Compressors compressors_;
    std::map<std::string, std::size_t> in_file_;  ///< numbers of the stored tensors
    std::uint64_t blocks_ = 0;
    std::uint64_t device_blocks_ = 0;
    std::uint64_t window_tokens_ = 0;
    double paper_bits_ = 0.0;
    double ranks_ = 0.0;
    std::array<std::pair<double, std::uint64_t>, 2> errors_{};
};

}  // namespace

EncodeSummary encode_dump(const EncodePlan& plan) {
    if (plan.block_tokens == 0) throw precondition_error("blocks of 0 tokens");
    // Options are checked before any file is opened.
    if (plan.cache) {
        plan.cache->check_bits(plan.bits);
        return Encoder(plan).run();
    }
    auto options = plan.quantizer;
    options.rotation = estimators::RotationKind::identity;
    (void)Compressor(plan.method, 2, plan.bits, options);
    return Encoder(plan).run();
}

}  // namespace spiked::codec
