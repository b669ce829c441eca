// An example of a program that uses the installed library: it compares what eOptShrink finds in a block with one spike
// with what theory predicts, reads a study, and gives a picture a title.
#include <cstdio>
#include <string>

#include <spiked/estimators/spectral/eoptshrink.hpp>
#include <spiked/estimators/svd/analysed_block.hpp>
#include <spiked/reports/figures/svg.hpp>
#include <spiked/sim/spiked/spiked_sampler.hpp>
#include <spiked/theory/laws/separable_law.hpp>
#include <spiked/validation/study/study.hpp>

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

    const auto study = validation::parse_study(R"(
spiked = 1
[study]
name = "consumer"
seed = "0x1"
[model]
kind = "spiked"
n = 16
d = 16
noise = { entries = "gaussian" }
signal = { strength = 3.0, vectors = "haar" }
[[estimator]]
name = "eoptshrink"
[run]
reps = { min = 2 }
)",
                                               "consumer.toml");
    const std::size_t cells = study.experiment.cells.size();
    const std::string picture = reports::titled_svg("<svg xmlns=\"http://www.w3.org/2000/svg\"></svg>", "one spike",
                                                    "a picture without points");
    std::printf("%zu cell, a picture of %zu bytes\n", cells, picture.size());
    const bool titled = picture.find("<title>one spike</title>") != std::string::npos;
    return found.rank == 1 && error * error < 0.1 && cells == 1 && titled ? 0 : 1;
}
