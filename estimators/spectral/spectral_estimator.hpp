#pragma once
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/name_options.hpp"
#include "core/text/registry.hpp"
#include "estimators/spectral/shrinkage.hpp"
#include "estimators/svd/analysed_block.hpp"
#include "theory/laws/shrinkers.hpp"
#include "theory/laws/spectrum.hpp"

namespace spiked::estimators {

/// A spectral estimator is a function of numbers: it never sees the matrix, so one decomposition serves every method.
/// The exception are estimators whose rank is decided by resampling the block, `tw-test:null=signflip`.
struct SpectralEstimator {
    std::string name;  ///< as written
    /// Throws usage_error where the rank needs the block.
    std::function<Shrinkage(std::span<const double> singular_values, Shape shape)> estimate;
    std::size_t least_side = 0;  ///< shorter side of the smallest block for which a rank given in the name is possible
    bool keeps_values = false;   ///< kept singular values are not shrunk, for any loss
    /// False where values behind the components and the one after them have no effect, so that zeros may take their
    /// place: the noise is known, or the rank is.
    bool needs_all_values = true;
    std::function<Shrinkage(AnalysedBlock&)> estimate_block = {};  ///< set where the rank needs the block

    [[nodiscard]] Shrinkage of(AnalysedBlock& block) const {
        return estimate_block ? estimate_block(block) : estimate(block.singular_values(), block.shape());
    }
};

/// The part of the noise law that is known; only oracle methods use it. Entries of X have variance 1/d.
struct KnownLaw {
    std::optional<theory::Spectrum> row;
    std::optional<theory::Spectrum> column;

    [[nodiscard]] bool empty() const { return !row && !column; }
};

/// An entry of `spiked list estimators`.
struct EstimatorEntry : RegistryEntry {
    bool takes_noise_law = false;  ///< whether a known noise law changes its result
    std::string argument = {};     ///< an example of the argument that must follow its name: 1 of svd:1
    bool keeps_values = false;     ///< as in SpectralEstimator

    /// A complete name that can be used directly.
    [[nodiscard]] std::string example() const { return argument.empty() ? name : name + ":" + argument; }
};

[[nodiscard]] const std::vector<EstimatorEntry>& spectral_estimators();

struct SpectralFamily;

/// A spectral estimator by its name and the options in it, `eoptshrink:margin=0` or `svd:1`: parsed once, where a user
/// gives the name, and then passed on in this form.
struct SpectralSpec {
    const SpectralFamily* family = nullptr;
    NameOptions named;

    [[nodiscard]] const EstimatorEntry& entry() const;
    /// Throws usage_error for options that exclude each other. The estimator throws precondition_error or input_error
    /// for invalid singular values (see RelativeSpectrum), and returns rank 0 with a note for a zero block.
    [[nodiscard]] SpectralEstimator make(theory::Loss loss, const KnownLaw& known = {}) const;
};
/// Throws usage_error for an unknown name or option, with the nearest.
[[nodiscard]] SpectralSpec spectral_spec(std::string_view name);
/// spectral_spec and make in one step.
[[nodiscard]] SpectralEstimator spectral_estimator(std::string_view name, theory::Loss loss = theory::Loss::frobenius,
                                                   const KnownLaw& known = {});

}  // namespace spiked::estimators
