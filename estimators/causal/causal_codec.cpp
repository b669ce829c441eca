#include "estimators/causal/causal_codec.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "core/runtime/error.hpp"
#include "estimators/causal/causal_state.hpp"
#include "estimators/causal/exact_functions.hpp"
#include "estimators/coding/fp16_entries.hpp"

namespace spiked::estimators {
namespace {

constexpr int steps_per_octave = 256;
constexpr int largest_step = 64 * steps_per_octave;

void require_valid(const CausalShape& shape, const CausalOptions& options) {
    if (shape.columns == 0) throw usage_error("a matrix without columns cannot be coded");
    if (!shape.scale_of.empty() && shape.scale_of.size() != shape.columns)
        throw precondition_error("scales of {} columns for {} columns", shape.scale_of.size(), shape.columns);
    if (options.freeze == 0 || options.freeze % causal_block != 0)
        throw usage_error("freeze={} (blocks have {} tokens): choose a multiple of {}", options.freeze, causal_block,
                          causal_block);
    if (options.update == 0 || options.update % 8 != 0)
        throw usage_error("update={} (the first bases come after an eighth of it): choose a multiple of 8",
                          options.update);
    if (!(options.lambda >= 0.0 && options.lambda <= 10.0))
        throw usage_error("lambda={} (a weight of bits): choose 0 to 10", options.lambda);
}

/// What is stored before the blocks, in the order of the file.
struct Header {
    CausalSettings settings;
    arma::rowvec sink{};
};

std::vector<std::uint8_t> header_bytes(const Header& header) {
    BitWriter writer;
    writer.write(Item::header, static_cast<std::uint64_t>(header.settings.step + largest_step), 16);
    for (const std::int8_t exponent : header.settings.exponents)
        writer.write(Item::scales, static_cast<std::uint8_t>(exponent), 8);
    for (const double entry : header.sink) write_half(writer, Item::outliers, entry, "an entry of the first token");
    return writer.take_bytes();
}

Header header_of(std::span<const std::uint8_t> bytes, const CausalShape& shape, const CausalOptions& options) {
    BitReader reader(bytes);
    Header header;
    header.settings.step = static_cast<int>(reader.read(16)) - largest_step;
    if (header.settings.step > largest_step)
        throw input_error("a causal code has the step 2^({}/{}) (at most 2^64): the data is damaged",
                          header.settings.step, steps_per_octave);
    for (std::size_t i = 0; i < shape.scales(); ++i)
        header.settings.exponents.push_back(static_cast<std::int8_t>(static_cast<std::uint8_t>(reader.read(8))));
    if (options.sink) {
        header.sink.set_size(shape.columns);
        for (double& entry : header.sink) {
            entry = read_half(reader);
            if (!std::isfinite(entry)) throw input_error("the first token is not finite: the data is damaged");
        }
    }
    reader.require_end();
    return header;
}

std::unique_ptr<CausalState> state_of(const Header& header, const CausalShape& shape, const CausalOptions& options) {
    std::vector<double> factors(shape.columns, 1.0);
    for (std::size_t i = 0; i < shape.scale_of.size(); ++i)
        factors[i] = exact_power_of_two(header.settings.exponents[shape.scale_of[i]], 16);
    return std::make_unique<CausalState>(options, exact_power_of_two(header.settings.step, steps_per_octave),
                                         std::move(factors), header.sink);
}

}  // namespace

std::size_t CausalShape::scales() const {
    return scale_of.empty() ? 0 : std::size_t{1} + *std::max_element(scale_of.begin(), scale_of.end());
}

std::size_t CausalCode::stored_bits() const {
    std::size_t bits = 8 * header.size();
    for (const auto& block : blocks) bits += 32 + 8 * block.size();
    return bits;
}

CausalEncoder::CausalEncoder(const CausalShape& shape, const CausalOptions& options, const CausalSettings& settings,
                             const arma::rowvec& first_row) {
    require_valid(shape, options);
    if (settings.step < -largest_step || settings.step > largest_step)
        throw usage_error("a step of 2^({}/{}) (the data is too small or too large): scale the data", settings.step,
                          steps_per_octave);
    if (settings.exponents.size() != shape.scales())
        throw precondition_error("{} exponents for {} scales", settings.exponents.size(), shape.scales());
    header_ = header_bytes({settings, options.sink ? first_row : arma::rowvec()});
    state_ = state_of(header_of(header_, shape, options), shape, options);
}
CausalEncoder::~CausalEncoder() = default;
CausalEncoder::CausalEncoder(CausalEncoder&&) noexcept = default;

std::vector<std::uint8_t> CausalEncoder::encode(const arma::mat& rows) {
    std::vector<std::uint8_t> bytes;
    decoded_ = state_->encode(rows, bytes);
    return bytes;
}

CausalDecoder::CausalDecoder(const CausalShape& shape, const CausalOptions& options,
                             std::span<const std::uint8_t> header) {
    require_valid(shape, options);
    state_ = state_of(header_of(header, shape, options), shape, options);
}
CausalDecoder::~CausalDecoder() = default;
CausalDecoder::CausalDecoder(CausalDecoder&&) noexcept = default;

arma::mat CausalDecoder::next(std::span<const std::uint8_t> bytes, std::size_t rows) {
    return state_->decode(bytes, rows);
}

bool CausalDecoder::frozen() const { return state_->frozen(); }

arma::mat CausalDecoder::frozen_block(std::span<const std::uint8_t> bytes, std::size_t rows) const {
    return state_->decode_frozen(bytes, rows);
}

CausalCode encode_causal(const arma::mat& rows, const CausalShape& shape, const CausalOptions& options,
                         const CausalSettings& settings) {
    if (rows.n_rows == 0) throw usage_error("a matrix without rows cannot be coded");
    CausalEncoder encoder(shape, options, settings, rows.row(0));
    CausalCode code{encoder.header(), {}, rows.n_rows};
    for (std::size_t t = 0; t < rows.n_rows; t += causal_block)
        code.blocks.push_back(encoder.encode(rows.rows(t, std::min(t + causal_block, std::size_t{rows.n_rows}) - 1)));
    return code;
}

arma::mat decode_causal(const CausalCode& code, const CausalShape& shape, const CausalOptions& options) {
    const std::size_t blocks = (code.tokens + causal_block - 1) / causal_block;
    if (blocks != code.blocks.size())
        throw input_error("a causal code of {} tokens has {} blocks (it needs {}): the data is damaged", code.tokens,
                          code.blocks.size(), blocks);
    CausalDecoder decoder(shape, options, code.header);
    arma::mat rows(code.tokens, shape.columns);
    std::size_t t = 0;
    for (const auto& block : code.blocks) {
        const std::size_t count = std::min(causal_block, code.tokens - t);
        rows.rows(t, t + count - 1) = decoder.next(block, count);
        t += count;
    }
    return rows;
}

CausalCode encode_causal_at(double bits, const arma::mat& rows, const CausalShape& shape, const CausalOptions& options,
                            CausalSettings settings, double tolerance) {
    constexpr int most_trials = 10;
    const auto entries = static_cast<double>(rows.n_elem);
    // The rate falls by about .9 bits when the step doubles.
    double slope = -0.9;
    const double spread = rows.is_empty() ? 0.0 : std::sqrt(arma::accu(arma::square(rows)) / entries);
    double octave = std::log2(std::max(spread, 0x1p-60)) + 1.0 - bits;
    std::optional<CausalCode> best;
    double best_miss = 0.0;
    std::optional<std::pair<int, double>> before;
    for (int trial = 0; trial < most_trials; ++trial) {
        settings.step = static_cast<int>(std::lround(std::clamp(octave, -64.0, 64.0) * steps_per_octave));
        if (before && settings.step == before->first) break;
        CausalCode code = encode_causal(rows, shape, options, settings);
        const double rate = static_cast<double>(code.stored_bits()) / entries;
        const double miss = std::abs(rate - bits);
        if (!best || miss < best_miss) {
            best = std::move(code);
            best_miss = miss;
        }
        if (miss <= tolerance) break;
        octave = static_cast<double>(settings.step) / steps_per_octave;
        if (before)
            slope =
                std::clamp((rate - before->second) * steps_per_octave / (settings.step - before->first), -1.6, -0.3);
        before = {settings.step, rate};
        octave += (bits - rate) / slope;
    }
    return *std::move(best);
}

}  // namespace spiked::estimators
