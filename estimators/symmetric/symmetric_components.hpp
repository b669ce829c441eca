#pragma once
#include <armadillo>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "estimators/inference/spike_intervals.hpp"
#include "estimators/pca/spiked_pca.hpp"
#include "theory/laws/shrinkers.hpp"
#include "theory/symmetric/spiked_wigner.hpp"

namespace spiked::estimators {

struct SymmetricOptions {
    theory::Loss loss = theory::Loss::frobenius;
    /// How the noise level follows from the eigenvalues behind the components: from their mean square, less what the
    /// signal has in it, or from the median of their moduli, which strong noise in a few rows moves less; the error of
    /// the median is some 20 times as large at n = 100.
    VarianceRule rule = VarianceRule::mean;
    std::optional<double> entry_deviation = {};  ///< known standard deviation of an entry off the diagonal
    double level = 0.01;                         ///< of the test of each component
    double confidence = 0.95;                    ///< of the intervals
};

struct SymmetricComponent {
    double eigenvalue = 0.0;  ///< of the matrix, signed
    double p_value = 0.0;     ///< of one as far out among as many eigenvalues of noise as are left behind those before
    double strength = 0.0;    ///< eigenvalue of the clean matrix
    Interval strength_interval = {};
    double overlap = 0.0;  ///< squared, between the eigenvectors of signal and observation
    Interval overlap_interval = {};
    double shrunk = 0.0;  ///< eigenvalue of the estimated signal
};

/// The components of a symmetric or Hermitian matrix under the spiked Wigner model
/// (theory/symmetric/spiked_wigner.hpp).
struct SymmetricComponents {
    theory::Field field = theory::Field::real;
    std::size_t size = 0;                             ///< n; of a Hermitian matrix, not of its real form
    double entry_deviation = 0.0;                     ///< of the noise off the diagonal, sigma / sqrt(n)
    double edge = 0.0;                                ///< 2 sigma: eigenvalues of noise lie within it, of either sign
    std::vector<double> eigenvalues = {};             ///< all, descending
    std::vector<SymmetricComponent> components = {};  ///< by the modulus of their eigenvalues, largest first
    std::optional<double> next_p_value = {};          ///< of one more component
    theory::WignerEntries entries = {};               ///< of the rest without the estimated signal, see below
    std::string note = {};                            ///< empty unless something is to be said of the model
    arma::mat signal = {};                            ///< the estimated one, in the form of the matrix that was given
};

/// From the eigenvalue of the largest modulus on, a component is counted while it is improbable (`level`) among as many
/// eigenvalues of noise as are left: with r components before it, the noise left is that of a matrix of n - r rows. The
/// noise level is estimated again after each component.
///
/// Intervals are of first order in n^(-1/2), noise level known: standard errors of strengths from the spread of the
/// eigenvalue, overlaps on the logistic scale from the error of the estimate. They use the variance of the diagonal and
/// the fourth cumulant of the entries, from the matrix without the estimated signal, and fourth powers of the
/// eigenvector: the observed one is sqrt(a) times the true one plus noise spread evenly, a the squared overlap. Their
/// coverage is in docs/METHODS.md; a component nearer than three standard errors to another of its sign is named in a
/// note.
///
/// The fourth cumulant k of the entries moves the edge of noise by sigma k / n to first order. The test estimates it
/// from the matrix without the components before and the one that is tested, which large entries of a signal would
/// else hide. Above k = n this order says nothing: the test then has the edge of Gaussian entries, and components
/// that the shift would undo are named in a note.
///
/// Throws input_error for a matrix that is not square, symmetric to 1e-8 of its largest entry, or smaller than 3 x 3,
/// and usage_error for options out of range. A matrix of low rank (at most n/2 eigenvalues above rounding) has no noise
/// level: all components are kept as they are. Cost: one symmetric eigendecomposition.
[[nodiscard]] SymmetricComponents symmetric_components(const arma::mat& matrix, const SymmetricOptions& options = {});

/// The same for the Hermitian matrix A + iB, from its real form [[A, -B], [B, A]], in which complex matrices are
/// saved for the readers here. The signal has that form again. Throws input_error for a matrix of another form.
[[nodiscard]] SymmetricComponents hermitian_components(const arma::mat& real_form,
                                                       const SymmetricOptions& options = {});

/// Whether the matrix is the real form of a Hermitian one, with B not 0.
[[nodiscard]] bool is_hermitian_form(const arma::mat& matrix);

/// The part of these functions that needs eigenvalues alone, descending, of any size.
struct SymmetricRank {
    double noise_level = 0.0;        ///< sigma; 0: low rank, no noise
    double excess_kurtosis = 0.0;    ///< of the entries behind the components found and the next one
    std::vector<std::size_t> found;  ///< positions of the components, largest modulus first
    std::vector<double> p_values;
    std::optional<double> next_p_value;
};
/// The excess kurtosis of the entries without this position, which is the next to be tested, and those before.
using KurtosisBehind = std::function<double(std::size_t position, const theory::SpikedWigner& model)>;
/// Entries are taken for Gaussian where no function gives their kurtosis.
[[nodiscard]] SymmetricRank symmetric_rank(std::span<const double> eigenvalues, theory::Field field,
                                           const SymmetricOptions& options = {},
                                           const KurtosisBehind& kurtosis_behind = {});

}  // namespace spiked::estimators
