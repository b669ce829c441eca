#include "validation/claims/parts/fixture.hpp"

#include <gtest/gtest.h>

namespace spiked::validation {
namespace {

constexpr const char* cell = "claim of a test";

TrialPlace place_of(std::string at, std::size_t size) {
    return {.size = size, .control = "", .seed = stream::StudySeed::parse("0x47"), .cell = std::move(at)};
}

/// Whether a block that is decomposed with others is the one that is drawn and decomposed alone, bit for bit.
void expect_as_alone(const Fixture& fixture, const TrialPlace& place, std::uint64_t replicate) {
    const auto [sample, block] = fixture.decomposed(place, replicate);
    const sim::SpikedSample alone = fixture.draw(place, replicate);
    EXPECT_TRUE(arma::approx_equal(sample.observed, alone.observed, "absdiff", 0.0)) << replicate;
    EXPECT_TRUE(arma::approx_equal(sample.noise, alone.noise, "absdiff", 0.0)) << replicate;
    estimators::AnalysedBlock own(alone.observed);
    EXPECT_EQ(block.singular_values(), own.singular_values()) << replicate;
    EXPECT_TRUE(arma::approx_equal(block.vectors(2).right, own.vectors(2).right, "absdiff", 0.0)) << replicate;
}

TEST(FixtureDecomposed, GivesEveryReplicateTheBlockThatItHasAlone) {
    const Fixture small = make_fixture({Noise::coloured, 0.5, {2.0}}, 24);
    for (const std::uint64_t replicate : {3, 4, 18, 19, 20, 3, 800, 2})
        expect_as_alone(small, place_of(cell, 24), replicate);
    // One block of this size fills a group.
    const Fixture large = make_fixture({Noise::coloured, 1.0, {2.0}}, 400);
    for (const std::uint64_t replicate : {3, 4, 3}) expect_as_alone(large, place_of(cell, 400), replicate);
}

TEST(FixtureDecomposed, KeepsTheBlocksOfModelsAndPlacesApart) {
    const std::size_t size = 24;
    const Fixture one = make_fixture({Noise::coloured, 0.5, {2.0}}, size);
    const Fixture other = make_fixture({Noise::coloured, 0.5, {3.0}}, size);
    const Fixture heavy = make_fixture({Noise::coloured, 0.5, {2.0}, "student:5"}, size);
    for (std::uint64_t replicate = 0; replicate < 3; ++replicate)
        for (const char* at : {cell, "claim of another test"})
            for (const Fixture* fixture : {&one, &other, &heavy})
                expect_as_alone(*fixture, place_of(at, size), replicate);
}

TEST(FixtureDecomposed, ControlsWithTheSameModelShareTheDecomposition) {
    const std::size_t size = 24;
    const auto fixture = [&] { return make_fixture({Noise::coloured, 0.5, {2.0}}, size); };
    const Fixture stated = fixture();
    const Fixture control = fixture();
    TrialPlace place = place_of(cell, size);
    const estimators::AnalysedBlock* const block = &stated.decomposed(place, 5).block;
    place.control = "certain";
    EXPECT_EQ(&control.decomposed(place, 5).block, block);
    EXPECT_NE(&control.decomposed(place, 6).block, block);
}

}  // namespace
}  // namespace spiked::validation
