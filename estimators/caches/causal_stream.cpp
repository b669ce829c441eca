#include "estimators/caches/causal_stream.hpp"

#include <algorithm>

#include "core/runtime/error.hpp"
#include "estimators/causal/causal_scales.hpp"

namespace spiked::estimators {
namespace {

// Stored beside the header and the bytes of blocks: whether there are scales, the length of each block, the step of
// each but the first.
constexpr double flag_bits = 8.0;
constexpr double length_bits = 32.0;
constexpr double step_bits = 16.0;
constexpr double rate_tolerance = 0.005;

bool is_on(const NameOptions& own, const char* key) { return own.choice_or_default(key) == "on"; }

/// The shape and the scales of one head: weights of its pairs where there are queries.
CausalShape shape_of(const CacheMethod& method, std::size_t channels, const CacheGroup& group, CausalSettings& to) {
    if (group.queries.empty() || method.own.choice_or_default("weights") != "queries") return {channels};
    to.exponents = query_exponents(group.queries.front());
    return joined_shape({1, 0, channels});
}

/// Bits per entry that are left for the bytes of a block of rows, of which `overhead` bits are stored beside them. A
/// block of fewer than 128 tokens bears its part of the overhead only, which could be all of its bits.
double rate_left(double bits, double overhead, const arma::mat& rows) {
    const double part = static_cast<double>(rows.n_rows) / static_cast<double>(causal_block);
    return std::max(0.0, bits - part * overhead / static_cast<double>(rows.n_elem));
}

/// Settings of a sequence, chosen on its first block.
CausalSettings settings_of(const CacheMethod& method, double bits, const arma::mat& rows, const CacheGroup& group,
                           const CausalOptions& options) {
    CausalSettings settings;
    const CausalShape shape = shape_of(method, rows.n_cols, group, settings);
    if (rows.is_empty() || !rows.is_finite())
        throw input_error(
            "a block of {} tokens is empty or holds NaN or infinity (it cannot be coded): check the model",
            rows.n_rows);
    settings.step =
        encode_causal_at(rate_left(bits, flag_bits, rows), rows, shape, options, settings, rate_tolerance).step();
    return settings;
}

CausalShape shape_of(const CacheMethod& method, std::size_t channels, const CacheGroup& group) {
    CausalSettings ignored;
    return shape_of(method, channels, group, ignored);
}

}  // namespace

CausalOptions causal_options(const NameOptions& own, std::size_t columns) {
    CausalOptions options;
    options.sink = is_on(own, "sink");
    options.basis = own.choice_or_default("basis") == "past";
    options.predict = is_on(own, "ar");
    options.dependent = is_on(own, "dependent");
    options.adapt = is_on(own, "adapt");
    options.live = own.choice_or_default("freeze") == "never";
    if (!options.live) options.freeze = own.whole_or_default("freeze");
    options.update = own.whole("update").value_or(
        std::max<std::size_t>(own.whole_or_default("update"), least_causal_update(columns)));
    options.lambda = own.number("lambda").value_or(options.dependent ? 0.3 : 0.12);
    return options;
}

CausalStream::CausalStream(const CacheMethod& method, double bits, const arma::mat& first_block,
                           const CacheGroup& group)
    : bits_(bits),
      options_(causal_options(method.own, first_block.n_cols)),
      shape_(shape_of(method, first_block.n_cols, group)),
      encoder_(shape_, options_, settings_of(method, bits, first_block, group, options_), first_block.row(0)),
      decoder_(shape_, options_, encoder_.header()) {}

arma::mat CausalStream::code(const arma::mat& rows, double& bits) {
    const double beside = first_ ? flag_bits + 8.0 * static_cast<double>(encoder_.header().size()) + length_bits
                                 : step_bits + length_bits;
    const std::vector<std::uint8_t> bytes =
        first_ ? encoder_.encode(rows) : encoder_.encode_at(rate_left(bits_, beside, rows), rows, rate_tolerance);
    if (!first_) decoder_.set_step(encoder_.step());
    first_ = false;
    bits += beside + 8.0 * static_cast<double>(bytes.size());
    return decoder_.next(bytes, rows.n_rows);
}

}  // namespace spiked::estimators
