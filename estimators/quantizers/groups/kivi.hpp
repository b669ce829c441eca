#pragma once
#include "estimators/quantizers/quantizer_table.hpp"

namespace spiked::estimators {

struct KiviOptions {
    std::size_t group = 64;  ///< entries that share a minimum and a scale
    GroupAxis axis = GroupAxis::value;
    /// With the axis value: a group that a token does not fill goes on in the next token.
    bool runs_on = false;
    std::size_t residual = 0;  ///< R, which determines how many last tokens are stored in fp16 (kivi_tail)
    /// The number of last rows in fp16, instead of `residual`; for a block that is a part of a sequence.
    std::optional<std::size_t> kept = {};
    ScalarOptions scales;
};

/// KIVI: asymmetric min-max quantization of groups. In each group code = round(clamp((x - zero) / scale, 0, 2^B - 1)),
/// with ties to even, with zero = min and scale = (max - min) / (2^B - 1) as they are stored; x^ = code scale + zero.
///
/// Source: Liu et al., "KIVI", 2024, and its code. A group is `group` consecutive tokens of one channel (axis key) or
/// `group` consecutive channels of one token (axis value); the last one of a channel or token may be shorter. With
/// `runs_on`, as in optimum-quanto with axis 0, a group is `group` consecutive entries of all tokens in turn, which
/// differs only where `group` does not divide the dimension. With a residual of R the last tokens are stored in fp16
/// (kivi_tail); `kept` sets their number instead. Stored: zeros, scales (format of the options, fp16 in KIVI), codes
/// channel after channel, the residual window. A constant group has code 0 and is decoded as its zero. Throws
/// input_error for NaN, infinity, or a number that the format cannot store. For groups of 64 normal entries at 2 bits
/// the relative error is about 45 %.
[[nodiscard]] RowQuantizer kivi(std::size_t dimension, unsigned bits, const KiviOptions& options);

/// The number of last tokens of a sequence that are stored in fp16: n mod R along tokens, R along channels.
[[nodiscard]] std::size_t kivi_tail(const KiviOptions& options, std::size_t tokens);

/// The options of a `kivi` or `kivi-hf`, including those in its name; nothing for other quantizers.
[[nodiscard]] std::optional<KiviOptions> kivi_options(const QuantizerSpec& quantizer, const QuantizerOptions& options);

}  // namespace spiked::estimators
