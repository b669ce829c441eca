#include "estimators/caches/causal_stream.hpp"

#include <algorithm>
#include <cmath>

#include "core/runtime/error.hpp"
#include "estimators/causal/causal_scales.hpp"

namespace spiked::estimators {
namespace {

bool is_on(const NameOptions& own, const char* key) { return own.choice_or_default(key) == "on"; }

/// The shape and the scales of one head: weights of its pairs where there are queries.
CausalShape shape_of(const CacheMethod& method, std::size_t channels, const CacheGroup& group, CausalSettings& to) {
    if (group.queries.empty() || method.own.choice_or_default("weights") != "queries") return {channels};
    to.exponents = query_exponents(group.queries.front());
    return joined_shape({1, 0, channels});
}

/// The step at which the rows after `known` take `bits` per entry.
int step_for(double bits, const arma::mat& rows, std::size_t known, const CausalShape& shape,
             const CausalOptions& options, CausalSettings settings) {
    const auto stored = [&](const arma::mat& some) {
        CausalEncoder encoder(shape, options, settings, some.row(0));
        return 8.0 * static_cast<double>(encoder.encode(some).size());
    };
    const auto entries = static_cast<double>((rows.n_rows - known) * rows.n_cols);
    // 2^(step / 256): the rate falls with the step; ten halvings of 16 octaves reach 1/64 of an octave.
    const double spread = std::sqrt(arma::accu(arma::square(rows)) / static_cast<double>(rows.n_elem));
    const double middle = std::clamp(std::log2(std::max(spread, 0x1p-40)), -40.0, 40.0);
    auto low = static_cast<int>(std::lround(256.0 * (middle - 12.0)));
    int high = low + 16 * 256;
    for (int trial = 0; trial < 10; ++trial) {
        settings.step = (low + high) / 2;
        const double whole = stored(rows);
        const double rate = (whole - (known == 0 ? 0.0 : stored(rows.head_rows(known)))) / entries;
        (rate > bits ? low : high) = settings.step;
    }
    return high;
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
    settings.step = step_for(bits, rows, 3 * rows.n_rows / 4, shape, options, settings);
    return settings;
}

CausalShape shape_of(const CacheMethod& method, std::size_t channels, const CacheGroup& group) {
    CausalSettings ignored;
    return shape_of(method, channels, group, ignored);
}

}  // namespace

CausalOptions causal_options(const NameOptions& own) {
    CausalOptions options;
    options.sink = is_on(own, "sink");
    options.basis = own.choice_or_default("basis") == "past";
    options.predict = is_on(own, "ar");
    options.dependent = is_on(own, "dependent");
    options.adapt = is_on(own, "adapt");
    options.live = own.choice_or_default("freeze") == "never";
    if (!options.live) options.freeze = own.whole_or_default("freeze");
    options.update = own.whole_or_default("update");
    options.lambda = own.number("lambda").value_or(options.dependent ? 0.3 : 0.12);
    return options;
}

CausalStream::CausalStream(const CacheMethod& method, double bits, const arma::mat& first_block,
                           const CacheGroup& group)
    : options_(causal_options(method.own)),
      shape_(shape_of(method, first_block.n_cols, group)),
      encoder_(shape_, options_, settings_of(method, bits, first_block, group, options_), first_block.row(0)),
      decoder_(shape_, options_, encoder_.header()) {}

arma::mat CausalStream::code(const arma::mat& rows, double& bits) {
    const std::vector<std::uint8_t> bytes = encoder_.encode(rows);
    // The flag before the header, and a length before each block, as in the bytes of a whole sequence.
    if (first_) bits += 8.0 * static_cast<double>(1 + encoder_.header().size());
    first_ = false;
    bits += 32.0 + 8.0 * static_cast<double>(bytes.size());
    return decoder_.next(bytes, rows.n_rows);
}

}  // namespace spiked::estimators
