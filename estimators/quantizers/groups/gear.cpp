#include <memory>

#include "core/runtime/error.hpp"
#include "estimators/coding/factor_codec.hpp"
#include "estimators/coding/vector_outliers.hpp"
#include "estimators/quantizers/common_specs.hpp"
#include "estimators/quantizers/groups/kivi.hpp"
#include "estimators/quantizers/row_quantizer.hpp"
#include "estimators/svd/decomposition.hpp"

namespace spiked::estimators {
namespace {

struct GearSetup {
    std::size_t dimension;
    GroupAxis axis;
    std::size_t rank;
    double outliers;
    RowQuantizer groups;
    FactorCodec factors;

    /// Transposes between the block and the matrix whose columns are the vectors along the axis.
    [[nodiscard]] arma::mat oriented(const arma::mat& block) const {
        return axis == GroupAxis::key ? block : arma::mat(block.t());
    }
};

arma::mat without(const VectorOutliers& outliers, arma::mat vectors) {
    for (std::size_t l = 0; l < vectors.n_cols; ++l) {
        const double mean = arma::mean(vectors.col(l));
        for (const std::size_t position : outliers.places(l)) vectors(position, l) = mean;
    }
    return vectors;
}

LowRank leading_part(const arma::mat& block, std::size_t rank) {
    const std::vector<double> values = singular_values(block);
    while (rank > 0 && (rank > values.size() || values[rank - 1] == 0.0)) --rank;
    SingularVectors vectors = leading_vectors(block, rank);
    return {std::move(vectors.left),
            arma::vec(std::vector<double>(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(rank))),
            std::move(vectors.right)};
}

Encoded encode(const GearSetup& setup, const arma::mat& rows) {
    require_length(rows.n_cols, setup.dimension);
    if (!rows.is_finite())
        throw input_error("a row holds NaN or infinity (its group has no range): clean the data first");
    BitWriter writer;
    if (rows.n_elem == 0) return finished(writer);
    const arma::mat vectors = setup.oriented(rows);
    const VectorOutliers outliers(vectors, setup.outliers);
    const Encoded groups = setup.groups.encode(setup.oriented(without(outliers, vectors)));

    outliers.write(writer);
    writer.align();
    const std::vector<std::uint8_t> stored = writer.bytes();
    arma::mat decoded = setup.oriented(setup.groups.decode(groups.bytes, rows.n_rows));
    BitReader reader(stored);
    VectorOutliers::read(reader, setup.outliers, decoded);
    setup.factors.write(writer, leading_part(rows - setup.oriented(decoded), setup.rank));
    Encoded encoded = finished(writer);
    encoded += groups;
    return encoded;
}

arma::mat decode(const GearSetup& setup, std::span<const std::uint8_t> bytes, std::size_t rows) {
    if (rows == 0) return arma::mat(0, setup.dimension);
    // Outliers are stored first and replace the decoded entries of the groups.
    arma::mat positions = setup.oriented(arma::mat(rows, setup.dimension, arma::fill::zeros));
    BitReader reader(bytes);
    VectorOutliers::read(reader, setup.outliers, positions);
    const auto rest = bytes.subspan(reader.bytes_read());
    const FactorCodec::Read low_rank = setup.factors.read(rest, rows, setup.dimension);
    arma::mat vectors = setup.oriented(setup.groups.decode(rest.subspan(low_rank.bytes), rows));
    BitReader again(bytes);
    VectorOutliers::read(again, setup.outliers, vectors);
    return setup.oriented(vectors) + low_rank.matrix;
}

struct GearOptions {
    GroupAxis axis;
    std::size_t group;  ///< entries that share a minimum and a scale
    std::size_t rank;   ///< largest rank of the low-rank part
    double outliers;    ///< fraction of the entries of a vector that are stored in fp16, at most half
    ScalarOptions scales;
};

/// GEAR: min-max groups of the block without its outliers, outliers in fp16, and a low-rank part of the error of the
/// groups.
///
/// Source: Kang et al., "GEAR", 2024, with KIVI's groups as backbone. Of each vector (a channel on axis key, a token on
/// axis value) the fraction `outliers` is stored separately (vector_outliers.hpp) and replaced by the mean of the
/// vector before kivi codes the block; of the remaining error, `rank` singular components are stored (factor_codec.hpp,
/// vectors in fp16). Stored: outliers, low-rank part, and the data of kivi. Bits B + 2 f / G + outliers (16 + log2 m) +
/// 16 rank (n + d) / (n d). The source finds the components by power iteration; here they are exact. Throws the errors
/// of kivi.
RowQuantizer gear(std::size_t dimension, unsigned bits, const GearOptions& options) {
    RowQuantizer groups =
        kivi(dimension, bits, {.group = options.group, .axis = options.axis, .scales = options.scales});
    const FactorOptions factors{
        .codebook = FactorCodebook::fp16, .norm = options.scales.format, .underflow = Underflow::allowed};
    const auto setup = std::make_shared<const GearSetup>(
        GearSetup{dimension, options.axis, options.rank, options.outliers, std::move(groups), FactorCodec(factors)});
    return in_double(
        "gear", [setup](const arma::mat& rows) { return encode(*setup, rows); },
        [setup](std::span<const std::uint8_t> bytes, std::size_t rows) { return decode(*setup, bytes, rows); });
}

}  // namespace

QuantizerFamily gear_family() {
    return {.entry = {{"gear",
                       "kivi with outliers kept in fp16 and a low-rank approximation of its error",
                       {axis_spec(),
                        group_spec(),
                        {"rank", whole("R"), "largest rank of the low-rank part", "4"},
                        {"outliers", number("SHARE", {.least = 0.0, .most = 0.5}),
                         "fraction of the entries of a channel or token that stay in fp16", "0.02"},
                        signed_norm_spec()},
                       "Kang et al. 2024"},
                      "code bits",
                      true},
            .make =
                [](const NameOptions& named, std::size_t dimension, double bits, const QuantizerOptions& options) {
                    require_signs(named, options);
                    return gear(dimension, static_cast<unsigned>(bits),
                                {axis_of(named, options), group_of(named, options), named.whole_or_default("rank"),
                                 named.number_or_default("outliers"), scalar_options(options)});
                },
            .codes_singular_vectors = true};
}

}  // namespace spiked::estimators
