#include <zlib.h>

#include <cmath>

#include "core/runtime/error.hpp"
#include "estimators/caches/cache_parts.hpp"
#include "estimators/svd/decomposition.hpp"

// kvtc: principal components of a calibration, entropy-coded.
namespace spiked::estimators {
namespace {

/// The water level of reverse water-filling at a mean rate, for `channels` entries of which the given ones have nonzero
/// variances.
double water_level(const arma::vec& variances, std::size_t channels, double rate) {
    const double largest = variances.max();
    const auto mean_rate = [&](double level) {
        double sum = 0.0;
        for (const double variance : variances) sum += variance > level ? 0.5 * std::log2(variance / level) : 0.0;
        return sum / static_cast<double>(channels);
    };
    double low = std::log(largest) - 1000.0;  // far below the level of any rate
    double high = std::log(largest);
    for (int round = 0; round < 80; ++round) {
        const double middle = 0.5 * (low + high);
        (mean_rate(std::exp(middle)) > rate ? low : high) = middle;
    }
    return std::exp(high);
}

/// Appends an integer as bytes, a small one as a single byte: the sign is the lowest bit, each byte has seven bits of
/// the number, and its highest bit says that more follow.
void append(std::vector<std::uint8_t>& to, std::int64_t number) {
    auto rest = static_cast<std::uint64_t>(number) << 1 ^ static_cast<std::uint64_t>(number >> 63);
    for (; rest >= 128; rest >>= 7) to.push_back(static_cast<std::uint8_t>(rest | 128));
    to.push_back(static_cast<std::uint8_t>(rest));
}

/// Reads an integer written by append, from position `at` on. Throws input_error when the bytes end too early.
std::int64_t next(std::span<const std::uint8_t> from, std::size_t& at) {
    std::uint64_t number = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        if (at == from.size()) break;
        const std::uint8_t byte = from[at++];
        number |= std::uint64_t{byte & 127U} << shift;
        if (byte < 128) return static_cast<std::int64_t>(number >> 1) ^ -static_cast<std::int64_t>(number & 1);
    }
    throw input_error("entropy-coded components end too early: the data is damaged");
}

/// Deflates with Huffman codes and runs only, because longer matches in nearly random data cost more than they save.
std::vector<std::uint8_t> deflated(const std::vector<std::uint8_t>& bytes) {
    z_stream stream{};
    if (deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, MAX_WBITS, MAX_MEM_LEVEL, Z_RLE) != Z_OK)
        throw postcondition_error("zlib does not start");
    std::vector<std::uint8_t> small(deflateBound(&stream, bytes.size()));
    stream.next_in = const_cast<Bytef*>(bytes.data());  // zlib only reads it
    stream.avail_in = static_cast<uInt>(bytes.size());
    stream.next_out = small.data();
    stream.avail_out = static_cast<uInt>(small.size());
    const int end = deflate(&stream, Z_FINISH);
    small.resize(stream.total_out);
    deflateEnd(&stream);
    if (end != Z_STREAM_END || stream.total_in != bytes.size())
        throw postcondition_error("{} bytes are not deflated", bytes.size());
    return small;
}

/// Inflates; throws input_error when the result is longer than `most` bytes.
std::vector<std::uint8_t> inflated(std::span<const std::uint8_t> bytes, std::size_t most) {
    std::vector<std::uint8_t> large(most);
    uLongf size = large.size();
    uLong read = bytes.size();
    if (uncompress2(large.data(), &size, bytes.data(), &read) != Z_OK || read != bytes.size())
        throw input_error("entropy-coded components cannot be inflated: the data is damaged");
    large.resize(size);
    return large;
}

constexpr double largest_integer = 9e15;      // both a double and append can represent it
constexpr std::size_t bytes_of_integer = 10;  // the most that append writes

CacheCoder cache_transform(const CacheMethod& method, const CacheInput& input) {
    const NameOptions& own = method.own;
    if (input.calibration.n_rows < 2)
        throw usage_error("\"{}\": {} tokens have no variances: calibrate on more tokens", own.text(),
                          input.calibration.n_rows);
    const arma::rowvec means = in_fp16(arma::mean(input.calibration, 0));
    const arma::mat centred = input.calibration.each_row() - means;
    const arma::vec values(singular_values(centred));
    const arma::vec variances = arma::square(values) / static_cast<double>(input.calibration.n_rows);
    const double level = variances.max() > 0.0 ? water_level(variances, input.channels, input.bits) : 0.0;
    const arma::uvec above = arma::find(variances > level);
    const std::size_t rank = above.n_elem;
    const arma::mat basis = in_fp16(leading_vectors(centred, rank).right);
    const double step = static_cast<float>(std::sqrt(12.0 * level));
    RowQuantizer coder = in_double(
        own.text(),
        [=](const arma::mat& rows) {
            const arma::mat components = (rows.each_row() - means) * basis / step;
            if (components.n_elem > 0 && !(arma::abs(components).max() < largest_integer))
                throw input_error("a token has {:.1e} steps of the calibrated basis: calibrate on similar data",
                                  arma::abs(components).max());
            std::vector<std::uint8_t> integers;
            for (const double component : components)
                append(integers, static_cast<std::int64_t>(std::nearbyint(component)));
            BitWriter writer;
            for (const std::uint8_t byte : deflated(integers)) writer.write(Item::indices, byte, 8);
            return finished(writer);
        },
        [=](std::span<const std::uint8_t> bytes, std::size_t rows) {
            arma::mat components(rows, rank);
            const auto integers = inflated(bytes, bytes_of_integer * components.n_elem + 1);
            std::size_t at = 0;
            for (double& component : components) component = step * static_cast<double>(next(integers, at));
            if (at != integers.size())
                throw input_error("entropy-coded components continue after the last one: the data is damaged");
            arma::mat block = components * basis.t();
            block.each_row() += means;
            return block;
        });
    return {with_kept_tokens(own.whole_or_default("sinks"), own.whole_or_default("window"), input.channels,
                             std::move(coder)),
            rank, 16 * (std::uint64_t{basis.n_elem} + means.n_elem) + 32};
}

}  // namespace

CacheMaker kvtc_cache() {
    return {
        .entry = rate_entry(
            {"kvtc",
             "calibrated principal components of all heads, with bits by reverse water-filling and entropy coding",
             {{"layers", whole("L"), "number of layers in a group; 0: all", "1"},
              {"sinks", whole("S"), "number of first tokens that stay in fp16", "0"},
              {"window", whole("W"), "number of last tokens that stay in fp16", "0"}},
             "Staniszewski & Lancucki 2025 (KVTC)"},
            "mean bits an entry that the calibration aims at, also fractions: 0.25 to 8"),
        .calibrated = true,
        .check = check_rate,
        .make = cache_transform,
    };
}

}  // namespace spiked::estimators
