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

constexpr unsigned block_length_bits = 32;
constexpr int steps_per_octave = 256;
constexpr int largest_step = 64 * steps_per_octave;

/// The token ids of these rows, or none where none are given.
TokenIds ids_from(TokenIds ids, std::size_t first, std::size_t count) {
    if (ids.empty()) return ids;
    if (ids.size() < first + count) throw precondition_error("{} token ids for {} rows", ids.size(), first + count);
    return ids.subspan(first, count);
}

}  // namespace

void check_causal(const CausalShape& shape, const CausalOptions& options) {
    if (shape.columns == 0)
        throw usage_error("a matrix without columns is coded (it has no entries): give at least one column");
    if (!shape.scale_of.empty() && shape.scale_of.size() != shape.columns)
        throw precondition_error("scales of {} columns for {} columns", shape.scale_of.size(), shape.columns);
    if (options.freeze == 0 || options.freeze % causal_block != 0)
        throw usage_error("freeze={} (blocks have {} tokens): choose a multiple of {}", options.freeze, causal_block,
                          causal_block);
    if (options.update == 0 || options.update % 8 != 0)
        throw usage_error("update={} (the first bases come after an eighth of it): choose a multiple of 8",
                          options.update);
    if (const std::size_t least = least_causal_update(shape.columns); options.update < least)
        throw usage_error(
            "update={} is not possible with {} channels (a basis takes time with their cube): choose at least {}",
            options.update, shape.columns, least);
    if (options.same && !options.live)
        throw usage_error(
            "same=on with freeze={} (frozen blocks decode alone, without earlier tokens): write freeze=never:same=on, "
            "or leave same=on out",
            options.freeze);
    if (!(options.lambda >= 0.0 && options.lambda <= 10.0))
        throw usage_error("lambda={} (a weight of bits): choose 0 to 10", options.lambda);
}

namespace {

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
    write_fp16(writer, Item::outliers, {header.sink.memptr(), header.sink.n_elem}, "entry of the first token",
               scale_data);
    return writer.take_bytes();
}

int read_step(BitReader& reader) { return static_cast<int>(reader.read(16)) - largest_step; }

Header header_of(std::span<const std::uint8_t> bytes, const CausalShape& shape, const CausalOptions& options) {
    BitReader reader(bytes);
    Header header;
    header.settings.step = read_step(reader);
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

/// The logarithm to base 2 of the root mean square of the entries; none where all are 0. Steps of any rate that is
/// asked for are within bounds for those that it accepts.
std::optional<double> rms_octave(const arma::mat& rows) {
    constexpr double least = 0x1p-40;
    constexpr double most = 0x1p50;
    if (const arma::uvec bad = arma::find_nonfinite(rows); !bad.is_empty())
        throw input_error("row {} has the entry {} (not a finite number): remove or replace it", bad(0) % rows.n_rows,
                          rows(bad(0)));
    const double largest = arma::abs(rows).max();
    if (largest == 0.0) return std::nullopt;
    const double spread =
        largest * std::sqrt(arma::accu(arma::square(rows / largest)) / static_cast<double>(rows.n_elem));
    if (!(spread >= least && spread <= most))
        throw input_error("entries have the root mean square {:.3g} ({:.2g} to {:.2g} can be coded): scale the data",
                          spread, least, most);
    return std::log2(spread);
}

/// The code of that one of at most 10 steps whose rate is nearest to `bits`, and that step. `code_at` returns the
/// rate and the code of a step. The first step is 2^octave; none is finer than 2^-20 of the root mean square 2^spread,
/// where rows that predict each other exactly take few bits at any step.
template <class CodeAt>
auto nearest_code(double bits, double octave, const std::optional<double>& spread, double tolerance,
                  const CodeAt& code_at) {
    constexpr int most_trials = 10;
    constexpr double finest = 20.0;
    using Code = decltype(code_at(0).second);
    // The rate falls by about .9 bits when the step doubles.
    double slope = -0.9;
    const double coarsest = std::max(octave, spread.value_or(0.0) + 12.0);
    std::optional<std::pair<int, Code>> best;
    double best_miss = 0.0;
    std::optional<std::pair<int, double>> before;
    for (int trial = 0; trial < most_trials; ++trial) {
        const double tried = spread ? std::clamp(octave, *spread - finest, coarsest) : octave;
        const int step = static_cast<int>(std::lround(tried * steps_per_octave));
        if (before && step == before->first) break;
        auto [rate, code] = code_at(step);
        const double miss = std::abs(rate - bits);
        if (!best || miss < best_miss) {
            best.emplace(step, std::move(code));
            best_miss = miss;
        }
        // Rows of zeros take the same bits at every step.
        if (miss <= tolerance || !spread) break;
        if (before) slope = std::clamp((rate - before->second) * steps_per_octave / (step - before->first), -1.6, -0.3);
        before = {step, rate};
        octave = static_cast<double>(step) / steps_per_octave + (bits - rate) / slope;
    }
    return *std::move(best);
}

struct BlockTrial {
    CausalState state;
    std::vector<std::uint8_t> bytes;
    arma::mat decoded;
};

}  // namespace

std::size_t CausalShape::scales() const {
    return scale_of.empty() ? 0 : std::size_t{1} + *std::max_element(scale_of.begin(), scale_of.end());
}

std::size_t least_causal_update(std::size_t columns) {
    constexpr std::size_t share = 4096;
    const std::size_t tokens = columns * columns / share;
    return std::max<std::size_t>(8, (tokens + 7) / 8 * 8);
}

std::size_t CausalCode::stored_bits() const {
    std::size_t bits = 8 * header.size();
    for (const auto& block : blocks) bits += block_length_bits + 8 * block.size();
    return bits;
}

int CausalCode::step() const {
    BitReader reader(header);
    return read_step(reader);
}

CausalEncoder::CausalEncoder(const CausalShape& shape, const CausalOptions& options, const CausalSettings& settings,
                             const arma::rowvec& first_row) {
    check_causal(shape, options);
    if (settings.step < -largest_step || settings.step > largest_step)
        throw usage_error("a step of 2^({}/{}) (the data is too small or too large): scale the data", settings.step,
                          steps_per_octave);
    step_ = settings.step;
    if (settings.exponents.size() != shape.scales())
        throw precondition_error("{} exponents for {} scales", settings.exponents.size(), shape.scales());
    header_ = header_bytes({settings, options.sink ? first_row : arma::rowvec()});
    state_ = state_of(header_of(header_, shape, options), shape, options);
}
CausalEncoder::~CausalEncoder() = default;
CausalEncoder::CausalEncoder(CausalEncoder&&) noexcept = default;
CausalEncoder::CausalEncoder(const CausalEncoder& other)
    : state_(std::make_unique<CausalState>(*other.state_)),
      step_(other.step_),
      header_(other.header_),
      decoded_(other.decoded_) {}

std::vector<std::uint8_t> CausalEncoder::encode(const arma::mat& rows, TokenIds ids) {
    std::vector<std::uint8_t> bytes;
    decoded_ = state_->encode(rows, ids, bytes);
    return bytes;
}

CausalDecoder::CausalDecoder(const CausalShape& shape, const CausalOptions& options,
                             std::span<const std::uint8_t> header) {
    check_causal(shape, options);
    state_ = state_of(header_of(header, shape, options), shape, options);
}
CausalDecoder::~CausalDecoder() = default;
CausalDecoder::CausalDecoder(CausalDecoder&&) noexcept = default;
CausalDecoder::CausalDecoder(const CausalDecoder& other) : state_(std::make_unique<CausalState>(*other.state_)) {}

void CausalDecoder::set_step(int step) {
    if (step < -largest_step || step > largest_step)
        throw input_error("a block has the step 2^({}/{}) (2^-64 to 2^64 are possible): the data is damaged", step,
                          steps_per_octave);
    state_->set_step(exact_power_of_two(step, steps_per_octave));
}

arma::mat CausalDecoder::next(std::span<const std::uint8_t> bytes, std::size_t rows, TokenIds ids) {
    return state_->decode(bytes, rows, ids);
}

bool CausalDecoder::frozen() const { return state_->frozen(); }

arma::mat CausalDecoder::frozen_block(std::span<const std::uint8_t> bytes, std::size_t rows) const {
    return state_->decode_frozen(bytes, rows);
}

std::size_t CausalDecoder::state_bytes() const { return state_->bytes(); }

CausalCode encode_causal(const arma::mat& rows, const CausalShape& shape, const CausalOptions& options,
                         const CausalSettings& settings, TokenIds ids) {
    if (rows.n_rows == 0)
        throw usage_error("a matrix without rows is coded (it has no entries): give at least one row");
    CausalEncoder encoder(shape, options, settings, rows.row(0));
    CausalCode code{encoder.header(), {}, rows.n_rows};
    for (std::size_t t = 0; t < rows.n_rows; t += causal_block) {
        const std::size_t count = std::min<std::size_t>(causal_block, rows.n_rows - t);
        code.blocks.push_back(encoder.encode(rows.rows(t, t + count - 1), ids_from(ids, t, count)));
    }
    return code;
}

arma::mat decode_causal(const CausalCode& code, const CausalShape& shape, const CausalOptions& options, TokenIds ids) {
    const std::size_t blocks = (code.tokens + causal_block - 1) / causal_block;
    if (blocks != code.blocks.size())
        throw input_error("a causal code of {} tokens has {} blocks (it needs {}): the data is damaged", code.tokens,
                          code.blocks.size(), blocks);
    CausalDecoder decoder(shape, options, code.header);
    arma::mat rows(code.tokens, shape.columns);
    std::size_t t = 0;
    for (const auto& block : code.blocks) {
        const std::size_t count = std::min(causal_block, code.tokens - t);
        rows.rows(t, t + count - 1) = decoder.next(block, count, ids_from(ids, t, count));
        t += count;
    }
    return rows;
}

std::vector<std::uint8_t> CausalEncoder::encode_at(double bits, const arma::mat& rows, double tolerance, TokenIds ids) {
    if (rows.is_empty()) throw precondition_error("a block of {} rows", rows.n_rows);
    const auto entries = static_cast<double>(rows.n_elem);
    auto [step, best] =
        nearest_code(bits, static_cast<double>(step_) / steps_per_octave, rms_octave(rows), tolerance, [&](int tried) {
            CausalState state = *state_;
            state.set_step(exact_power_of_two(tried, steps_per_octave));
            std::vector<std::uint8_t> bytes;
            arma::mat decoded = state.encode(rows, ids, bytes);
            const double rate = 8.0 * static_cast<double>(bytes.size()) / entries;
            return std::pair(rate, BlockTrial{std::move(state), std::move(bytes), std::move(decoded)});
        });
    step_ = step;
    *state_ = std::move(best.state);
    decoded_ = std::move(best.decoded);
    return std::move(best.bytes);
}

CausalCode encode_causal_at(double bits, const arma::mat& rows, const CausalShape& shape, const CausalOptions& options,
                            CausalSettings settings, double tolerance, TokenIds ids) {
    if (rows.is_empty()) throw usage_error("a matrix without rows is coded (it has no entries): give at least one row");
    const auto entries = static_cast<double>(rows.n_elem);
    const std::optional<double> spread = rms_octave(rows);
    // A short sequence bears a part of the overhead only: the header and the length of a block are for 128 tokens.
    const double part = std::min(1.0, static_cast<double>(rows.n_rows) / static_cast<double>(causal_block));
    return nearest_code(bits, spread.value_or(0.0) + 1.0 - bits, spread, tolerance,
                        [&](int step) {
                            settings.step = step;
                            CausalCode code = encode_causal(rows, shape, options, settings, ids);
                            const double beside = block_length_bits + 8.0 * static_cast<double>(code.header.size());
                            const double rate =
                                (static_cast<double>(code.stored_bits()) - (1.0 - part) * beside) / entries;
                            return std::pair(rate, std::move(code));
                        })
        .second;
}

int expected_causal_step(double bits, double blocks, const arma::mat& first, const CausalShape& shape,
                         const CausalOptions& options, CausalSettings settings, TokenIds ids) {
    if (first.n_rows != causal_block) throw precondition_error("a first block of {} rows", first.n_rows);
    constexpr double tolerance = 0.01;
    const std::optional<double> spread = rms_octave(first);
    // Other tokens when the block is coded again: the same ones would predict themselves.
    std::vector<std::int32_t> others(ids.begin(), ids.end());
    for (std::int32_t& id : others) id = -1 - id;
    const auto code_at = [&](int step) {
        settings.step = step;
        CausalEncoder half(shape, options, settings, first.row(0));
        CausalEncoder twice(shape, options, settings, first.row(0));
        const auto begin = static_cast<double>(
            half.encode(first.head_rows(causal_block / 2), ids_from(ids, 0, causal_block / 2)).size());
        const auto once = static_cast<double>(twice.encode(first, ids).size());
        const auto again = static_cast<double>(twice.encode(first, others).size());
        const double later = (again + 2.0 * (once - begin)) / 2.0;
        const double bytes = (once + (blocks - 1.0) * later) / blocks;
        return std::pair(8.0 * bytes / static_cast<double>(first.n_elem), step);
    };
    return nearest_code(bits, spread.value_or(0.0) + 1.0 - bits, spread, tolerance, code_at).second;
}

}  // namespace spiked::estimators
