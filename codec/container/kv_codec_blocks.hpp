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

/// Of a tensor that is kept as it is, at once.
inline constexpr std::size_t copied_bytes = std::size_t{1} << 20;

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

/// The blocks that are worked on together: enough for all threads, few enough to hold, at most so many.
[[nodiscard]] std::vector<BlockPlace> next_batch(BlockOrder& order, const KvContainerHeader& header, std::size_t most);
/// Blocks a batch: the decomposition works on this many at once, twice over for each thread.
[[nodiscard]] std::size_t most_blocks(std::size_t threads);
[[nodiscard]] std::uint64_t block_count(const KvContainerHeader& header);

/// Of one head's rows.
[[nodiscard]] estimators::QuantizerOptions options_of(const KvContainerHeader& header, const CodedTensor& coded,
                                                      std::size_t head);

/// Compressors of heads, made when they are first needed and dropped when the file has passed their tensor.
class Compressors {
public:
    Compressors(const KvContainerHeader& header, std::string file)
        : header_(header), file_(std::move(file)), method_(estimators::parse_method(header.method)) {}

    void prepare(const std::vector<BlockPlace>& batch, std::size_t threads);
    [[nodiscard]] const estimators::Compressor& of(const BlockPlace& place) const {
        return made_.at({place.tensor, place.head})->of(place.block);
    }

private:
    using Key = std::pair<std::size_t, std::size_t>;  // tensor, head
    [[nodiscard]] estimators::HeadCodec make(const Key& key) const;

    const KvContainerHeader& header_;
    std::string file_;
    estimators::Method method_;
    std::map<Key, std::unique_ptr<estimators::HeadCodec>> made_;
};

/// The rotary embedding around keys that are coded un-rotated.
class KeyRotary {
public:
    KeyRotary(const KvContainerHeader& header, const std::string& where);
    [[nodiscard]] arma::mat derotated(const BlockPlace& place, arma::mat rows) const;
    [[nodiscard]] arma::mat applied(const BlockPlace& place, arma::mat rows) const;

private:
    [[nodiscard]] bool turns(const BlockPlace& place) const;
    [[nodiscard]] double position(const BlockPlace& place) const;

    const KvContainerHeader& header_;
    std::optional<sim::DumpRotary> rotary_;
};

/// Runs the work on a block; what goes wrong names it.
template <class Work>
auto located(const std::string& file, const BlockPlace& place, const KvContainerHeader& header, const Work& work) {
    return spiked::located([&] { return fmt::format("{}: {}", file, place.text(header)); }, work);
}

}  // namespace spiked::codec
