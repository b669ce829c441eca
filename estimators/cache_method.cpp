#include "estimators/cache_method.hpp"

#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "estimators/analysed_block.hpp"
#include "estimators/decomposition.hpp"
#include "estimators/factor_codec.hpp"
#include "estimators/half_entries.hpp"
#include "estimators/name_options.hpp"
#include "estimators/spectral_method.hpp"
#include "theory/base/error.hpp"
#include "theory/base/names.hpp"

namespace spiked::estimators {
namespace {

constexpr std::string_view unrope_prefix = "unrope+";

struct Input {
    std::size_t channels;
    double bits;
    const QuantizerOptions& options;
    const arma::mat& calibration;
};

struct Maker {
    QuantizerEntry entry;
    bool calibrated;
    std::size_t heads, layers;      ///< joined unless options say otherwise
    std::size_t window;             ///< tokens kept in fp16 unless options say otherwise
    const char* coder;              ///< of latents, or of factors
    std::vector<std::string> keys;  ///< of its options
    void (*check)(const Maker&, const NameOptions&, const ParsedName&, double bits);
    CacheCoder (*make)(const Maker&, const NameOptions&, const ParsedName&, const Input&);
};

// What all of them store of single tokens and bases.

constexpr std::string_view advice = "scale the data";

void write_tokens(BitWriter& writer, Item item, const arma::mat& rows) {
    write_halves(writer, item, {rows.memptr(), rows.n_elem}, "entry of a token", advice, Underflow::allowed);
}

arma::mat read_tokens(BitReader& reader, std::size_t rows, std::size_t columns) {
    arma::mat block(rows, columns);
    for (double& entry : block) entry = decode_number(reader.read(16), NumberFormat::fp16);
    return block;
}

/// As a decoder has it.
arma::mat in_halves(arma::mat numbers) {
    numbers.transform([](double entry) {
        return decode_number(half_of(entry, "entry of a calibrated basis", advice), NumberFormat::fp16);
    });
    return numbers;
}

std::size_t rank_of(const NameOptions& own, std::size_t fallback, std::size_t most) {
    const std::size_t rank = own.whole("rank").value_or(std::max<std::size_t>(1, std::min(fallback, most)));
    if (rank == 0 || rank > most)
        throw usage_error(
            "\"{}\": rank {} is not possible (joined heads and tokens to calibrate or code allow 1 to {}): choose "
            "another rank or calibrate on more tokens",
            own.text(), rank, most);
    return rank;
}

/// First and last tokens of a sequence stay in fp16, in front of what `between` makes of the others.
RowQuantizer with_kept_tokens(std::size_t sinks, std::size_t window, std::size_t channels, RowQuantizer inner) {
    struct Parts {
        std::size_t first, coded, last;
    };
    const auto parts_of = [=](std::size_t tokens) -> Parts {
        const std::size_t first = std::min(sinks, tokens);
        const std::size_t last = std::min(window, tokens - first);
        return {first, tokens - first - last, last};
    };
    const auto between = std::make_shared<const RowQuantizer>(std::move(inner));
    return in_double(
        between->name,
        [=](const arma::mat& rows) {
            require_length(rows.n_cols, channels);
            if (!rows.is_finite())
                throw input_error("a token holds NaN or infinity (no basis holds it): clean the data first");
            const Parts parts = parts_of(rows.n_rows);
            BitWriter writer;
            if (parts.first > 0) write_tokens(writer, Item::residual_window, rows.head_rows(parts.first));
            if (parts.last > 0) write_tokens(writer, Item::residual_window, rows.tail_rows(parts.last));
            Encoded encoded = finished(writer);
            if (parts.coded == 0) return encoded;
            const Encoded rest = between->encode(arma::mat(rows.rows(parts.first, parts.first + parts.coded - 1)));
            encoded.bytes.insert(encoded.bytes.end(), rest.bytes.begin(), rest.bytes.end());
            encoded.ledger += rest.ledger;
            return encoded;
        },
        [=](std::span<const std::uint8_t> bytes, std::size_t tokens) {
            const Parts parts = parts_of(tokens);
            BitReader reader(bytes);
            const arma::mat first = read_tokens(reader, parts.first, channels);
            const arma::mat last = read_tokens(reader, parts.last, channels);
            if (parts.coded == 0) {
                reader.require_end();
                return arma::mat(arma::join_cols(first, last));
            }
            return arma::mat(
                arma::join_cols(first, between->decode(bytes.subspan(reader.bytes_read()), parts.coded), last));
        });
}

// palu, cskv

/// Latent coordinates as they are.
RowQuantizer halves(std::size_t dimension) {
    return in_double(
        "fp16",
        [](const arma::mat& rows) {
            BitWriter writer;
            write_tokens(writer, Item::indices, rows);
            return finished(writer);
        },
        [dimension](std::span<const std::uint8_t> bytes, std::size_t rows) {
            BitReader reader(bytes);
            arma::mat block = read_tokens(reader, rows, dimension);
            reader.require_end();
            return block;
        });
}

std::string latents_of(const Maker& maker, const ParsedName& parsed) {
    return parsed.option("latents").value_or(maker.coder);
}

void check_projection(const Maker& maker, const NameOptions& own, const ParsedName& parsed, double bits) {
    (void)own.whole("rank");
    (void)own.whole("window");
    const std::string latents = latents_of(maker, parsed);
    if (latents != "fp16") check_row_quantizer(latents, bits);
}

/// Through which latent coordinates go.
RowQuantizer latent_coder(const Maker& maker, const ParsedName& parsed, const Input& input, std::size_t rank) {
    QuantizerOptions options = input.options;
    options.residual = 0;
    options.underflow = Underflow::allowed;
    const std::string latents = latents_of(maker, parsed);
    return latents == "fp16" ? halves(rank) : row_quantizer(latents, rank, input.bits, options);
}

CacheCoder projection(const Maker& maker, const NameOptions& own, const ParsedName& parsed, const Input& input) {
    const std::size_t rank =
        rank_of(own, input.channels / 2, std::min<std::size_t>(input.channels, input.calibration.n_rows));
    const arma::mat basis = in_halves(leading_vectors(input.calibration, rank).right);
    const auto shared = std::make_shared<const RowQuantizer>(latent_coder(maker, parsed, input, rank));
    RowQuantizer projected = in_double(
        parsed.text, [=](const arma::mat& rows) { return shared->encode(arma::mat(rows * basis)); },
        [=](std::span<const std::uint8_t> bytes, std::size_t rows) {
            return arma::mat(shared->decode(bytes, rows) * basis.t());
        });
    return {with_kept_tokens(0, own.whole("window").value_or(maker.window), input.channels, std::move(projected)), rank,
            16 * std::uint64_t{basis.n_elem}};
}

// ojakv

/// A step of Oja's rule with all rows of a chunk, scaled to a mean variance of 1, and back to an orthonormal basis
/// whose vectors point where they did.
arma::mat moved(const arma::mat& basis, const arma::mat& chunk, double rate) {
    const double energy = arma::accu(arma::square(chunk));
    if (energy == 0.0) return basis;
    arma::mat q, r;
    const double scale = rate * static_cast<double>(chunk.n_cols) / energy;
    if (!arma::qr_econ(q, r, arma::mat(basis + scale * chunk.t() * (chunk * basis))))
        throw input_error("the QR of the online basis failed (entries too large): scale the data down");
    for (arma::uword j = 0; j < q.n_cols; ++j)
        if (r(j, j) < 0.0) q.col(j) *= -1.0;
    return q;
}

void check_online(const Maker& maker, const NameOptions& own, const ParsedName& parsed, double bits) {
    check_projection(maker, own, parsed, bits);
    (void)own.whole("sinks");
    (void)own.number("rate");
    if (own.whole("step") == std::size_t{0})
        throw usage_error("\"{}\": a step of 0 tokens never ends: give for example step=64", parsed.text);
}

CacheCoder online(const Maker& maker, const NameOptions& own, const ParsedName& parsed, const Input& input) {
    const std::size_t channels = input.channels;
    const std::size_t rank = rank_of(own, channels / 2, std::min<std::size_t>(channels, input.calibration.n_rows));
    const arma::mat start = in_halves(leading_vectors(input.calibration, rank).right);
    const std::size_t step = own.whole("step").value_or(64);
    const double rate = own.number("rate").value_or(0.05);
    const auto shared = std::make_shared<const RowQuantizer>(latent_coder(maker, parsed, input, rank));
    RowQuantizer coder = in_double(
        parsed.text,
        [=](const arma::mat& rows) {
            arma::mat basis = start;
            arma::mat latents(rows.n_rows, rank);
            for (std::size_t first = 0; first < rows.n_rows; first += step) {
                const arma::mat chunk = rows.rows(first, std::min<std::size_t>(first + step, rows.n_rows) - 1);
                basis = moved(basis, chunk, rate);
                latents.rows(first, first + chunk.n_rows - 1) = chunk * basis;
            }
            BitWriter writer;
            write_tokens(writer, Item::codebooks, basis);
            Encoded encoded = finished(writer);
            const Encoded rest = shared->encode(latents);
            encoded.bytes.insert(encoded.bytes.end(), rest.bytes.begin(), rest.bytes.end());
            encoded.ledger += rest.ledger;
            return encoded;
        },
        [=](std::span<const std::uint8_t> bytes, std::size_t rows) {
            BitReader reader(bytes);
            const arma::mat basis = read_tokens(reader, channels, rank);
            return arma::mat(shared->decode(bytes.subspan(reader.bytes_read()), rows) * basis.t());
        });
    return {with_kept_tokens(own.whole("sinks").value_or(4), own.whole("window").value_or(maker.window), channels,
                             std::move(coder)),
            rank, 16 * std::uint64_t{start.n_elem}};
}

// xkv

QuantizerOptions options_of_factors(const NameOptions& own, double bits, QuantizerOptions options) {
    options.factor_codebook =
        own.choice("factors", {"normal", "fp16"}) == std::size_t{1} ? FactorCodebook::fp16 : FactorCodebook::normal;
    options.factor_bits = static_cast<unsigned>(bits);
    return options;
}

void check_shared_tokens(const Maker&, const NameOptions& own, const ParsedName& parsed, double bits) {
    (void)own.whole("rank");
    (void)own.choice("factors", {"normal", "fp16"});
    if (!(bits >= 1.0 && bits <= 8.0) || bits != std::floor(bits))
        throw usage_error("\"{}\": {} bits are not possible (an entry of a factor takes 1 to 8): choose --bits 1 to 8",
                          parsed.text, bits);
}

CacheCoder shared_tokens(const Maker&, const NameOptions& own, const ParsedName& parsed, const Input& input) {
    const std::size_t channels = input.channels;
    const std::size_t rank = rank_of(own, channels / 8, std::min<std::size_t>(channels, 0xFFFF));
    const FactorCodec factors(options_of_factors(own, input.bits, input.options));
    const std::string truncation = "svd:" + std::to_string(rank);
    RowQuantizer coder = in_double(
        parsed.text,
        [=](const arma::mat& rows) {
            if (rank > rows.n_rows)
                throw usage_error("rank {} is not possible (a sequence has {} tokens): choose a smaller rank", rank,
                                  rows.n_rows);
            AnalysedBlock block(rows);
            BitWriter writer;
            factors.write(writer, spectral_method(truncation).factors(block).signal);
            return finished(writer);
        },
        [=](std::span<const std::uint8_t> bytes, std::size_t rows) {
            const FactorCodec::Read read = factors.read(bytes, rows, channels);
            if (read.bytes != bytes.size())
                throw input_error("coded factors have {} bytes and need {}: the data is damaged", bytes.size(),
                                  read.bytes);
            return read.matrix;
        });
    return {with_kept_tokens(0, 0, channels, std::move(coder)), rank, 0};
}

// kvtc

/// The water level of reverse water-filling: entries of these variances, so many of them in all, at a mean rate.
double water_level(const arma::vec& variances, std::size_t channels, double rate) {
    const double largest = variances.max();
    const auto mean_rate = [&](double level) {
        double sum = 0.0;
        for (const double variance : variances) sum += variance > level ? 0.5 * std::log2(variance / level) : 0.0;
        return sum / static_cast<double>(channels);
    };
    double low = std::log(largest) - 1000.0;  // far more than any rate asks for
    double high = std::log(largest);
    for (int round = 0; round < 80; ++round) {
        const double middle = 0.5 * (low + high);
        (mean_rate(std::exp(middle)) > rate ? low : high) = middle;
    }
    return std::exp(high);
}

/// Integers as bytes, small ones in one: sign in the lowest bit, seven bits a byte, the highest says that more follow.
void append(std::vector<std::uint8_t>& to, std::int64_t number) {
    auto rest = static_cast<std::uint64_t>(number) << 1 ^ static_cast<std::uint64_t>(number >> 63);
    for (; rest >= 128; rest >>= 7) to.push_back(static_cast<std::uint8_t>(rest | 128));
    to.push_back(static_cast<std::uint8_t>(rest));
}

/// What append wrote, from `at` on. Throws input_error when it is cut off.
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

/// Huffman codes and runs: longer matches of what is nearly random cost more than they save.
std::vector<std::uint8_t> deflated(const std::vector<std::uint8_t>& bytes) {
    z_stream stream{};
    if (deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, MAX_WBITS, MAX_MEM_LEVEL, Z_RLE) != Z_OK)
        throw bug("zlib does not start");
    std::vector<std::uint8_t> small(deflateBound(&stream, bytes.size()));
    stream.next_in = const_cast<Bytef*>(bytes.data());  // zlib only reads it
    stream.avail_in = static_cast<uInt>(bytes.size());
    stream.next_out = small.data();
    stream.avail_out = static_cast<uInt>(small.size());
    const int end = deflate(&stream, Z_FINISH);
    small.resize(stream.total_out);
    deflateEnd(&stream);
    if (end != Z_STREAM_END || stream.total_in != bytes.size()) throw bug("{} bytes are not deflated", bytes.size());
    return small;
}

/// At most `most` bytes come out.
std::vector<std::uint8_t> inflated(std::span<const std::uint8_t> bytes, std::size_t most) {
    std::vector<std::uint8_t> large(most);
    uLongf size = large.size();
    uLong read = bytes.size();
    if (uncompress2(large.data(), &size, bytes.data(), &read) != Z_OK || read != bytes.size())
        throw input_error("entropy-coded components cannot be inflated: the data is damaged");
    large.resize(size);
    return large;
}

constexpr double largest_integer = 9e15;      // that a double and append hold
constexpr std::size_t bytes_of_integer = 10;  // at most

void check_transform(const Maker&, const NameOptions& own, const ParsedName& parsed, double bits) {
    for (const char* key : {"sinks", "window", "layers"}) (void)own.whole(key);
    if (!(bits >= 0.25 && bits <= 8.0))
        throw usage_error("\"{}\": {} bits are not possible (a mean rate is 0.25 to 8): choose --bits 0.25 to 8",
                          parsed.text, bits);
}

CacheCoder transform(const Maker& maker, const NameOptions& own, const ParsedName& parsed, const Input& input) {
    if (input.calibration.n_rows < 2)
        throw usage_error("\"{}\": {} tokens have no variances: calibrate on more tokens", parsed.text,
                          input.calibration.n_rows);
    const arma::rowvec means = in_halves(arma::mean(input.calibration, 0));
    const arma::mat centred = input.calibration.each_row() - means;
    const arma::vec values(singular_values(centred));
    const arma::vec variances = arma::square(values) / static_cast<double>(input.calibration.n_rows);
    const double level = variances.max() > 0.0 ? water_level(variances, input.channels, input.bits) : 0.0;
    const arma::uvec above = arma::find(variances > level);
    const std::size_t rank = above.n_elem;
    const arma::mat basis = in_halves(leading_vectors(centred, rank).right);
    const double step = static_cast<float>(std::sqrt(12.0 * level));
    RowQuantizer coder = in_double(
        parsed.text,
        [=](const arma::mat& rows) {
            const arma::mat components = (rows.each_row() - means) * basis / step;
            if (components.n_elem > 0 && !(arma::abs(components).max() < largest_integer))
                throw input_error("a token is {:.1e} steps of the calibrated basis long: calibrate on data like it",
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
                throw input_error("entropy-coded components go on behind the last: the data is damaged");
            arma::mat block = components * basis.t();
            block.each_row() += means;
            return block;
        });
    return {with_kept_tokens(own.whole("sinks").value_or(0), own.whole("window").value_or(maker.window), input.channels,
                             std::move(coder)),
            rank, 16 * (std::uint64_t{basis.n_elem} + means.n_elem) + 32};
}

const std::vector<Maker>& makers() {
    static const std::vector<Maker> table = {
        {{"palu",
          "groups of heads projected on a calibrated basis, latent coordinates quantized",
          {"rank=R (of a group; default half its channels)", "heads=G (of a group, default 4; 0: the layer's)",
           "latents=QUANTIZER|fp16 (default rht-uniform)"},
          "of a latent coordinate",
          "Chang et al. 2025 (Palu)"},
         true,
         4,
         1,
         0,
         "rht-uniform",
         {"rank", "heads", "latents"},
         check_projection,
         projection},
        {{"cskv",
          "channels of a layer shrunk by a calibrated basis, a window of last tokens in fp16",
          {"rank=R (default half the channels)", "window=W (tokens, default 32)",
           "latents=QUANTIZER|fp16 (default kivi)"},
          "of a latent coordinate",
          "Wang et al. 2024 (CSKV)"},
         true,
         0,
         1,
         32,
         "kivi",
         {"rank", "window", "latents"},
         check_projection,
         projection},
        {{"ojakv",
          "a calibrated basis that follows the sequence by Oja's rule; first and last tokens in fp16",
          {"rank=R (default half the channels of the layer)", "rate=ETA (default 0.05)",
           "step=S (tokens between updates, default 64)", "sinks=S (default 4)", "window=W (default 32)",
           "latents=QUANTIZER|fp16 (default rht-uniform)"},
          "of a latent coordinate",
          "Zhu et al. 2025 (OjaKV)"},
         true,
         0,
         1,
         32,
         "rht-uniform",
         {"rank", "rate", "step", "sinks", "window", "latents"},
         check_online,
         online},
        {{"xkv",
          "a group of layers shares the leading token basis of the sequence itself",
          {"rank=R (of a group; default an eighth of its channels)", "layers=L (of a group, default 4; 0: all)",
           "factors=normal|fp16 (default normal)"},
          "of an entry of a factor",
          "Chang et al. 2025 (xKV)"},
         false,
         0,
         4,
         0,
         "normal",
         {"rank", "layers", "factors"},
         check_shared_tokens,
         shared_tokens},
        {{"kvtc",
          "principal components of all heads, bits by reverse water-filling, entropy-coded",
          {"layers=L (of a group, default 1; 0: all)", "sinks=S (first tokens in fp16, default 0)",
           "window=W (last tokens in fp16, default 0)"},
          "mean rate that the calibration asks for, also fractions: 0.25 to 8",
          "Staniszewski & Lancucki 2025 (KVTC)"},
         true,
         0,
         1,
         0,
         "",
         {"layers", "sinks", "window"},
         check_transform,
         transform},
    };
    return table;
}

std::string without_unrope(std::string_view text) {
    return std::string(text.starts_with(unrope_prefix) ? text.substr(unrope_prefix.size()) : text);
}

const Maker* find_maker(std::string_view text) {
    const std::string name = parse_name(without_unrope(text)).name;
    const auto found =
        std::find_if(makers().begin(), makers().end(), [&](const Maker& maker) { return maker.entry.name == name; });
    return found == makers().end() ? nullptr : &*found;
}

}  // namespace

const std::vector<QuantizerEntry>& cache_methods() {
    static const std::vector<QuantizerEntry> entries = [] {
        std::vector<QuantizerEntry> all;
        for (const Maker& maker : makers()) all.push_back(maker.entry);
        return all;
    }();
    return entries;
}

bool is_cache_method(std::string_view text) { return find_maker(text) != nullptr; }

CacheMethod cache_method(std::string_view text, double bits) {
    const Maker* maker = find_maker(text);
    if (maker == nullptr) throw bug("{} is no cache method", text);
    const ParsedName parsed = parse_name(without_unrope(text));
    const NameOptions own(parsed, maker->keys);
    maker->check(*maker, own, parsed, bits);
    return {std::string(text), text.starts_with(unrope_prefix), maker->calibrated,
            own.whole("heads").value_or(maker->heads), own.whole("layers").value_or(maker->layers)};
}

CacheCoder cache_coder(const CacheMethod& method, std::size_t channels, double bits, const QuantizerOptions& options,
                       const arma::mat& calibration) {
    const Maker& maker = *find_maker(method.text);
    if (maker.calibrated && calibration.n_cols != channels)
        throw bug("{} channels calibrated for {}", calibration.n_cols, channels);
    const ParsedName parsed = parse_name(without_unrope(method.text));
    return maker.make(maker, NameOptions(parsed, maker.keys), parsed, {channels, bits, options, calibration});
}

}  // namespace spiked::estimators
