#include "validation/claims/parts/coded_rows.hpp"

#include "estimators/quantizers/quantizer_table.hpp"
#include "sim/spiked/entry_law.hpp"
#include "theory/quantization/lloyd_max.hpp"

namespace spiked::validation {

double distortion_of(std::size_t dimension, unsigned bits) {
    return theory::lloyd_max_sphere(static_cast<int>(dimension), static_cast<int>(bits)).distortion;
}

arma::mat gaussian_rows(const TrialPlace& place, std::uint64_t replicate, std::size_t rows, std::size_t dimension) {
    arma::mat block(rows, dimension);
    sim::fill_entries({}, stream::Stream(place.seed, place.cell, stream::Role::noise, replicate),
                      {block.memptr(), block.n_elem});
    return block;
}

arma::mat coded_by(std::string_view name, const arma::mat& rows, unsigned bits,
                   const estimators::QuantizerOptions& options) {
    return coded(estimators::row_quantizer(name, rows.n_cols, bits, options), rows);
}

double relative_error(const Decoded& block) {
    return arma::mean(arma::sum(arma::square(block.rows - block.decoded), 1) / arma::sum(arma::square(block.rows), 1));
}

double self_gain(const Decoded& block) {
    return arma::mean(arma::sum(block.rows % block.decoded, 1) / arma::sum(arma::square(block.rows), 1));
}

}  // namespace spiked::validation
