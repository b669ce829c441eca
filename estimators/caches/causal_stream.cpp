#include "estimators/caches/causal_stream.hpp"

#include <algorithm>

#include "core/runtime/error.hpp"

namespace spiked::estimators {
namespace {

// Stored beside the header and the bytes of blocks: whether there are scales, the length of each block, the step of
// each but the first.
constexpr double flag_bits = 8.0;
constexpr double length_bits = 32.0;
constexpr double step_bits = 16.0;
/// The blocks for which the first step of a sequence of unknown length is planned.
constexpr double planned_blocks = 6.0;
/// Over so many blocks the deviation of the blocks so far from B is repaid. Where the number of tokens is known, over
/// those that follow; otherwise evenly until the fourth, then over a quarter of their number.
double repaid_over(std::size_t blocks, std::size_t tokens) {
    if (tokens > blocks * causal_block)
        return static_cast<double>(tokens - blocks * causal_block) / static_cast<double>(causal_block);
    return blocks < 4 ? 4.0 - static_cast<double>(blocks) : static_cast<double>(blocks) / 4.0;
}

/// How far a block may be from the bits that are due to it, as a fraction of B.
constexpr double block_tolerance = 0.03;
constexpr double first_tolerance = 0.005;

/// Bits per entry that are left for the bytes of a block of rows, of which `overhead` bits are stored beside them. A
/// block of fewer than 128 tokens bears its part of the overhead only, which could be all of its bits.
double rate_left(double bits, double overhead, const arma::mat& rows) {
    const double part = static_cast<double>(rows.n_rows) / static_cast<double>(causal_block);
    return std::max(0.0, bits - part * overhead / static_cast<double>(rows.n_elem));
}

/// Settings of a sequence, chosen on its first block.
CausalSettings settings_of(const CausalGroup& group, double bits, const arma::mat& rows, std::size_t tokens) {
    if (rows.is_empty() || !rows.is_finite())
        throw input_error(
            "a block of {} tokens is empty or holds NaN or infinity (it cannot be coded): check the model",
            rows.n_rows);
    CausalSettings settings;
    settings.exponents = group.exponents(rows);
    const CausalShape shape = group.shape();
    if (rows.n_rows < causal_block || rows.n_rows == tokens) {
        settings.step = encode_causal_at(rate_left(bits, flag_bits, rows), rows, shape, group.options, settings,
                                         first_tolerance, group.ids)
                            .step();
        return settings;
    }
    const double once = flag_bits + 8.0 * static_cast<double>(group.header_size(shape)) - step_bits;
    const double blocks =
        tokens > causal_block ? static_cast<double>(tokens) / static_cast<double>(causal_block) : planned_blocks;
    const double beside = once / blocks + length_bits + step_bits;
    settings.step =
        expected_causal_step(rate_left(bits, beside, rows), blocks, rows, shape, group.options, settings, group.ids);
    return settings;
}

}  // namespace

CausalStream::CausalStream(const CacheMethod& method, double bits, const arma::mat& first_block,
                           const CacheGroup& heads, std::size_t tokens)
    : CausalStream(CausalGroup(method, first_block.n_cols, heads), bits, first_block, tokens) {}

CausalStream::CausalStream(const CausalGroup& group, double bits, const arma::mat& first_block, std::size_t tokens)
    : bits_(bits),
      tokens_(tokens),
      encoder_(group.shape(), group.options, settings_of(group, bits, first_block, tokens), first_block.row(0)),
      decoder_(group.shape(), group.options, encoder_.header()) {}

double CausalStream::due(std::size_t channels) const {
    const auto entries = static_cast<double>(causal_block * channels);
    return std::clamp(bits_ - debt_ / (repaid_over(blocks_, tokens_) * entries), 0.5 * bits_, 1.5 * bits_);
}

arma::mat CausalStream::code(const arma::mat& rows, double& bits, TokenIds ids) {
    const bool first = blocks_ == 0;
    const double beside =
        first ? flag_bits + 8.0 * static_cast<double>(encoder_.header().size()) + length_bits : step_bits + length_bits;
    std::vector<std::uint8_t> bytes;
    if (first) {
        bytes = encoder_.encode(rows, ids);
    } else {
        // The last block decides by how much the sequence misses B.
        const bool last = blocks_ * causal_block + rows.n_rows == tokens_;
        bytes = encoder_.encode_at(rate_left(due(rows.n_cols), beside, rows), rows,
                                   last ? first_tolerance : block_tolerance * bits_, ids);
        decoder_.set_step(encoder_.step());
    }
    const double stored = beside + 8.0 * static_cast<double>(bytes.size());
    ++blocks_;
    debt_ += stored - bits_ * static_cast<double>(rows.n_elem);
    bits += stored;
    return decoder_.next(bytes, rows.n_rows, ids);
}

}  // namespace spiked::estimators
