#include "validation/claims/spectrum_gain.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "estimators/caches/cache_method.hpp"
#include "estimators/quantizers/quantizer_table.hpp"
#include "sim/random/haar.hpp"
#include "sim/random/permutation.hpp"
#include "validation/claims/parts/coded_rows.hpp"

// The claim that the spectrum of rows predicts what a transform code gains over TurboQuant.

namespace spiked::validation {
namespace {

constexpr std::size_t simulated_tokens = 1024;
constexpr std::size_t frozen_rows = 256;
constexpr std::size_t least_chunk = 8;
std::size_t chunk_at(std::size_t row) { return row < 32 ? least_chunk : row < 128 ? 32 : 128; }

template <class Quantizer>
BitsAndError through(const Quantizer& quantizer, const arma::mat& rows) {
    const auto encoded = quantizer.encode(rows);
    const arma::mat decoded = quantizer.decode(encoded.bytes, rows.n_rows);
    return {8.0 * static_cast<double>(encoded.bytes.size()) / static_cast<double>(rows.n_elem),
            arma::norm(rows - decoded, "fro") / arma::norm(rows, "fro")};
}

/// Normal rows whose principal components have the variances exp(-decay (j - 1/2) / d), in a random basis.
arma::mat rows_of_decay(double decay, const TrialPlace& place, std::uint64_t replicate) {
    const std::size_t d = place.size;
    arma::vec deviations(d);
    for (std::size_t j = 0; j < d; ++j)
        deviations(j) = std::exp(-0.5 * decay * (static_cast<double>(j) + 0.5) / static_cast<double>(d));
    const stream::Stream basis(place.seed, place.cell, stream::Role::column_basis, replicate);
    return gaussian_rows(place, replicate, simulated_tokens, d) * arma::diagmat(deviations) *
           stream::haar_frame(basis, d, d).t();
}

Criterion simulated(std::string name, double decay) {
    const auto prepare = [=](const TrialPlace& place) -> Trial {
        return [=](std::uint64_t replicate) {
            const arma::mat rows = rows_of_decay(decay, place, replicate);
            estimators::QuantizerOptions rotation;
            rotation.seed = place.seed;
            rotation.rotation_index = replicate;
            const BitsAndError flat = by_turboquant(rows, rotation);
            const BitsAndError code = by_causal_klt(rows, flat.bits, !place.control_is(without_basis));
            return gain_in_bits(code, flat) + place.fault_of(with_bits_left_out) -
                   water_filled_gain(
                       rows,
                       place.control_is(with_other_columns) ? with_shuffled_columns(rows, place, replicate) : rows,
                       flat.bits);
        };
    };
    return predicted_gain(
        std::move(name),
        fmt::format("{}, {} normal rows, variances exp(-{} (j - 1/2) / d)", what_is_measured, simulated_tokens, decay),
        prepare);
}

}  // namespace

BitsAndError by_causal_klt(const arma::mat& rows, double bits, bool basis) {
    const auto method = estimators::cache_method(basis ? "causal-klt" : "causal-klt:basis=none");
    return through(estimators::cache_coder(method, rows.n_cols, bits, {}, {}).sequence, rows);
}

BitsAndError by_turboquant(const arma::mat& rows, const estimators::QuantizerOptions& options) {
    return through(estimators::row_quantizer("tq-mse", rows.n_cols, compared_index_bits, options), rows);
}

double gain_in_bits(const BitsAndError& code, const BitsAndError& over) {
    return std::log2(over.error / code.error) + over.bits - code.bits;
}

double water_filled_gain(const arma::mat& rows, const arma::mat& seen, double stored_bits) {
    const double mean_square = arma::accu(arma::square(rows)) / static_cast<double>(rows.n_elem);
    return 0.5 * std::log2(distortion_of(rows.n_cols, compared_index_bits) * mean_square /
                           theory::water_filled_distortion(running_channels(seen), stored_bits));
}

std::vector<theory::NormalChannel> running_channels(const arma::mat& rows) {
    const std::size_t d = rows.n_cols;
    arma::mat all = rows;
    if (rows.n_rows > 1) all.row(0) = rows.row(1);
    arma::rowvec mean(d, arma::fill::zeros);
    arma::rowvec slopes(d, arma::fill::zeros);
    arma::mat components(d, d, arma::fill::eye);
    std::vector<theory::NormalChannel> channels;
    for (std::size_t t = 0; t + chunk_at(t) <= rows.n_rows; t += chunk_at(t)) {
        const std::size_t chunk = chunk_at(t);
        if (t > 0 && t <= frozen_rows) {
            const arma::mat past = all.head_rows(t);
            mean = arma::mean(past, 0);
            const arma::mat centred = past.each_row() - mean;
            arma::vec variances;
            arma::eig_sym(variances, components, arma::mat(centred.t() * centred));
            const arma::mat known = centred * components;
            const arma::rowvec before = arma::sum(arma::square(known.head_rows(t - 1)), 0);
            const arma::rowvec products = arma::sum(known.head_rows(t - 1) % known.tail_rows(t - 1), 0);
            for (std::size_t k = 0; k < d && t > least_chunk; ++k)
                slopes(k) = std::clamp(
                    before(k) > 0.0 ? products(k) / before(k) / (1.0 + 4.0 / static_cast<double>(t)) : 0.0, 0.0, 0.95);
        }
        const std::size_t first = t == 0 ? 0 : t - 1;
        const arma::mat met = (all.rows(first, t + chunk - 1).each_row() - mean) * components;
        arma::mat left = met.tail_rows(chunk);
        left.tail_rows(met.n_rows - 1) -= met.head_rows(met.n_rows - 1) * arma::diagmat(slopes);
        for (const double variance : arma::rowvec(arma::mean(arma::square(left), 0)))
            channels.insert(channels.end(), chunk / least_chunk, {variance});
    }
    return channels;
}

arma::mat with_shuffled_columns(arma::mat rows, const TrialPlace& place, std::uint64_t replicate) {
    for (arma::uword i = 0; i < rows.n_cols; ++i) {
        const stream::Stream order(place.seed, fmt::format("{} column {}", place.cell, i), stream::Role::token_order,
                                   replicate);
        rows.col(i) =
            arma::vec(rows.col(i)).elem(arma::conv_to<arma::uvec>::from(stream::random_order(order, rows.n_rows)));
    }
    return rows;
}

Criterion predicted_gain(std::string name, std::string measures, std::function<Trial(const TrialPlace&)> prepare) {
    return {.name = std::move(name),
            .measures = std::move(measures),
            .summary = Summary::mean,
            .prepare = std::move(prepare),
            .region = [](std::size_t) { return between(-0.45, 0.05); },
            .quick = {{64, 12}},
            .full = {{32, 24}, {64, 24}},
            .negative_controls = {
                {without_basis, "the code keeps the columns in place of principal components"},
                {with_other_columns, "predicted from rows whose columns have orders of their own"},
                linear({with_bits_left_out, "a bit an entry of the code left out of the count",
                        FaultSize{1.0, "bits an entry", 0.0, "{} bits an entry of the code left out of the count"}})}};
}

std::vector<Claim> spectrum_gain_claims() {
    return {
        {.id = "spectrum.gain",
         .place = "reverse water-filling (Cover and Thomas 2006, Section 10.3.3) beside causal-klt, our own",
         .statement = "at equal stored bits causal-klt gains over tq-mse what reverse water-filling predicts from "
                      "the variances that it meets, less .2 bits, within .25",
         .plain = {"The spectrum of a cache says how much better than TurboQuant a transform code is.",
                   "bits saved, less those predicted", "steep"},
         .note =
             "the variances are those of each chunk of the rows in the principal components of the rows before it, so "
             "that an ideal code would have to learn as causal-klt does; the .2 bits are the loss of its quantizer and "
             "of variances that it estimates. The margin was set on three dumps",
         .criteria = {simulated("mild", 4.0), simulated("steep", 8.0)}}};
}

}  // namespace spiked::validation
