#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "codec/container/kv_container.hpp"
#include "core/runtime/error.hpp"
#include "estimators/compressors/head_codec.hpp"
#include "sim/kv/dump_view.hpp"

namespace spiked::codec {

/// Tensors that are stored unchanged are copied in chunks of this many bytes.
inline constexpr std::size_t copied_bytes = std::size_t{1} << 20;

/// Iterates over every block of every coded tensor in the order of the file.
class BlockOrder {
public:
    explicit BlockOrder(const KvContainerHeader& header) : header_(header) { skip_finished_tensors(); }
    [[nodiscard]] bool at_end() const { return at_.tensor == header_.tensors.size(); }
    [[nodiscard]] const BlockPlace& place() const { return at_; }
    void next() {
        at_.head += at_.heads(header_);
        if (at_.head == header_.tensors[at_.tensor].coded->heads) {
            at_.head = 0;
            ++at_.block;
        }
        skip_finished_tensors();
    }

private:
    void skip_finished_tensors() {
        while (!at_end()) {
            const auto& coded = header_.tensors[at_.tensor].coded;
            if (coded && blocks_of(header_, at_.tensor) > 0 && at_.first_token(header_) < coded->tokens) return;
            at_ = {at_.tensor + 1, 0, 0};
        }
    }
    const KvContainerHeader& header_;
    BlockPlace at_;
};

/// Most entries of the blocks of a batch, and of their rotations.
inline constexpr std::uint64_t batch_entries = std::uint64_t{1} << 22;
/// The next blocks to be coded as one batch: at most `most`, and fewer if their entries or rotations would be more than
/// `most_entries`.
[[nodiscard]] std::vector<BlockPlace> next_batch(BlockOrder& order, const KvContainerHeader& header, std::size_t most,
                                                 std::uint64_t most_entries = batch_entries);
/// Largest number of blocks in a batch: for each thread, twice the batch size of the decomposition.
[[nodiscard]] std::size_t most_blocks(std::size_t threads);
[[nodiscard]] std::uint64_t block_count(const KvContainerHeader& header);

/// Options of the quantizer for the rows of one head.
[[nodiscard]] estimators::QuantizerOptions options_of(const KvContainerHeader& header, const CodedTensor& coded,
                                                      std::size_t head);

/// The coder of all tokens of the heads of a block by the header's cache method, channels beside channels in the order
/// of BlockPlace::tensors. `queries` as in CacheGroup: only encoders need them.
[[nodiscard]] estimators::CacheCoder sequence_coder(const KvContainerHeader& header, const BlockPlace& place,
                                                    std::vector<arma::mat> queries = {});

/// Compressors of heads, if there is no cache method. They are made when they are first needed and deleted once the
/// blocks of their tensor are done.
class Compressors {
public:
    Compressors(const KvContainerHeader& header, std::string file) : header_(header), file_(std::move(file)) {}

    void prepare(const std::vector<BlockPlace>& batch, std::size_t threads);
    [[nodiscard]] const estimators::Compressor& of(const BlockPlace& place) const {
        return made_.at({place.tensor, place.head})->of(place.block);
    }

private:
    using Key = std::pair<std::size_t, std::size_t>;  // tensor, head
    [[nodiscard]] estimators::HeadCodec make(const Key& key) const;

    const KvContainerHeader& header_;
    std::string file_;
    std::map<Key, std::unique_ptr<estimators::HeadCodec>> made_;
};

/// De-rotates keys before they are coded and applies RoPE to the decoded keys, if the method is one with `unrope`
/// or the header says that a cache method coded them that way. The rows are those of one head of `place.tensor`.
class KeyRotary {
public:
    KeyRotary(const KvContainerHeader& header, const std::string& where);
    [[nodiscard]] arma::mat derotated(const BlockPlace& place, arma::mat rows) const;
    [[nodiscard]] arma::mat applied(const BlockPlace& place, arma::mat rows) const;
    /// The rotary embedding of the dump, if keys are coded without it.
    [[nodiscard]] const std::optional<sim::DumpRotary>& taken_off() const { return rotary_; }

private:
    [[nodiscard]] bool is_derotated(const BlockPlace& place) const;
    [[nodiscard]] double position(const BlockPlace& place) const;

    const KvContainerHeader& header_;
    std::optional<sim::DumpRotary> rotary_;
};

/// Runs the work on a block; errors that it throws name the file and the block.
template <class Work>
auto located(const std::string& file, const BlockPlace& place, const KvContainerHeader& header, const Work& work) {
    return spiked::located([&] { return fmt::format("{}: {}", file, place.text(header)); }, work);
}

}  // namespace spiked::codec
