#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "app/c/arrays.hpp"
#include "app/c/border.hpp"
#include "sim/spiked/spectrum_spec.hpp"
#include "theory/laws/bulk_distribution.hpp"
#include "theory/laws/separable_law.hpp"
#include "theory/missing/missing_entries.hpp"

struct spiked_law {
    spiked::theory::SeparableLaw law;
    spiked::theory::BulkDistribution bulk;
};

namespace spiked::c {
namespace {

theory::SeenSide side_of(const spiked_spectrum* given, const char* name) {
    if (given == nullptr) return {sim::parse_spectrum("identity")};
    if (given->spec != nullptr) {
        if (given->values != nullptr)
            throw usage_error("{} has a spec and values (which contradict each other): set one to NULL", name);
        const sim::SpectrumSpec spec = sim::spectrum_spec(given->spec);
        return {spec.law(), spec.diagonal()};
    }
    const std::size_t count = count_of(given->count, 1, "count");
    const double* const values = required_array(given->values, "values");
    if (given->weights == nullptr) return {theory::Spectrum::of_values({values, count})};
    std::vector<theory::Atom> atoms;
    for (std::size_t i = 0; i < count; ++i) atoms.push_back({values[i], given->weights[i]});
    return {theory::Spectrum(std::move(atoms))};
}

spiked_spike spike_of(const theory::SpikePrediction& found) {
    return {.strength = found.strength.value,
            .outlier = found.outlier.value,
            .stieltjes_left = found.stieltjes_left,
            .stieltjes_right = found.stieltjes_right,
            .overlap_left = found.overlap_left.value,
            .overlap_right = found.overlap_right.value,
            .shrunk_frobenius = found.shrunk(theory::Loss::frobenius).value,
            .shrunk_operator = found.shrunk(theory::Loss::operator_norm).value,
            .shrunk_nuclear = found.shrunk(theory::Loss::nuclear).value,
            .detectable = found.detectable ? 1 : 0};
}

}  // namespace
}  // namespace spiked::c

using namespace spiked;

extern "C" {

int spiked_law_create(const spiked_spectrum* row, const spiked_spectrum* col, double aspect, spiked_law** law) {
    return spiked_law_create_missing(row, col, aspect, 1.0, 0.0, law);
}

int spiked_law_create_missing(const spiked_spectrum* row, const spiked_spectrum* col, double aspect, double share_seen,
                              double signal_square, spiked_law** law) {
    return c::computed([&] {
        auto& made = c::required(law, "law");
        made = nullptr;
        if (!(signal_square >= 0.0 && std::isfinite(signal_square)))
            throw usage_error("signal_square is {} (a sum of squares): pass 0 or the sum of strengths^2 over rows",
                              signal_square);
        const theory::SeenSpectra seen =
            theory::seen_spectra(c::side_of(row, "row"), c::side_of(col, "col"), share_seen, signal_square);
        const theory::SeparableLaw found(seen.row, seen.column, AspectRatio(aspect));
        made = new spiked_law{found, theory::BulkDistribution(found)};
    });
}

void spiked_law_free(spiked_law* law) { delete law; }

int spiked_law_bulk(const spiked_law* law, spiked_bulk* bulk) {
    return c::guarded([&] {
        const auto& given = c::required(law, "law");
        c::required(bulk, "bulk") = {.bulk_edge = given.law.bulk_edge().value,
                                     .lower_edge = given.bulk.lower_edge().value,
                                     .detection_threshold = given.law.detection_threshold().value,
                                     .tracy_widom_scale = given.law.tracy_widom_scale(),
                                     .mass_at_zero = given.bulk.mass_at_zero(),
                                     .mean = given.bulk.mean(),
                                     .regular_edge = given.law.edge_regularity().regular ? 1 : 0};
    });
}

int spiked_law_spikes(const spiked_law* law, const double* strengths, int64_t count, spiked_spike* spikes) {
    return c::guarded([&] {
        const auto& given = c::required(law, "law");
        const std::size_t size = c::count_of(count, 1, "count");
        (void)c::required_array(strengths, "strengths");
        (void)c::required_array(spikes, "spikes");
        for (std::size_t i = 0; i < size; ++i) spikes[i] = c::spike_of(given.law.spike({strengths[i]}));
    });
}

int spiked_law_density(const spiked_law* law, const double* x, int64_t count, double* density, double* cdf) {
    return c::guarded([&] {
        const auto& bulk = c::required(law, "law").bulk;
        const std::size_t size = c::count_of(count, 1, "count");
        (void)c::required_array(x, "x");
        for (std::size_t i = 0; i < size; ++i)
            if (!std::isfinite(x[i])) throw usage_error("x[{}] is {} (eigenvalues are finite): leave it out", i, x[i]);
        for (std::size_t i = 0; i < size; ++i) {
            if (density != nullptr) density[i] = bulk.density({x[i]});
            if (cdf != nullptr) cdf[i] = bulk.cdf({x[i]});
        }
    });
}

int spiked_law_curve(const spiked_law* law, int64_t count, double* x, double* density, double* cdf) {
    return c::guarded([&] {
        const auto& bulk = c::required(law, "law").bulk;
        const auto curve = bulk.curve(c::count_of(count, 2, "count"));
        for (std::size_t i = 0; i < curve.size(); ++i) {
            if (x != nullptr) x[i] = curve[i].x.value;
            if (density != nullptr) density[i] = curve[i].density;
            if (cdf != nullptr) cdf[i] = curve[i].cdf;
        }
    });
}

int spiked_law_quantiles(const spiked_law* law, const double* probabilities, int64_t count, double* x) {
    return c::guarded([&] {
        const auto& bulk = c::required(law, "law").bulk;
        const std::size_t size = c::count_of(count, 1, "count");
        (void)c::required_array(probabilities, "probabilities");
        (void)c::required_array(x, "x");
        for (std::size_t i = 0; i < size; ++i) x[i] = bulk.quantile(probabilities[i]).value;
    });
}

}  // extern "C"
