#include <algorithm>
#include <limits>
#include <memory>

#include "core/runtime/error.hpp"
#include "core/runtime/stop_point.hpp"
#include "estimators/coding/fp16_entries.hpp"
#include "estimators/quantizers/common_specs.hpp"
#include "estimators/quantizers/row_quantizer.hpp"

namespace spiked::estimators {
namespace {

constexpr int most_rounds = 25;
constexpr unsigned most_index_bits = 10;

struct ProductQuantizerSetup {
    std::size_t dimension;
    std::size_t length;
    unsigned index_bits;
    NumberFormat norm;
    Underflow underflow;
    RowRotation none;

    [[nodiscard]] std::size_t positions() const { return (dimension + length - 1) / length; }
    [[nodiscard]] std::size_t centroids(std::size_t rows) const {
        return std::min(std::size_t{1} << index_bits, rows * positions());
    }
};

/// Sub-vectors as columns: those of all rows at the first position, then at the next.
arma::mat cut(const ProductQuantizerSetup& setup, const arma::mat& rows) {
    arma::mat vectors(setup.length, rows.n_rows * setup.positions());
    for (std::size_t j = 0; j < rows.n_cols; ++j)
        for (std::size_t t = 0; t < rows.n_rows; ++t)
            vectors(j % setup.length, j / setup.length * rows.n_rows + t) = rows(t, j);
    return vectors;
}

std::size_t nearest(const arma::mat& centroids, const double* vector) {
    stop_point();
    std::size_t best = 0;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t c = 0; c < centroids.n_cols; ++c) {
        double distance = 0.0;
        for (std::size_t i = 0; i < centroids.n_rows; ++i)
            distance += (vector[i] - centroids.colptr(c)[i]) * (vector[i] - centroids.colptr(c)[i]);
        if (distance < least) {
            least = distance;
            best = c;
        }
    }
    return best;
}

/// The centroids rounded to fp16, as they are stored.
arma::mat rounded(arma::mat centroids) {
    for (double& entry : centroids) entry = rounded_to_half(entry, "centroid");
    return centroids;
}

arma::mat k_means(const ProductQuantizerSetup& setup, const arma::mat& vectors, std::size_t count) {
    arma::mat centroids(setup.length, count);
    for (std::size_t c = 0; c < count; ++c) centroids.col(c) = vectors.col(c * vectors.n_cols / count);
    std::vector<std::size_t> at(vectors.n_cols, count);
    for (int round = 0; round < most_rounds; ++round) {
        bool moved = false;
        for (std::size_t i = 0; i < at.size(); ++i) {
            const std::size_t found = nearest(centroids, vectors.colptr(i));
            moved = moved || found != at[i];
            at[i] = found;
        }
        if (!moved) break;
        arma::mat sums(arma::size(centroids));
        std::vector<double> members(count, 0.0);
        for (std::size_t i = 0; i < at.size(); ++i) {
            sums.col(at[i]) += vectors.col(i);
            members[at[i]] += 1.0;
        }
        // A centroid without members is left unchanged.
        for (std::size_t c = 0; c < count; ++c)
            if (members[c] > 0.0) centroids.col(c) = sums.col(c) / members[c];
    }
    return rounded(std::move(centroids));
}

Encoded encode(const ProductQuantizerSetup& setup, const arma::mat& rows) {
    require_length(rows.n_cols, setup.dimension);
    const auto [norms, coordinates] = unit_rows(rows, setup.none);
    const arma::mat vectors = cut(setup, coordinates);
    const std::size_t count = setup.centroids(rows.n_rows);
    const arma::mat centroids = k_means(setup, vectors, count);
    BitWriter writer;
    write_numbers(writer, Item::norms, norms, setup.norm, "row norm", setup.underflow);
    for (const double entry : centroids) write_half(writer, Item::codebooks, entry, "centroid");
    for (std::size_t i = 0; i < vectors.n_cols; ++i)
        writer.write(Item::indices, nearest(centroids, vectors.colptr(i)), setup.index_bits);
    return finished(writer);
}

arma::mat decode(const ProductQuantizerSetup& setup, std::span<const std::uint8_t> bytes, std::size_t rows) {
    BitReader reader(bytes);
    std::vector<double> norms(rows);
    read_numbers(reader, norms, setup.norm);
    const std::size_t count = setup.centroids(rows);
    arma::mat centroids(setup.length, count);
    for (double& entry : centroids) entry = read_half(reader);
    arma::mat coordinates(rows, setup.dimension);
    for (std::size_t position = 0; position < setup.positions(); ++position)
        for (std::size_t t = 0; t < rows; ++t) {
            const std::uint64_t index = reader.read(setup.index_bits);
            if (index >= count)
                throw input_error("a coded block has the centroid index {} of {}: the data is damaged", index, count);
            for (std::size_t i = 0; i < setup.length && position * setup.length + i < setup.dimension; ++i)
                coordinates(t, position * setup.length + i) = centroids(i, index);
        }
    reader.require_end();
    return from_unit_rows(std::move(coordinates), norms, setup.none);
}

struct ProductQuantizerOptions {
    std::size_t length = 0;  ///< entries of a sub-vector; 0: 8 / bits
    ScalarOptions norms;
};

/// Product quantization: rows of unit variance are cut into sub-vectors of `length` entries, each coded by the nearest
/// of 2^(B length) centroids that k-means finds on the block itself and that are stored with it.
///
/// Source: Jegou et al. 2011. Stored: row norms, centroids in fp16, indices of B length bits, sub-vector after
/// sub-vector of all rows. Length 0 stands for the largest length with indices of at most 8 bits: 8, 4, 2, 2, 1.. at 1,
/// 2, 3, 4, 5.. bits. An incomplete last sub-vector is padded with zeros; there are never more centroids than
/// sub-vectors in the block. Unlike in the source, all positions share one codebook (one each would take more bits than
/// the block), rows are normalised, and nothing is trained in advance: at 128 x 128 and 2 bits the 256 centroids of 4
/// entries cost 1 bit per entry. Lloyd's iteration starts from distinct sub-vectors of the block and takes at most 25
/// rounds. Cost: 25 2^(B length) multiplications per entry.
RowQuantizer product_quantizer(std::size_t dimension, unsigned bits, const ProductQuantizerOptions& options) {
    std::size_t length = options.length;
    if (length == 0) length = std::max<std::size_t>(1, 8 / bits);
    length = std::min(length, dimension);
    const std::size_t index_bits = bits * length;
    if (index_bits > most_index_bits)
        throw usage_error(
            "indices of {} bits for sub-vectors of {} entries are not possible (at most {} bits): give a smaller "
            "pq:length",
            index_bits, length, most_index_bits);
    const auto setup = std::make_shared<const ProductQuantizerSetup>(ProductQuantizerSetup{
        dimension, length, static_cast<unsigned>(index_bits), options.norms.format, options.norms.underflow,
        RowRotation(RotationKind::identity, stream::Stream({}, "", stream::Role::rotation, 0), dimension)});
    return in_double(
        "pq", [setup](const arma::mat& rows) { return encode(*setup, rows); },
        [setup](std::span<const std::uint8_t> bytes, std::size_t rows) { return decode(*setup, bytes, rows); });
}

}  // namespace

QuantizerFamily pq_family() {
    return {{{"pq",
              "product quantization: sub-vectors coded by centroids that k-means fits to the block",
              {{"length", whole("L", 1), "number of entries in a sub-vector", "8 / B"}, norm_spec()},
              "Jegou et al. 2011"},
             "index bits an entry",
             true},
            [](const NameOptions& named, std::size_t dimension, double bits, const QuantizerOptions& options) {
                return product_quantizer(dimension, static_cast<unsigned>(bits),
                                         {named.whole("length").value_or(0), scalar_options(options)});
            }};
}

}  // namespace spiked::estimators
