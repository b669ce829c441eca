#include "codec/container/kv_decoder.hpp"

#include <cfloat>
#include <cstring>
#include <map>

#include "codec/container/kv_codec_blocks.hpp"
#include "core/runtime/error.hpp"
#include "core/runtime/parallel.hpp"
#include "sim/kv/dump_view.hpp"

namespace spiked::codec {
namespace {

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

/// The blocks of all heads of one tensor at the same tokens, in the layout of the dump, so that each run of consecutive
/// bytes of the file becomes one write.
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

    /// `block` holds the entries of a head, channel after channel.
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
            for (std::size_t i = 0; i < batch.size(); ++i) {
                put(batch[i], decoded[i]);
                full_blocks_ += batch[i].full(header_) ? 1 : 0;
            }
            done += batch.size();
            if (progress_) progress_(done, total);
        }
        finish_tensors(header_.tensors.size());
        reader_.finish();
        flush();
        out_.commit();
        return {out_.size(), header_.tensors.size(), full_blocks_, header_.method.text, header_.bits};
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
        std::vector<std::byte> chunk(std::min<std::uint64_t>(bytes, copied_bytes));
        for (std::uint64_t first = 0; first < bytes; first += chunk.size()) {
            const auto part = std::span(chunk).first(std::min<std::uint64_t>(chunk.size(), bytes - first));
            reader_.raw(index, part);
            out_.write(index, first, part);
        }
    }

    /// The entries of the heads of a block, in the order of their tensors.
    using Heads = std::vector<std::vector<std::byte>>;

    std::vector<Heads> decode(const std::vector<BlockPlace>& batch,
                              const std::vector<std::vector<std::uint8_t>>& payloads) {
        compressors_.prepare(batch, threads_);
        std::vector<Heads> decoded(batch.size());
        for_each_parallel(batch.size(), threads_, [&](std::size_t i) {
            decoded[i] = located(reader_.path(), batch[i], header_, [&] { return decode(batch[i], payloads[i]); });
        });
        return decoded;
    }

    [[nodiscard]] Heads decode(const BlockPlace& place, std::span<const std::uint8_t> payload) const {
        const std::size_t tokens = place.tokens(header_);
        const std::size_t dim = header_.tensors[place.tensor].coded->dim;
        if (!place.full(header_)) return {entries(place.tensor, estimators::kept_rows(payload, tokens, dim))};
        const arma::mat rows = header_.cache ? sequence_coder(header_, place).sequence.decode(payload, tokens)
                                             : compressors_.of(place).decode(payload, tokens);
        Heads decoded;
        for (const std::size_t tensor : place.tensors(header_))
            for (std::size_t h = 0; h < place.heads(header_); ++h) {
                const std::size_t at = decoded.size() * dim;
                decoded.push_back(entries(
                    tensor, rotary_.applied({tensor, place.block, place.head + h}, rows.cols(at, at + dim - 1))));
            }
        return decoded;
    }

    /// The rows of a head as the dump stores them, channel after channel.
    [[nodiscard]] std::vector<std::byte> entries(std::size_t index, arma::mat rows) const {
        const ContainedTensor& tensor = header_.tensors[index];
        if (!rows.is_finite()) throw input_error("it decodes to NaN or infinity: the data is damaged or forged");
        const double largest = largest_of(tensor.dtype);
        rows.clamp(-largest, largest);
        std::vector<std::byte> bytes(rows.n_elem * (sim::dtype_bits(tensor.dtype) / 8));
        (void)sim::encode({rows.memptr(), rows.n_elem}, tensor.dtype, bytes);
        return bytes;
    }

    void put(const BlockPlace& place, const Heads& heads) {
        if (place.tensor != held_.tensor || place.block != held_.block) flush();
        held_ = place;
        auto from = heads.begin();
        for (const std::size_t tensor : place.tensors(header_)) {
            Slab& slab = slabs_.try_emplace(tensor, header_, BlockPlace{tensor, place.block}).first->second;
            for (std::size_t h = 0; h < place.heads(header_); ++h) slab.put(place.head + h, *from++);
        }
    }
    void flush() {
        for (const auto& [tensor, slab] : slabs_) slab.write(out_);
        slabs_.clear();
    }

    KvContainerReader reader_;
    const KvContainerHeader& header_;
    KeyRotary rotary_;
    sim::SafetensorsWriter out_;
    std::size_t threads_;
    const CodecProgress& progress_;
    Compressors compressors_;
    std::size_t at_ = 0;
    std::uint64_t full_blocks_ = 0;
    BlockPlace held_;                    ///< the last block of the slabs
    std::map<std::size_t, Slab> slabs_;  ///< of the tensors of a block
};

}  // namespace

DecodeSummary decode_container(const std::string& file, const std::string& output, std::size_t threads,
                               const CodecProgress& progress) {
    try {
        return Decoder(file, output, threads, progress).run();
    } catch (const Error& error) {
        // Names and options come from the file here, not from the user.
        if (error.kind() == ErrorKind::usage) throw Error(ErrorKind::input, error.what());
        throw;
    }
}

}  // namespace spiked::codec
