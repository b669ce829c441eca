#include <algorithm>
#include <array>
#include <limits>
#include <memory>

#include "core/runtime/error.hpp"
#include "estimators/coding/fp16_entries.hpp"
#include "estimators/quantizers/common_specs.hpp"
#include "estimators/quantizers/groups/kivi.hpp"
#include "estimators/quantizers/row_quantizer.hpp"
#include "estimators/svd/decomposition.hpp"

namespace spiked::estimators {
namespace {

constexpr std::size_t group_count = 8;
constexpr std::array<std::array<unsigned, group_count>, 8> schedules = {{{4, 4},
                                                                         {8, 4, 4},
                                                                         {8, 8, 4, 4},
                                                                         {8, 8, 4, 4, 4, 4},
                                                                         {8, 8, 8, 4, 4, 4, 4},
                                                                         {8, 8, 8, 8, 4, 4, 4, 4},
                                                                         {8, 8, 8, 8, 8, 8, 4, 4},
                                                                         {8, 8, 8, 8, 8, 8, 8, 8}}};

struct SvdqSetup {
    std::size_t dimension;
    unsigned bits;
    Underflow underflow;
    KiviOptions latent;  ///< the coding of a group of latent channels

    struct Group {
        std::size_t first;
        std::size_t count;
        unsigned bits;
    };
    /// The coded groups of the latent channels for this number of rows.
    [[nodiscard]] std::vector<Group> groups(std::size_t rows) const {
        const std::size_t channels = std::min(rows, dimension);
        std::vector<Group> all;
        for (std::size_t g = 0; g < group_count; ++g) {
            // Channel c of m is in group 8 c / m.
            const std::size_t first = (g * channels + group_count - 1) / group_count;
            const std::size_t end = ((g + 1) * channels + group_count - 1) / group_count;
            if (schedules[bits - 1][g] > 0 && end > first) all.push_back({first, end - first, schedules[bits - 1][g]});
        }
        return all;
    }
    [[nodiscard]] RowQuantizer coder(const Group& group) const { return kivi(group.count, group.bits, latent); }
    /// The number of bytes that coder() writes.
    [[nodiscard]] std::size_t bytes(const Group& group, std::size_t rows) const {
        return (group.count * (2 * bits_of(latent.scales.format) + rows * group.bits) + 7) / 8;
    }
};

Encoded encode(const SvdqSetup& setup, const arma::mat& rows) {
    require_length(rows.n_cols, setup.dimension);
    if (!rows.is_finite())
        throw input_error("a row holds NaN or infinity (it has no singular vectors): clean the data first");
    BitWriter writer;
    if (rows.n_elem == 0) return finished(writer);
    // The scale of a channel is a 255th of its range.
    if (setup.underflow == Underflow::rejected)
        reject_underflow(arma::abs(rows).max() / 255.0, setup.latent.scales.format, "a 255th of the largest entry");
    const arma::rowvec means = arma::mean(rows, 0);
    const auto stored = write_and_read_numbers(writer, Item::zeros, std::vector<double>(means.begin(), means.end()),
                                               setup.latent.scales.format, "mean of a column", Underflow::allowed);
    const arma::mat centred = rows.each_row() - arma::rowvec(stored);
    const auto groups = setup.groups(rows.n_rows);
    const std::size_t channels = groups.empty() ? 0 : groups.back().first + groups.back().count;
    arma::mat basis = leading_vectors(centred, channels).right;
    for (double& entry : basis) {
        write_half(writer, Item::factor_indices, entry, "entry of a vector");
        entry = rounded_to_half(entry, "entry of a vector");
    }
    writer.align();
    Encoded encoded = finished(writer);
    const arma::mat latent = centred * basis;
    for (const auto& group : groups) {
        encoded += setup.coder(group).encode(arma::mat(latent.cols(group.first, group.first + group.count - 1)));
    }
    return encoded;
}

arma::mat decode(const SvdqSetup& setup, std::span<const std::uint8_t> bytes, std::size_t rows) {
    if (rows == 0) return arma::mat(0, setup.dimension);
    BitReader reader(bytes);
    std::vector<double> means(setup.dimension);
    read_numbers(reader, means, setup.latent.scales.format);
    const auto groups = setup.groups(rows);
    arma::mat basis(setup.dimension, groups.empty() ? 0 : groups.back().first + groups.back().count);
    for (double& entry : basis) entry = read_half(reader);
    arma::mat block(rows, setup.dimension, arma::fill::zeros);
    block.each_row() += arma::rowvec(means);
    std::size_t at = reader.bytes_read();
    for (const auto& group : groups) {
        const auto rest = bytes.subspan(std::min(at, bytes.size()));
        const arma::mat latent =
            setup.coder(group).decode(rest.first(std::min(setup.bytes(group, rows), rest.size())), rows);
        block += latent * basis.cols(group.first, group.first + group.count - 1).t();
        at += setup.bytes(group, rows);
    }
    if (at != bytes.size())
        throw input_error("a coded block has {} bytes and its rows need {}: the data is damaged or forged",
                          bytes.size(), at);
    return block;
}

/// SVDq: the block minus its column means, in the coordinates of its right singular vectors; leading coordinates are
/// coded with more bits and the last ones are left out.
///
/// Source: Yankun et al., "SVDq", 2025. With X - mean = U S V^T the latent channels (X - mean) V form eight groups by
/// singular value, coded with these bits per entry, where each channel has its own minimum and scale over the tokens:
///   B = 1: 4 4;  2: 8 4 4;  3: 8 8 4 4;  4: 8 8 4 4 4 4;  5: 8 8 8 4 4 4 4;  6: four 8, four 4;  7: six 8, two 4;
///   8: 8.
/// Stored: means (ledger: zeros) in the format of the options, the vectors of coded channels in fp16 (factor_indices),
/// then the data of kivi on axis key, group after group. In the source the vectors serve a whole prompt; in a block of
/// n tokens they cost 16 / n bits per entry and channel, all of which are counted: 16 bits for a full basis at n = d.
/// Throws input_error for NaN, infinity, or a number that the format cannot store.
RowQuantizer svdq(std::size_t dimension, unsigned bits, const ScalarOptions& scalars) {
    const KiviOptions latent{.group = std::numeric_limits<std::size_t>::max() / 2,  // a whole channel
                             .axis = GroupAxis::key,
                             // The scales of the last channels may vanish; the block itself is checked in encode.
                             .scales = {scalars.format, Underflow::allowed}};
    const auto setup = std::make_shared<const SvdqSetup>(SvdqSetup{dimension, bits, scalars.underflow, latent});
    return in_double(
        "svdq", [setup](const arma::mat& rows) { return encode(*setup, rows); },
        [setup](std::span<const std::uint8_t> bytes, std::size_t rows) { return decode(*setup, bytes, rows); });
}

}  // namespace

QuantizerFamily svdq_family() {
    return {.entry = {{"svdq",
                       "coordinates in the block's right singular vectors (latent channels), the leading ones at 8 "
                       "bits, the last ones left out",
                       {signed_norm_spec()},
                       "Yankun et al. 2025"},
                      "mean bits of a latent channel; the vectors, in fp16, come on top",
                      true},
            .make =
                [](const NameOptions& named, std::size_t dimension, double bits, const QuantizerOptions& options) {
                    require_signs(named, options);
                    return svdq(dimension, static_cast<unsigned>(bits), scalar_options(options));
                },
            .codes_singular_vectors = true};
}

}  // namespace spiked::estimators
