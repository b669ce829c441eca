// An example of a program that uses the installed library: it compares what eOptShrink finds in a block with one spike
// with what theory predicts.
#include <cstdio>

#include <spiked/estimators/spectral/eoptshrink.hpp>
#include <spiked/estimators/svd/analysed_block.hpp>
#include <spiked/sim/spiked/spiked_sampler.hpp>
#include <spiked/theory/laws/separable_law.hpp>

using namespace spiked;

int main() {
    const sim::SpikedModel model{
        .row = sim::Covariance::identity(128), .column = sim::Covariance::identity(128), .strengths = {{3.0}}};
    const auto sample = sim::sample(model, stream::StudySeed::parse("0x1"), "consumer", 0);
    estimators::AnalysedBlock block(sample.observed);
    const auto found = estimators::eoptshrink(block.singular_values(), block.shape());
    const theory::SeparableLaw law(theory::identity_spectrum(), theory::identity_spectrum(), AspectRatio(1.0));
    const double optimal = law.spike({3.0}).shrunk(theory::Loss::frobenius).value;
    std::printf("rank %zu, shrunk value %.3f, optimal %.3f\n", found.rank, found.shrunk.at(0), optimal);
    const double error = found.shrunk[0] - optimal;
    return found.rank == 1 && error * error < 0.1 ? 0 : 1;
}
