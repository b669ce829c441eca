#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "app/c/arrays.hpp"
#include "app/c/border.hpp"
#include "app/c/preparation.hpp"
#include "estimators/pca/decomposed_samples.hpp"
#include "estimators/pca/sample_checks.hpp"
#include "estimators/pca/seen_components.hpp"
#include "estimators/pca/spiked_pca.hpp"
#include "estimators/svd/covariance_spectrum.hpp"
#include "theory/laws/spiked_covariance.hpp"

namespace spiked::c {
namespace {

/// Samples as principal components need them.
struct SampleSpectrum {
    std::vector<double> singular_values;
    estimators::Shape shape;  ///< degrees of freedom x features that are not constant
    std::vector<std::string> notes;
    std::optional<estimators::AnalysedBlock> block = {};  ///< none for covariances
    double share_seen = 1.0;
};

SampleSpectrum of_samples(arma::mat samples, const sim::Preparation& preparation) {
    sim::PreparedMatrix ready = sim::prepared(std::move(samples), preparation);
    const auto independent = preparation.independent_shape(estimators::Shape{ready.matrix.n_rows, ready.matrix.n_cols});
    auto found = estimators::decomposed_samples(ready.matrix, independent.rows);
    return {std::move(found.singular_values), found.shape, std::move(ready.notes), std::move(found.block),
            ready.entries.share};
}

SampleSpectrum of_covariances(const arma::mat& covariances, std::size_t samples) {
    auto found = estimators::covariance_spectrum(covariances, samples);
    return {std::move(found.singular_values), found.shape, std::move(found.notes)};
}

sim::Preparation pca_preparation(const spiked_pca_options& given, const char* missing) {
    if (given.covariance_of != 0 && (given.center != nullptr || given.standardize != 0 || missing != nullptr))
        throw usage_error(
            "center, standardize and missing need the samples (covariance_of gives their covariances alone): leave "
            "them out");
    const sim::Preparation preparation =
        preparation_of(words_or(given.center, "columns").data(), given.standardize != 0 ? "columns" : nullptr, missing);
    if (preparation.missing != sim::Missing::none && preparation.missing != sim::Missing::uniform)
        throw usage_error("missing is {} (principal components have one probability for all entries): pass uniform",
                          enum_name(preparation.missing));
    if (preparation.center != sim::Lines::columns && preparation.center != sim::Lines::none)
        throw usage_error("center is {} (features are centred, or nothing): pass columns or none",
                          enum_name(preparation.center));
    if (preparation.standardize != sim::Lines::none && preparation.center == sim::Lines::none)
        throw usage_error("standardize centres the columns and center none centres nothing: leave center out");
    return preparation;
}

estimators::PcaOptions pca_options_of(const spiked_pca_options& given) {
    estimators::PcaOptions options;
    options.shrinker = enum_named<estimators::EigenvalueShrinker>(words_or(given.shrinker, "optimal"), "shrinker");
    if (given.loss != nullptr && options.shrinker != estimators::EigenvalueShrinker::optimal)
        throw usage_error("loss has no effect on shrinker {}: leave one of them out", enum_name(options.shrinker));
    if (given.loss != nullptr) options.loss = &estimators::covariance_losses().named(given.loss);
    options.rule = enum_named<estimators::VarianceRule>(words_or(given.noise, "mean"), "noise");
    if (given.level != 0.0) options.level = given.level;
    if (!(options.level > 0.0 && options.level < 1.0))
        throw usage_error("level is {} (it is above 0 and below 1): pass for example 0.01", options.level);
    if (given.noise_level == 0.0) return options;
    if (given.noise != nullptr)
        throw usage_error("noise_level is known, so noise has no effect: leave one of them out");
    options.noise_level = given.noise_level;
    return options;
}

void fill_numbers(double* to, const std::vector<double>& values) {
    if (to != nullptr) std::copy(values.begin(), values.end(), to);
}

void fill_components(spiked_components& to, const estimators::SpikedPca& found, const SampleSpectrum& data) {
    constexpr double none = std::numeric_limits<double>::quiet_NaN();
    fill_numbers(to.eigenvalues, found.eigenvalues);
    fill_numbers(to.debiased, found.debiased);
    fill_numbers(to.debiased_errors, found.debiased_errors);
    fill_numbers(to.cosines, found.cosines);
    fill_numbers(to.cosine_errors, found.cosine_errors);
    fill_numbers(to.score_cumulants, found.score_cumulants);
    fill_numbers(to.shrunk, found.shrunk);
    to.values = static_cast<std::int64_t>(found.eigenvalues.size());
    to.cumulants = static_cast<std::int64_t>(found.score_cumulants.size());
    to.components = static_cast<std::int64_t>(found.components);
    to.degrees_of_freedom = static_cast<std::int64_t>(data.shape.rows);
    const bool noisy = found.noise_level != 0.0;
    to.noise_level = noisy ? found.noise_level : none;
    to.bulk_edge =
        found.bulk_noise_level() != 0.0
            ? theory::SpikedCovariance(AspectRatio::of(data.shape.rows, data.shape.columns), found.bulk_noise_level())
                  .upper_edge()
                  .value
            : none;
    write_notes(to.notes, to.notes_capacity, data.notes);
}

void find_components(const spiked_matrix* data, const char* missing, const spiked_pca_options& given,
                     spiked_components& to, double* share_seen) {
    const estimators::PcaOptions options = pca_options_of(given);
    const sim::Preparation preparation = pca_preparation(given, missing);
    const std::size_t covariance_of = count_of(given.covariance_of, 0, "covariance_of");
    if (covariance_of == 1) throw usage_error("covariance_of is 1 (too small): pass at least 2");
    arma::mat read = covariance_of > 0 ? read_matrix(data, "data") : read_data(data, preparation);
    const std::size_t features = read.n_cols;
    const std::size_t samples = covariance_of > 0 ? covariance_of : read.n_rows;
    const auto most = static_cast<std::int64_t>(std::min(samples, features));
    to.values = most;
    if (to.capacity < most)
        throw BufferTooSmall{
            fmt::format("found has room for {} values ({} samples of {} features have {}): pass "
                        "longer arrays",
                        to.capacity, samples, features, most)};
    SampleSpectrum spectrum =
        covariance_of > 0 ? of_covariances(read, covariance_of) : of_samples(std::move(read), preparation);
    const std::size_t stripped = features - spectrum.shape.columns;
    if (stripped > 0)
        spectrum.notes.push_back(fmt::format("{} constant feature{} left out", stripped, stripped == 1 ? "" : "s"));
    const double share = spectrum.share_seen;
    auto found = spectrum.block ? estimators::weighted_components(spectrum.singular_values, *spectrum.block,
                                                                  spectrum.shape, options, share)
                                : estimators::spiked_pca(spectrum.singular_values, spectrum.shape, options);
    if (covariance_of > 0)
        estimators::note_unchecked(found);
    else
        estimators::check_samples(found, *spectrum.block, spectrum.shape);
    estimators::correct_for_missing(found, spectrum.shape, options, share);
    if (share_seen != nullptr) *share_seen = share;
    if (!found.note.empty()) spectrum.notes.push_back(found.note);
    fill_components(to, found, spectrum);
    to.stripped_features = static_cast<std::int64_t>(stripped);
}

}  // namespace
}  // namespace spiked::c

using namespace spiked;

extern "C" {

int spiked_pca(const spiked_matrix* data, const spiked_pca_options* options, spiked_components* found) {
    return spiked_pca_missing(data, nullptr, options, found, nullptr);
}

int spiked_pca_missing(const spiked_matrix* data, const char* missing, const spiked_pca_options* options,
                       spiked_components* found, double* share_seen) {
    return c::computed([&] {
        c::find_components(data, missing, options == nullptr ? spiked_pca_options{} : *options,
                           c::required(found, "found"), share_seen);
    });
}

}  // extern "C"
