#include "validation/claims/parts/fixture.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <list>
#include <optional>

#include "core/text/enum_names.hpp"
#include "estimators/spectral/eoptshrink.hpp"
#include "validation/trials/prepared_blocks.hpp"

template <>
struct spiked::EnumNames<spiked::validation::Noise> {
    using Noise = spiked::validation::Noise;
    static constexpr EnumName<Noise> table[] = {
        {Noise::white, "white"},
        {Noise::coloured, "coloured"},
        {Noise::columns, "columns"},
        {Noise::strong, "strong"},
    };
};

namespace spiked::validation {

std::string_view name_of(Noise noise) { return enum_name(noise); }

double Fixture::tracy_widom(double eigenvalue) const {
    return (eigenvalue - law->bulk_edge().value) * law->tracy_widom_scale() * std::pow(d(), 2.0 / 3.0);
}

std::shared_ptr<const theory::SeparableLaw> make_law(const sim::SpikedModel& model) {
    return std::make_shared<theory::SeparableLaw>(model.row.spectrum(), model.column.spectrum(),
                                                  AspectRatio::of(model.row.size(), model.column.size()));
}

double DrawnBlock::squared_overlap(sim::MatrixSide side) const {
    const auto vectors = block.vectors(1);
    const double inner = side == sim::MatrixSide::row ? arma::dot(vectors.left.col(0), sample.left.col(0))
                                                      : arma::dot(vectors.right.col(0), sample.right.col(0));
    return inner * inner;
}

Fixture make_fixture(const FixtureShape& shape, std::size_t columns) {
    using sim::Covariance;
    const auto rows = static_cast<std::size_t>(std::llround(shape.aspect * static_cast<double>(columns)));
    const auto row = [&] {
        switch (shape.noise) {
            case Noise::coloured:
                return Covariance::ar1(0.5, rows);
            case Noise::strong:
                return Covariance::ar1(0.7, rows);
            default:
                return Covariance::identity(rows);
        }
    };
    const auto column = [&] {
        switch (shape.noise) {
            case Noise::coloured:
            case Noise::columns:
                return Covariance::exponential(3.0, columns);
            case Noise::strong:
                return Covariance::ar1(0.7, columns);
            default:
                return Covariance::identity(columns);
        }
    };
    // The statistics of these claims do not depend on the basis; for Gaussian entries the eigenbasis saves products.
    const auto entries = sim::EntryLaw::parse(shape.entries);
    const auto colouring = entries.gaussian() ? sim::Colouring::eigenbasis : sim::Colouring::dense;
    Fixture fixture{{.row = row(), .column = column(), .strengths = {}, .entries = entries, .colouring = colouring},
                    nullptr};
    fixture.law = make_law(fixture.model);
    for (const double multiple : shape.thresholds)
        fixture.model.strengths.push_back({multiple * fixture.law->detection_threshold().value});
    return fixture;
}

DrawnBlock Fixture::decomposed(const TrialPlace& place, std::uint64_t replicate) const {
    struct Group {
        explicit Group(const sim::SpikedModel& of) : drawn(of) {}
        sim::SpikedModel drawn;
        std::optional<PreparedBlocks<sim::SpikedSample>> blocks = {};
    };
    struct Groups {
        stream::StudySeed seed;
        std::string cell;
        std::list<Group> of_models;
    };
    constexpr std::size_t most_bytes = std::size_t{2} << 20;
    thread_local Groups groups;
    if (groups.seed.bytes != place.seed.bytes || groups.cell != place.cell) groups = {place.seed, place.cell, {}};
    auto& of_models = groups.of_models;
    auto group = std::find_if(of_models.begin(), of_models.end(),
                              [&](const Group& one) { return sim::same_blocks(one.drawn, model); });
    if (group == of_models.end()) {
        group = of_models.emplace(of_models.end(), model);
        group->blocks.emplace(
            ReplicateRange{0, std::numeric_limits<std::uint64_t>::max()}, estimators::Precision::float64,
            [&drawn = group->drawn](std::uint64_t at) { return sim::sample(drawn, groups.seed, groups.cell, at); },
            [](const sim::SpikedSample& sample) { return sample.observed; }, most_bytes);
    }
    const auto [sample, block] = group->blocks->get(replicate);
    return {*sample, *block};
}

estimators::AnalysedBlock& analysed(const arma::mat& block, EmptyLines empty_lines) {
    struct Cached {
        EmptyLines empty_lines;
        estimators::AnalysedBlock block;
    };
    constexpr std::size_t most = 4;
    thread_local std::list<Cached> latest;
    const auto same = std::find_if(latest.begin(), latest.end(), [&](const Cached& cached) {
        const arma::mat& other = cached.block.block();
        return cached.empty_lines == empty_lines && arma::size(other) == arma::size(block) &&
               std::equal(block.begin(), block.end(), other.begin());
    });
    if (same != latest.end()) {
        // The block used last moves to the front, because blocks are dropped from the back.
        latest.splice(latest.begin(), latest, same);
        return same->block;
    }
    if (latest.size() == most) latest.pop_back();
    latest.push_front({empty_lines, estimators::AnalysedBlock(block, empty_lines)});
    return latest.front().block;
}

arma::vec eigenvalues_of(estimators::AnalysedBlock& block) { return arma::square(arma::vec(block.singular_values())); }

arma::vec eigenvalues_of(const arma::mat& block) { return eigenvalues_of(analysed(block, EmptyLines::keep)); }

estimators::Shrinkage shrink_at_rank(const std::vector<double>& singular_values, estimators::Shape shape,
                                     std::size_t rank, theory::Loss loss) {
    estimators::EOptShrinkOptions options;
    options.loss = loss;
    options.rank = rank;
    return estimators::eoptshrink(singular_values, shape, options);
}

estimators::QuantizerOptions rotation_of_trial(const TrialPlace& place, std::uint64_t replicate) {
    estimators::QuantizerOptions options;
    options.norm = estimators::NumberFormat::fp64;
    options.seed = place.seed;
    options.rotation_index = replicate;
    return options;
}

arma::mat coded(const estimators::RowQuantizer& quantizer, const arma::mat& rows) {
    return quantizer.decode(quantizer.encode(rows).bytes, rows.n_rows);
}

double margin_at(std::size_t size, double at_128, double rate) {
    return at_128 * std::pow(128.0 / static_cast<double>(size), rate);
}

}  // namespace spiked::validation
