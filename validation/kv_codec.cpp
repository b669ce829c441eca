#include "validation/kv_codec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <thread>

#include "estimators/batch_decomposition.hpp"
#include "estimators/byte_stream.hpp"
#include "sim/dump_view.hpp"
#include "sim/printable.hpp"
#include "theory/base/error.hpp"
#include "theory/base/parallel.hpp"
#include "theory/base/sha256.hpp"
#include "validation/device_trials.hpp"
#include "validation/head_codec.hpp"
#include "validation/open_dumps.hpp"

namespace spiked::validation {
namespace {

using estimators::Compressor;
using estimators::NumberFormat;
using sim::Side;

constexpr std::size_t chunk_bytes = std::size_t{1} << 20;
constexpr std::uint64_t batch_entries = std::uint64_t{1} << 22;  ///< of the blocks at work at once
constexpr std::uint64_t compressor_entries = std::uint64_t{1} << 24;
constexpr std::size_t device_batch = 4096;  ///< blocks, within those bounds

/// Every block of every coded tensor in the order of the file.
class BlockOrder {
public:
    explicit BlockOrder(const KvContainerHeader& header) : header_(header) { settle(); }
    [[nodiscard]] bool at_end() const { return at_.tensor == header_.tensors.size(); }
    [[nodiscard]] const BlockPlace& place() const { return at_; }
    void next() {
        if (++at_.head == header_.tensors[at_.tensor].coded->heads) {
            at_.head = 0;
            ++at_.block;
        }
        settle();
    }

private:
    void settle() {
        while (!at_end()) {
            const auto& coded = header_.tensors[at_.tensor].coded;
            if (coded && at_.first_token(header_) < coded->tokens) return;
            at_ = {at_.tensor + 1, 0, 0};
        }
    }
    const KvContainerHeader& header_;
    BlockPlace at_;
};

/// The blocks that are worked on together: enough for all threads, few enough to hold.
std::vector<BlockPlace> next_batch(BlockOrder& order, const KvContainerHeader& header, std::size_t most) {
    std::vector<BlockPlace> batch;
    std::uint64_t entries = 0;
    std::uint64_t rotations = 0;
    while (!order.at_end() && batch.size() < most && entries < batch_entries && rotations < compressor_entries) {
        const std::uint64_t dim = header.tensors[order.place().tensor].coded->dim;
        entries += order.place().tokens(header) * dim;
        rotations += dim * dim;
        batch.push_back(order.place());
        order.next();
    }
    return batch;
}

std::uint64_t block_count(const KvContainerHeader& header) {
    std::uint64_t count = 0;
    for (const auto& tensor : header.tensors)
        if (tensor.coded) count += tensor.coded->heads * ((tensor.coded->tokens - 1) / header.block_tokens + 1);
    return count;
}

/// Of one head's rows.
estimators::QuantizerOptions options_of(const KvContainerHeader& header, const CodedTensor& coded, std::size_t head) {
    estimators::QuantizerOptions options = header.quantizer;
    options.axis = coded.side == Side::key ? estimators::GroupAxis::key : estimators::GroupAxis::value;
    options.rotation_index = coded.rotations[head];
    return options;
}

/// Compressors of heads, made when they are first needed and dropped when the file has passed their tensor.
class Compressors {
public:
    Compressors(const KvContainerHeader& header, std::string file)
        : header_(header), file_(std::move(file)), method_(estimators::parse_method(header.method)) {}

    void prepare(const std::vector<BlockPlace>& batch, std::size_t threads) {
        if (batch.empty()) return;
        std::erase_if(made_, [&](const auto& entry) { return entry.first.first < batch.front().tensor; });
        std::uint64_t held = 0;
        for (const auto& [key, compressor] : made_) held += square(header_.tensors[key.first].coded->dim);
        if (held > 4 * compressor_entries) made_.clear();
        std::vector<std::pair<Key, std::unique_ptr<HeadCodec>*>> missing;
        for (const auto& place : batch) {
            if (!place.full(header_)) continue;
            const Key key{place.tensor, place.head};
            const auto [slot, added] = made_.try_emplace(key);
            if (added) missing.emplace_back(key, &slot->second);
        }
        for_each_parallel(missing.size(), threads, [&](std::size_t i) {
            *missing[i].second = std::make_unique<HeadCodec>(make(missing[i].first));
        });
    }
    [[nodiscard]] const Compressor& of(const BlockPlace& place) const {
        return made_.at({place.tensor, place.head})->of(place.block);
    }

private:
    using Key = std::pair<std::size_t, std::size_t>;  // tensor, head
    static std::uint64_t square(std::uint64_t dim) { return dim * dim; }

    [[nodiscard]] HeadCodec make(const Key& key) const {
        const CodedTensor& coded = *header_.tensors[key.first].coded;
        try {
            return {method_,      coded.dim,           header_.bits, options_of(header_, coded, key.second),
                    coded.tokens, header_.block_tokens};
        } catch (const Error& error) {
            throw Error(error.code(), fmt::format("{}: tensor {}: {}", file_,
                                                  sim::in_quotes(header_.tensors[key.first].name), error.what()));
        }
    }

    const KvContainerHeader& header_;
    std::string file_;
    estimators::Method method_;
    std::map<Key, std::unique_ptr<HeadCodec>> made_;
};

/// The rotary embedding around keys that are coded un-rotated.
class KeyRotary {
public:
    KeyRotary(const KvContainerHeader& header, const std::string& where) : header_(header) {
        const auto has_keys = [](const ContainedTensor& tensor) {
            return tensor.coded && tensor.coded->side == Side::key;
        };
        if (estimators::parse_method(header.method).unrope && std::ranges::any_of(header.tensors, has_keys))
            rotary_ = sim::dump_rotary(header.metadata, where);
    }
    [[nodiscard]] arma::mat undone(const BlockPlace& place, arma::mat rows) const {
        if (!turns(place)) return rows;
        return sim::undo_rope(rows, rotary_->rope, position(place));
    }
    [[nodiscard]] arma::mat applied(const BlockPlace& place, arma::mat rows) const {
        if (!turns(place)) return rows;
        return sim::apply_rope(rows, rotary_->rope, position(place));
    }

private:
    [[nodiscard]] bool turns(const BlockPlace& place) const {
        return rotary_ && place.full(header_) && header_.tensors[place.tensor].coded->side == Side::key;
    }
    [[nodiscard]] double position(const BlockPlace& place) const {
        return rotary_->position_start + static_cast<double>(place.first_token(header_));
    }

    const KvContainerHeader& header_;
    std::optional<sim::DumpRotary> rotary_;
};

std::size_t thread_count(std::size_t threads) {
    return threads != 0 ? threads : std::max(1U, std::thread::hardware_concurrency());
}

/// Blocks a batch: the decomposition works on this many at once, twice over for each thread.
std::size_t most_blocks(std::size_t threads) {
    return 2 * thread_count(threads) * estimators::BatchDecomposition<double>::lanes;
}

/// Work in groups that the decomposition likes, but enough groups for all threads.
void for_each_group(std::size_t count, std::size_t threads,
                    const std::function<void(std::size_t first, std::size_t end)>& work) {
    const std::size_t lanes = estimators::BatchDecomposition<double>::lanes;
    const std::size_t size = std::clamp<std::size_t>(count / thread_count(threads), 1, lanes);
    for_each_parallel((count + size - 1) / size, threads,
                      [&](std::size_t group) { work(group * size, std::min(count, (group + 1) * size)); });
}

// --- encoding

struct Coded {
    estimators::Encoded encoded;
    std::size_t rank = 0;
    double paper_bits = 0.0;
    double relative_l2 = 0.0;
};

KvContainerHeader header_of(const EncodePlan& plan, const sim::KvDump& dump) {
    KvContainerHeader header;
    header.method = plan.method;
    header.bits = plan.bits;
    header.quantizer = plan.quantizer;
    header.block_tokens = plan.block_tokens;
    header.dump_sha256 = hex(sha256_of_file(plan.dump));
    header.layout = dump.layout();
    header.metadata = dump.metadata();
    for (const auto& stored : dump.file().tensors()) {
        if (!stored.dtype)
            throw input_error(
                "{}: tensor {} of type {} cannot be kept (it is of no type that is written): leave it out", dump.path(),
                sim::in_quotes(stored.name), sim::in_quotes(stored.dtype_text));
        header.tensors.push_back({stored.name, *stored.dtype, stored.shape, 0, std::nullopt});
        ContainedTensor& tensor = header.tensors.back();
        const auto bytes = sim::tensor_bytes(stored.shape, *stored.dtype);
        if (!bytes) throw bug("{}: tensor {} has no size", dump.path(), sim::in_quotes(stored.name));
        tensor.bytes = *bytes;
    }
    for (const auto& tensor : dump.tensors()) {
        if (tensor.side == Side::query) continue;
        CodedTensor coded{tensor.layer, tensor.side, tensor.heads, tensor.tokens, tensor.dim, {}};
        for (std::size_t head = 0; head < tensor.heads; ++head)
            coded.rotations.push_back(
                rotation_of(head_identity(header.dump_sha256, tensor.name, head, plan.block_tokens)));
        header.tensors[tensor.index].coded = std::move(coded);
    }
    check_bounds(header);
    return header;
}

/// Runs the work on a block; what goes wrong names it.
template <class Work>
auto located(const std::string& file, const BlockPlace& place, const KvContainerHeader& header, const Work& work) {
    try {
        return work();
    } catch (const Error& error) {
        throw Error(error.code(), fmt::format("{}: {}: {}", file, place.text(header), error.what()));
    }
}

double relative_error(const arma::mat& block, const arma::mat& decoded) {
    const double error = arma::norm(decoded - block, "fro");
    return error == 0.0 ? 0.0 : error / arma::norm(block, "fro");
}

class Encoder {
public:
    explicit Encoder(const EncodePlan& plan)
        : plan_(plan),
          dump_(plan.dump, plan.dump_options),
          header_(header_of(plan, dump_)),
          rotary_(header_, plan.dump),
          compressors_(header_, plan.dump) {
        for (const auto& tensor : dump_.tensors()) by_index_[tensor.index] = &tensor;
        if (plan.device.backend != spiked::cuda::Backend::cpu)
            lanes_ = std::make_unique<TrialLanes>(plan.device, thread_count(plan.threads));
    }

    EncodeSummary run() {
        KvContainerWriter writer(plan_.output, header_, expected_bytes());
        BlockOrder order(header_);
        const std::uint64_t total = block_count(header_);
        std::uint64_t done = 0;
        std::size_t tensor = 0;
        while (!order.at_end()) {
            const auto batch = next_batch(order, header_, lanes_ ? device_batch : most_blocks(plan_.threads));
            const auto coded = encode(batch);
            for (std::size_t i = 0; i < batch.size(); ++i) {
                finish_tensors(writer, tensor, batch[i].tensor);
                writer.block(batch[i], coded[i].encoded);
                count(batch[i], coded[i]);
            }
            done += batch.size();
            if (plan_.progress) plan_.progress(done, total);
        }
        finish_tensors(writer, tensor, header_.tensors.size());
        writer.commit();
        return summary(writer);
    }

private:
    /// Ends the tensors from `at` on and writes what is kept as it is, up to `next`.
    void finish_tensors(KvContainerWriter& writer, std::size_t& at, std::size_t next) {
        for (; at < next; ++at) {
            if (!header_.tensors[at].coded) copy(writer, at);
            writer.end_tensor();
        }
    }

    void copy(KvContainerWriter& writer, std::size_t index) {
        const std::uint64_t bytes = header_.tensors[index].bytes;
        std::vector<std::byte> chunk(std::min<std::uint64_t>(bytes, chunk_bytes));
        for (std::uint64_t first = 0; first < bytes; first += chunk.size()) {
            const auto part = std::span(chunk).first(std::min<std::uint64_t>(chunk.size(), bytes - first));
            dump_.file().read_bytes(index, first, part);
            writer.raw(part);
        }
    }

    /// The rows of a block as they are coded.
    [[nodiscard]] arma::mat rows_at(const BlockPlace& place) const {
        arma::mat block = dump_.read_block(*by_index_.at(place.tensor), place.head, place.first_token(header_),
                                           place.tokens(header_));
        if (!place.full(header_)) return block;
        return located(plan_.dump, place, header_, [&] { return rotary_.undone(place, std::move(block)); });
    }

    /// Codes the full blocks of a batch that kernels code, those of a head together. What they leave stays as it is.
    std::vector<bool> encode_on_device(const std::vector<BlockPlace>& batch, std::vector<Coded>& coded) {
        std::vector<bool> done(batch.size(), false);
        if (!lanes_) return done;
        const auto method = estimators::parse_method(header_.method);
        std::map<std::pair<std::size_t, std::size_t>, std::vector<std::size_t>> by_head;
        for (std::size_t i = 0; i < batch.size(); ++i)
            if (batch[i].full(header_) &&
                coding_obstacle(method, header_.quantizer,
                                {header_.block_tokens, header_.tensors[batch[i].tensor].coded->dim}, header_.bits)
                    .empty())
                by_head[{batch[i].tensor, batch[i].head}].push_back(i);
        const std::vector<std::pair<std::pair<std::size_t, std::size_t>, std::vector<std::size_t>>> heads(
            by_head.begin(), by_head.end());
        std::vector<char> by_device(batch.size(), 0);  // of each its own: written by several threads
        for_each_parallel(heads.size(), plan_.threads, [&](std::size_t h) {
            const auto& [key, blocks] = heads[h];
            const CodedTensor& tensor = *header_.tensors[key.first].coded;
            const auto options = options_of(header_, tensor, key.second);
            const estimators::Shape shape{header_.block_tokens, tensor.dim};
            const auto coding = row_coding(method.quantizer, options, shape, header_.bits);
            const estimators::Ledger ledger = ledger_of(method.quantizer, options, shape, header_.bits);
            const auto found = lanes_->code_rows(
                coding, blocks.size(), [&, &blocks = blocks](std::size_t b, float* to) {  // clang 14 wants it said
                    const arma::mat rows = rows_at(batch[blocks[b]]);
                    std::transform(rows.begin(), rows.end(), to,
                                   [](double entry) { return static_cast<float>(entry); });
                });
            for (std::size_t b = 0; b < blocks.size(); ++b) {
                if (!found[b].coded) continue;
                const double error = found[b].error;
                coded[blocks[b]] = {
                    {found[b].bytes, ledger}, 0, header_.bits, error == 0.0 ? 0.0 : std::sqrt(error / found[b].energy)};
                by_device[blocks[b]] = 1;
            }
        });
        for (std::size_t i = 0; i < batch.size(); ++i) {
            done[i] = by_device[i] != 0;
            device_blocks_ += done[i] ? 1 : 0;
        }
        return done;
    }

    std::vector<Coded> encode(const std::vector<BlockPlace>& batch) {
        std::vector<Coded> coded(batch.size());
        const std::vector<bool> done = encode_on_device(batch, coded);
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
                if (place.full(header_)) {
                    full.push_back(i);
                    rows.push_back(std::move(block));
                } else {
                    coded[i].encoded = located(plan_.dump, place, header_, [&] { return keep_rows(block); });
                }
            }
            auto blocks = estimators::AnalysedBlock::together(std::move(rows));
            for (std::size_t b = 0; b < full.size(); ++b)
                coded[full[b]] = located(plan_.dump, batch[full[b]], header_,
                                         [&] { return code(compressors_.of(batch[full[b]]), blocks[b]); });
        });
        return coded;
    }

    static Coded code(const Compressor& compressor, estimators::AnalysedBlock& block) {
        auto [encoded, rank] = compressor.encode(block);
        const arma::mat& rows = block.block();
        const double error = relative_error(rows, compressor.decode(encoded.bytes, rows.n_rows));
        return {std::move(encoded), rank, compressor.paper_bits(rank, rows.n_rows), error};
    }

    void count(const BlockPlace& place, const Coded& coded) {
        if (!place.full(header_)) {
            window_tokens_ += place.tokens(header_);
            return;
        }
        ++blocks_;
        paper_bits_ += coded.paper_bits;
        ranks_ += static_cast<double>(coded.rank);
        auto& [sum, number] = errors_[header_.tensors[place.tensor].coded->side == Side::key ? 0 : 1];
        sum += coded.relative_l2;
        ++number;
    }

    [[nodiscard]] EncodeSummary summary(const KvContainerWriter& writer) const {
        const auto mean = [](double sum, std::uint64_t number) {
            return number == 0 ? std::nullopt : std::optional(sum / static_cast<double>(number));
        };
        EncodeSummary found;
        found.bytes = writer.bytes();
        found.blocks = blocks_;
        found.device_blocks = device_blocks_;
        found.kept_bytes = writer.kept_bytes();
        found.window_tokens = window_tokens_;
        found.ledger = writer.ledger();
        found.paper_bits = mean(paper_bits_, blocks_);
        found.mean_rank = mean(ranks_, blocks_);
        found.key_error = mean(errors_[0].first, errors_[0].second);
        found.value_error = mean(errors_[1].first, errors_[1].second);
        for (const auto& tensor : header_.tensors) {
            ++(tensor.coded ? found.tensors : found.kept_tensors);
            if (tensor.coded) found.entries += tensor.coded->heads * tensor.coded->tokens * tensor.coded->dim;
        }
        return found;
    }

    /// About: a full disk is announced with it.
    [[nodiscard]] std::uint64_t expected_bytes() const {
        std::uint64_t bytes = 0;
        for (const auto& tensor : header_.tensors)
            bytes += tensor.coded
                         ? tensor.bytes * static_cast<std::uint64_t>(plan_.bits + 1.0) / sim::dtype_bits(tensor.dtype)
                         : tensor.bytes;
        return bytes;
    }

    const EncodePlan& plan_;
    sim::KvDump dump_;
    KvContainerHeader header_;
    KeyRotary rotary_;
    Compressors compressors_;
    std::map<std::size_t, const sim::DumpTensor*> by_index_;
    std::unique_ptr<TrialLanes> lanes_;
    std::uint64_t blocks_ = 0;
    std::uint64_t device_blocks_ = 0;
    std::uint64_t window_tokens_ = 0;
    double paper_bits_ = 0.0;
    double ranks_ = 0.0;
    std::array<std::pair<double, std::uint64_t>, 2> errors_{};
};

// --- decoding

double largest_of(sim::DType dtype) {
    switch (dtype) {
        case sim::DType::f16:
            return 65504.0;
        case sim::DType::bf16:
            return 0x1.FEp127;
        case sim::DType::f32:
            return static_cast<double>(FLT_MAX);
        default:
            return DBL_MAX;
    }
}

/// The blocks of all heads of one tensor at the same tokens, as the dump stores them: runs that lie together in the
/// file become one write.
class Slab {
public:
    Slab(const KvContainerHeader& header, const BlockPlace& place)
        : tensor_(place.tensor),
          first_token_(place.first_token(header)),
          shape_(header.tensors[place.tensor].shape),
          token_axis_(header.layout.token),
          tokens_(shape_[token_axis_]),
          width_(sim::dtype_bits(header.tensors[place.tensor].dtype) / 8) {
        shape_[token_axis_] = place.tokens(header);
        axes_ = sim::axes_of(header.layout, shape_);
        bytes_.resize(axes_.heads * axes_.tokens * axes_.dim * width_);
    }

    [[nodiscard]] bool holds(const KvContainerHeader& header, const BlockPlace& place) const {
        return place.tensor == tensor_ && place.first_token(header) == first_token_;
    }
    /// `block` has the bytes of a head's entries, channel after channel.
    void put(std::size_t head, std::span<const std::byte> block) {
        const std::byte* from = block.data();
        for (std::size_t j = 0; j < axes_.dim; ++j)
            for (std::size_t t = 0; t < axes_.tokens; ++t, from += width_)
                std::memcpy(
                    bytes_.data() + width_ * (head * axes_.head_step + t * axes_.token_step + j * axes_.dim_step), from,
                    width_);
    }
    void write(sim::SafetensorsWriter& out) const {
        std::uint64_t inner = width_;
        for (std::size_t axis = token_axis_ + 1; axis < shape_.size(); ++axis) inner *= shape_[axis];
        const std::uint64_t run = axes_.tokens * inner;
        for (std::uint64_t i = 0; i * run < bytes_.size(); ++i)
            out.write(tensor_, (i * tokens_ + first_token_) * inner, std::span(bytes_).subspan(i * run, run));
    }

private:
    std::size_t tensor_;
    std::size_t first_token_;
    std::vector<std::size_t> shape_;
    std::size_t token_axis_;
    std::size_t tokens_;  ///< of the whole tensor
    std::size_t width_;
    sim::TensorAxes axes_;
    std::vector<std::byte> bytes_;
};

class Decoder {
public:
    Decoder(const std::string& file, const std::string& output, std::size_t threads, const CodecProgress& progress)
        : reader_(file),
          header_(reader_.header()),
          rotary_(header_, file),
          out_(output, header_.metadata, forms()),
          threads_(threads),
          progress_(progress),
          compressors_(header_, file) {}

    DecodeSummary run() {
        BlockOrder order(header_);
        const std::uint64_t total = block_count(header_);
        std::uint64_t done = 0;
        while (!order.at_end()) {
            const auto batch = next_batch(order, header_, most_blocks(threads_));
            std::vector<std::vector<std::uint8_t>> payloads;
            for (const auto& place : batch) {
                finish_tensors(place.tensor);
                payloads.push_back(reader_.block(place));
            }
            const auto decoded = decode(batch, payloads);
            for (std::size_t i = 0; i < batch.size(); ++i) put(batch[i], decoded[i]);
            done += batch.size();
            if (progress_) progress_(done, total);
        }
        finish_tensors(header_.tensors.size());
        reader_.finish();
        flush();
        out_.commit();
        return {out_.size(), header_.tensors.size(), total, header_.method, header_.bits};
    }

private:
    [[nodiscard]] std::vector<sim::TensorForm> forms() const {
        std::vector<sim::TensorForm> all;
        for (const auto& tensor : header_.tensors) all.push_back({tensor.name, tensor.dtype, tensor.shape});
        return all;
    }

    void finish_tensors(std::size_t next) {
        for (; at_ < next; ++at_) {
            if (!header_.tensors[at_].coded) copy(at_);
            reader_.end_tensor(at_);
        }
    }

    void copy(std::size_t index) {
        const std::uint64_t bytes = header_.tensors[index].bytes;
        std::vector<std::byte> chunk(std::min<std::uint64_t>(bytes, chunk_bytes));
        for (std::uint64_t first = 0; first < bytes; first += chunk.size()) {
            const auto part = std::span(chunk).first(std::min<std::uint64_t>(chunk.size(), bytes - first));
            reader_.raw(index, part);
            out_.write(index, first, part);
        }
    }

    std::vector<std::vector<std::byte>> decode(const std::vector<BlockPlace>& batch,
                                               const std::vector<std::vector<std::uint8_t>>& payloads) {
        compressors_.prepare(batch, threads_);
        std::vector<std::vector<std::byte>> decoded(batch.size());
        for_each_parallel(batch.size(), threads_, [&](std::size_t i) {
            decoded[i] = located(reader_.path(), batch[i], header_, [&] { return decode(batch[i], payloads[i]); });
        });
        return decoded;
    }

    [[nodiscard]] std::vector<std::byte> decode(const BlockPlace& place, std::span<const std::uint8_t> payload) const {
        const ContainedTensor& tensor = header_.tensors[place.tensor];
        const std::size_t tokens = place.tokens(header_);
        arma::mat rows = place.full(header_) ? rotary_.applied(place, compressors_.of(place).decode(payload, tokens))
                                             : kept_rows(payload, tokens, tensor.coded->dim);
        if (!rows.is_finite()) throw input_error("it decodes to NaN or infinity: the data is damaged or forged");
        const double largest = largest_of(tensor.dtype);
        rows.clamp(-largest, largest);
        std::vector<std::byte> bytes(rows.n_elem * (sim::dtype_bits(tensor.dtype) / 8));
        (void)sim::encode({rows.memptr(), rows.n_elem}, tensor.dtype, bytes);
        return bytes;
    }

    void put(const BlockPlace& place, std::span<const std::byte> block) {
        if (slab_ && !slab_->holds(header_, place)) flush();
        if (!slab_) slab_.emplace(header_, place);
        slab_->put(place.head, block);
    }
    void flush() {
        if (slab_) slab_->write(out_);
        slab_.reset();
    }

    KvContainerReader reader_;
    const KvContainerHeader& header_;
    KeyRotary rotary_;
    sim::SafetensorsWriter out_;
    std::size_t threads_;
    const CodecProgress& progress_;
    Compressors compressors_;
    std::size_t at_ = 0;
    std::optional<Slab> slab_;
};

}  // namespace

EncodeSummary encode_dump(const EncodePlan& plan) {
    if (plan.block_tokens == 0) throw usage_error("a block of 0 tokens is not possible: choose --block 1 or more");
    // Names and options are checked before any file is opened.
    const auto method = estimators::parse_method(plan.method);
    auto options = plan.quantizer;
    options.rotation = estimators::RotationKind::identity;
    (void)Compressor(method, 2, plan.bits, options);
    return Encoder(plan).run();
}

DecodeSummary decode_container(const std::string& file, const std::string& output, std::size_t threads,
                               const CodecProgress& progress) {
    try {
        return Decoder(file, output, threads, progress).run();
    } catch (const Error& error) {
        // No user typed these words: they are in the file.
        if (error.code() == ExitCode::usage) throw Error(ExitCode::unusable_input, error.what());
        throw;
    }
}

}  // namespace spiked::validation
