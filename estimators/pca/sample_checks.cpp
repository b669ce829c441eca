#include "estimators/pca/sample_checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/math/distributions/fisher_f.hpp>
#include <cmath>

#include "estimators/svd/analysed_block.hpp"
#include "theory/laws/spiked_covariance.hpp"

namespace spiked::estimators {
namespace {

/// Fisher's G2, an estimate of kurtosis - 3.
double excess_kurtosis(const arma::vec& values) {
    const double n = static_cast<double>(values.n_elem);
    const arma::vec squares = arma::square(values - arma::mean(values));
    const double second = arma::mean(squares);
    const double plain = arma::mean(arma::square(squares)) / (second * second) - 3.0;
    return (n - 1.0) / ((n - 2.0) * (n - 3.0)) * ((n + 1.0) * plain + 6.0);
}

/// The part of the mean square of the residuals that components take away, in units of the noise level, per unit of the
/// squared entry of their vectors. With z the sample eigenvalue and c and f the squared cosines of the right vector and
/// of the scores, a feature with loading v has the mean square 1 + (l - 1 - z c) v^2 left, a sample with the score g
/// has 1 + (l - z f) g^2 / p.
struct Taken {
    double of_feature = 0.0;
    double of_sample = 0.0;
};

struct Judged {
    double p_value = 1.0;
    double variation = 0.0;  ///< of the true variances: standard deviation over mean
};

/// Whether the columns of these squared residuals have equal means, once `taken` is given back to each. Each column
/// lies in `dimensions` fewer dimensions than it has entries, which makes its mean vary more than its entries say.
Judged compare_columns(const arma::mat& squares, const arma::rowvec& taken, double dimensions) {
    const double entries = static_cast<double>(squares.n_rows);
    const double groups = static_cast<double>(squares.n_cols);
    const double share = (entries - 1.0 - dimensions) / (entries - 1.0);
    if (!(share > 0.0) || groups < 2.0) return {};
    const arma::rowvec means = arma::mean(squares, 0) + taken;
    const double within = arma::mean(arma::var(squares, 0, 0)) / share;
    const double between = entries * arma::var(means);
    if (!(within > 0.0)) return {};
    const boost::math::fisher_f law(groups - 1.0, groups * (entries - 1.0));
    return {boost::math::cdf(boost::math::complement(law, between / within)),
            std::sqrt(std::max(0.0, between - within) / entries) / arma::mean(means)};
}

void note_unequal(SpikedPca& found, const char* lines, const Judged& judged) {
    if (!(judged.p_value < equal_variances_level)) return;
    found.note += fmt::format(
        "{}the noise variances of {} differ by about {:.2g} % (F test of squared residuals, p = {:.2g}): the model has "
        "one noise level, so components may be noise and cosines wrong; spiked spectrum has methods for such noise",
        found.note.empty() ? "" : "; ", lines, 100.0 * judged.variation, judged.p_value);
}

/// `vectors` has a component in every column and a feature or sample in every row.
void note_concentrated(SpikedPca& found, const char* lines, const arma::mat& vectors) {
    const arma::uword count = vectors.n_cols;
    if (count == 0 || vectors.n_rows < 20 || 3 * count > vectors.n_rows) return;
    const arma::vec squares = arma::sort(arma::vec(arma::sum(arma::square(vectors), 1)), "descend");
    const double held = arma::accu(squares.head(count)) / static_cast<double>(count);
    if (!(held > 0.7)) return;
    found.note += fmt::format(
        "{}{:.2g} % of the components' vectors lie in as many {} as there are components ({}): noise of larger "
        "variance there looks like that",
        found.note.empty() ? "" : "; ", 100.0 * held, lines, count);
}

}  // namespace

void check_samples(SpikedPca& found, AnalysedBlock& block, Shape shape) {
    const arma::mat& samples = block.block();
    if (found.noise_level == 0.0 || samples.n_rows < 4) return;
    const theory::SpikedCovariance law(AspectRatio::of(shape.rows, shape.columns), found.noise_level);
    const double degrees = static_cast<double>(shape.rows);
    const double gamma = static_cast<double>(shape.columns) / degrees;
    const SingularVectors vectors = block.vectors(found.components);
    arma::mat squares = samples;
    arma::rowvec of_features(samples.n_cols, arma::fill::zeros);
    arma::rowvec of_samples(samples.n_rows, arma::fill::zeros);
    for (std::size_t i = 0; i < found.components; ++i) {
        const arma::vec& left = vectors.left.col(i);
        const arma::vec& right = vectors.right.col(i);
        squares -= block.singular_values()[i] * left * right.t();
        const auto population = law.population_eigenvalue({found.eigenvalues[i]});
        if (!population) {
            found.score_cumulants.push_back(0.0);
            continue;
        }
        const double spike = population->value / found.noise_level;
        const double of_scores = 1.0 - gamma / ((spike - 1.0) * (spike - 1.0));
        const double cumulant = std::max(-2.0, excess_kurtosis(left) / (of_scores * of_scores));
        found.score_cumulants.push_back(cumulant);
        found.debiased_errors[i] = law.spread(*population, cumulant)->population_eigenvalue / std::sqrt(degrees);
        const double sample = found.eigenvalues[i] / found.noise_level;
        const double cosine = law.squared_cosine(*population).value;
        const Taken taken{(sample * cosine - spike + 1.0) / cosine, (sample * of_scores - spike) / (gamma * of_scores)};
        of_features += found.noise_level * taken.of_feature * arma::square(right).t();
        of_samples += found.noise_level * taken.of_sample * arma::square(left).t();
    }
    squares = arma::square(squares);
    const double removed = static_cast<double>(found.components);
    const double centred = static_cast<double>(samples.n_rows) - degrees;
    note_unequal(found, "features", compare_columns(squares, of_features, removed + centred));
    note_unequal(found, "samples", compare_columns(squares.t(), of_samples, removed));
    note_concentrated(found, "features", vectors.right);
    note_concentrated(found, "samples", vectors.left);
}

void note_unchecked(SpikedPca& found) {
    if (found.noise_level == 0.0 || found.components == 0) return;
    found.note += fmt::format(
        "{}the errors of debiased eigenvalues are those of Gaussian scores, and equal variances are assumed "
        "(covariances do not show either)",
        found.note.empty() ? "" : "; ");
}

}  // namespace spiked::estimators
