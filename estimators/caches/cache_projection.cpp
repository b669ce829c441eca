#include <algorithm>
#include <memory>

#include "core/runtime/error.hpp"
#include "estimators/caches/cache_parts.hpp"
#include "estimators/svd/decomposition.hpp"

// palu and cskv have a calibrated basis; the basis of ojakv follows the sequence.
namespace spiked::estimators {
namespace {

/// Stores latent coordinates in fp16.
RowQuantizer fp16_latents(std::size_t dimension) {
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

/// The row quantizer of the latent coordinates.
RowQuantizer latent_coder(const CacheMethod& method, const CacheInput& input, std::size_t rank) {
    QuantizerOptions options = input.options;
    options.residual = 0;
    options.underflow = Underflow::allowed;
    return method.latents ? method.latents->make(rank, input.bits, options) : fp16_latents(rank);
}

/// A step of Oja's rule with all rows of a chunk, scaled to a mean variance of 1; the result is orthonormalised, and
/// its vectors keep their signs.
arma::mat oja_step(const arma::mat& basis, const arma::mat& chunk, double rate) {
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

void check_cache_projection(const CacheMethod& method, double bits) {
    if (method.latents) method.latents->check_bits(bits);
}

CacheCoder cache_projection(const CacheMethod& method, const CacheInput& input) {
    const NameOptions& own = method.own;
    const std::size_t rank =
        cache_rank(own, input.channels / 2, std::min<std::size_t>(input.channels, input.calibration.n_rows));
    const arma::mat basis = in_fp16(leading_vectors(input.calibration, rank).right);
    const auto shared = std::make_shared<const RowQuantizer>(latent_coder(method, input, rank));
    RowQuantizer projected = in_double(
        own.text(), [=](const arma::mat& rows) { return shared->encode(arma::mat(rows * basis)); },
        [=](std::span<const std::uint8_t> bytes, std::size_t rows) {
            return arma::mat(shared->decode(bytes, rows) * basis.t());
        });
    const std::size_t window = own.takes("window") ? own.whole_or_default("window") : 0;
    return {with_kept_tokens(0, window, input.channels, std::move(projected)), rank, 16 * std::uint64_t{basis.n_elem}};
}

CacheCoder online_projection(const CacheMethod& method, const CacheInput& input) {
    const NameOptions& own = method.own;
    const std::size_t channels = input.channels;
    const std::size_t rank = cache_rank(own, channels / 2, std::min<std::size_t>(channels, input.calibration.n_rows));
    const arma::mat start = in_fp16(leading_vectors(input.calibration, rank).right);
    const std::size_t step = own.whole_or_default("step");
    const double rate = own.number_or_default("rate");
    const auto shared = std::make_shared<const RowQuantizer>(latent_coder(method, input, rank));
    RowQuantizer coder = in_double(
        own.text(),
        [=](const arma::mat& rows) {
            arma::mat basis = start;
            arma::mat latents(rows.n_rows, rank);
            for (std::size_t first = 0; first < rows.n_rows; first += step) {
                const arma::mat chunk = rows.rows(first, std::min<std::size_t>(first + step, rows.n_rows) - 1);
                basis = oja_step(basis, chunk, rate);
                latents.rows(first, first + chunk.n_rows - 1) = chunk * basis;
            }
            BitWriter writer;
            write_tokens(writer, Item::codebooks, basis);
            Encoded encoded = finished(writer);
            encoded += shared->encode(latents);
            return encoded;
        },
        [=](std::span<const std::uint8_t> bytes, std::size_t rows) {
            BitReader reader(bytes);
            const arma::mat basis = read_tokens(reader, channels, rank);
            return arma::mat(shared->decode(bytes.subspan(reader.bytes_read()), rows) * basis.t());
        });
    return {with_kept_tokens(own.whole_or_default("sinks"), own.whole_or_default("window"), channels, std::move(coder)),
            rank, 16 * std::uint64_t{start.n_elem}};
}

constexpr const char* bits_of_latents = "bits of a latent coordinate";

OptionSpec latents_spec(std::string fallback) {
    return {"latents", names_from({"quantizers"}, one_of_or({latents_in_fp16}, "QUANTIZER")),
            "how latent coordinates are stored", std::move(fallback)};
}

}  // namespace

CacheMaker palu_cache() {
    return {
        .entry = {{"palu",
                   "projects groups of heads on a calibrated basis and quantizes the latent coordinates",
                   {{"rank", whole("R", 1), "rank of a group of heads; default half its channels"},
                    {"heads", whole("G"), "number of heads in a group; 0: all of a layer", "4"},
                    latents_spec("rht-uniform")},
                   "Chang et al. 2025 (Palu)"},
                  bits_of_latents},
        .calibrated = true,
        .check = check_cache_projection,
        .make = cache_projection,
    };
}

CacheMaker cskv_cache() {
    return {
        .entry = {{"cskv",
                   "projects the channels of a layer on a calibrated basis; a window of last tokens stays in fp16",
                   {{"rank", whole("R", 1), "rank of a layer; default half its channels"},
                    {"window", whole("W"), "number of last tokens that stay in fp16", "32"},
                    latents_spec("kivi")},
                   "Wang et al. 2024 (CSKV)"},
                  bits_of_latents},
        .calibrated = true,
        .check = check_cache_projection,
        .make = cache_projection,
    };
}

CacheMaker ojakv_cache() {
    return {
        .entry = {{"ojakv",
                   "projects on a calibrated basis that follows the sequence by Oja's rule; first and last tokens stay "
                   "in fp16",
                   {{"rank", whole("R", 1), "rank of a layer; default half its channels"},
                    {"rate", number("ETA", {.least = 0.0}), "step size of Oja's rule", "0.05"},
                    {"step", whole("S", 1), "number of tokens between updates", "64"},
                    {"sinks", whole("S"), "number of first tokens that stay in fp16", "4"},
                    {"window", whole("W"), "number of last tokens that stay in fp16", "32"},
                    latents_spec("rht-uniform")},
                   "Zhu et al. 2025 (OjaKV)"},
                  bits_of_latents},
        .calibrated = true,
        .check = check_cache_projection,
        .make = online_projection,
    };
}

}  // namespace spiked::estimators
