#include "estimators/eoptshrink.hpp"

#include <cmath>
#include <complex>

#include "estimators/edge_fit.hpp"
#include "estimators/empirical_law.hpp"
#include "estimators/noise_imputation.hpp"
#include "estimators/rate_distortion_rank.hpp"
#include "estimators/relative_spectrum.hpp"
#include "theory/base/error.hpp"
#include "theory/finite_size.hpp"

namespace spiked::estimators {
namespace {

using theory::edge_extrapolation;

std::span<const double> from(std::span<const double> all, std::size_t first) { return all.subspan(first); }

/// The noise law of Step 2, eigenvalues, largest first.
std::vector<double> noise_eigenvalues(const RelativeSpectrum& spectrum, std::size_t rank, std::size_t k,
                                      const EOptShrinkOptions& options) {
    if (options.imputation == Imputation::none) {
        const auto rest = from(spectrum.eigenvalues, rank);
        return {rest.begin(), rest.end()};
    }
    if (options.imputation == Imputation::twice_rank) {
        std::vector<double> noise = impute_top(spectrum.values, 2 * rank, 0.0);
        for (double& value : noise) value *= value;
        return noise;
    }
    std::vector<double> raised(spectrum.eigenvalues.begin() + static_cast<std::ptrdiff_t>(rank),
                               spectrum.eigenvalues.end());
    for (double& value : raised) value = std::pow(value, options.power);
    std::vector<double> noise = impute_top(raised, k, options.imputation == Imputation::from_j ? 1.0 : 0.0);
    for (double& value : noise) value = std::pow(value, 1.0 / options.power);
    return noise;
}

std::size_t needed_values(std::size_t rank, std::size_t k, Imputation imputation) {
    switch (imputation) {
        case Imputation::none:
            return rank + 1;
        case Imputation::twice_rank:
            return 4 * rank + 1;
        default:
            return rank + 2 * k + 1;
    }
}

/// The author's program as it stands: nothing is kept in its range. Returns strength, left, right, shrunk.
std::array<double, 4> unclipped(const EmpiricalTransforms& at, bool left_is_short, theory::Loss loss) {
    const double d = 1.0 / std::sqrt(at.d_transform);
    const double to_overlap = at.d_transform / at.d_transform_slope;
    const double a_s = at.stieltjes_short * to_overlap;
    const double a_l = at.stieltjes_long * to_overlap;
    double shrunk = 0.0;
    if (loss == theory::Loss::frobenius)
        shrunk = d * std::sqrt(a_s * a_l);
    else if (loss == theory::Loss::operator_norm)
        shrunk = d * std::sqrt(std::min(a_s, a_l) / std::max(a_s, a_l));
    else
        shrunk = std::abs(d * (std::sqrt(std::complex<double>(a_s * a_l)) -
                               std::sqrt(std::complex<double>((1.0 - a_s) * (1.0 - a_l)))));
    return {d, left_is_short ? a_s : a_l, left_is_short ? a_l : a_s, std::isfinite(shrunk) ? shrunk : 0.0};
}

EOptShrinkOptions options_of(const NameOptions& typed) {
    EOptShrinkOptions options = typed.has_word("paper")     ? EOptShrinkOptions::paper()
                                : typed.has_word("author")  ? EOptShrinkOptions::author()
                                : typed.has_word("edgefit") ? EOptShrinkOptions::edge_fit()
                                                            : EOptShrinkOptions{};
    return options;
}

SpectralEstimator make(const ParsedName& parsed, theory::Loss loss, const KnownLaw&) {
    const NameOptions typed(
        parsed, {"rank", "bits", "pilot", "edge", "factor", "power", "margin", "cap", "impute", "mass", "clip"},
        {"paper", "author", "edgefit"});
    if (typed.words().size() > 1)
        throw usage_error("\"{}\": {} and {} are two readings (one at a time): leave one out", parsed.text,
                          typed.words()[0], typed.words()[1]);
    EOptShrinkOptions options = options_of(typed);
    options.loss = loss;
    if (parsed.option("rank") == "rd")
        options.entry_bits = stored_entry_bits(typed);
    else
        options.rank = typed.whole("rank");
    if (!options.entry_bits && parsed.option("bits"))
        throw usage_error("\"{}\": bits= belongs to rank=rd: write {}:rank=rd:bits={}", parsed.text, parsed.name,
                          *parsed.option("bits"));
    if (const auto pilot = parsed.option("pilot")) {
        options.pilot_from_columns = *pilot == "d";
        if (*pilot != "p" && *pilot != "d") {
            const auto k = to_integer(*pilot);
            if (!k || *k < 1)
                throw usage_error(
                    "\"{}\": pilot \"{}\" is not possible: p (from the short side), d (from the columns) "
                    "or k itself, a whole number of at least 1",
                    parsed.text, *pilot);
            options.pilot = static_cast<std::size_t>(*k);
        }
    }
    if (const auto edge = typed.choice("edge", {"points", "fit"})) options.edge = static_cast<EdgeRule>(*edge);
    if (const auto factor = typed.number("factor")) options.factor = *factor;
    if (const auto power = typed.choice("power", {"1", "2"})) options.power = static_cast<int>(*power) + 1;
    if (const auto margin = typed.number("margin")) options.margin = margin;
    options.cap = typed.whole("cap");
    if (const auto rule = typed.choice("impute", {"none", "j", "j-1", "2r"}))
        options.imputation = static_cast<Imputation>(*rule);
    if (const auto mass = typed.choice("mass", {"rest", "side"})) options.mass_of_rest = *mass == 0;
    if (const auto clip = typed.choice("clip", {"yes", "no"})) options.clip = *clip == 0;
    return {parsed.text,
            [options](std::span<const double> singular_values, Shape shape) {
                return eoptshrink(singular_values, shape, options);
            },
            options.rank ? *options.rank + 1 : 0};
}

}  // namespace

EOptShrinkOptions EOptShrinkOptions::paper() {
    EOptShrinkOptions options;
    options.pilot_from_columns = true;
    options.power = 2;
    options.imputation = Imputation::from_j;
    options.mass_of_rest = false;
    return options;
}

EOptShrinkOptions EOptShrinkOptions::author() {
    EOptShrinkOptions options;
    options.factor = 1.1;
    options.margin = 0.0;
    options.imputation = Imputation::twice_rank;
    options.mass_of_rest = false;
    options.clip = false;
    return options;
}

EOptShrinkOptions EOptShrinkOptions::edge_fit() {
    EOptShrinkOptions options;
    options.edge = EdgeRule::fit;
    return options;
}

Shrinkage eoptshrink(std::span<const double> singular_values, Shape shape, const EOptShrinkOptions& asked) {
    const RelativeSpectrum spectrum(singular_values, shape);
    if (spectrum.unit == 0.0) return nothing_found("the block is zero or empty");
    EOptShrinkOptions options = asked;
    const std::vector<double>& lambda = spectrum.eigenvalues;
    const std::size_t p = spectrum.size();
    const std::size_t side = options.pilot_from_columns ? shape.columns : p;
    std::size_t k = options.pilot.value_or(theory::pilot_count(side));
    if (2 * k + 1 > p) k = (p - 1) / 2;
    if (k == 0) return nothing_found("too few singular values for an edge estimate (at least 3 are needed)");

    if (options.entry_bits) {
        options.rank = rate_distortion_rank(spectrum, *options.entry_bits);
        while (*options.rank > 0 && needed_values(*options.rank, k, options.imputation) > p) --*options.rank;
    }

    // Step 1: bulk edge and rank.
    const double margin = options.margin.value_or(std::pow(static_cast<double>(side), -1.0 / 3.0));
    Shrinkage result;
    double edge = 0.0;
    std::size_t rank = 0;
    const std::size_t bound = options.edge == EdgeRule::fit ? options.cap.value_or(2 * k) : k;
    if (options.edge == EdgeRule::fit) {
        EdgeFit fit = fit_edge(lambda, k, margin, bound);
        if (options.rank) fit = edge_behind(lambda, k, *options.rank);
        rank = fit.rank;
        edge = fit.edge;
    } else {
        const auto raised = [&](std::size_t i) {
            return options.power == 1 ? lambda[i] : std::pow(lambda[i], options.power);
        };
        const double raised_edge = raised(k) + options.factor * edge_extrapolation * (raised(k) - raised(2 * k));
        edge = options.power == 1 ? raised_edge : std::pow(raised_edge, 1.0 / options.power);
        while (rank < p && raised(rank) > (1.0 + margin) * raised_edge) ++rank;
    }
    if (!options.rank) result.note = more_than_bound(lambda, k, std::pow(static_cast<double>(p), -1.0 / 3.0), bound);
    if (edge == 0.0)
        return spectrum.unshrunk(options.rank.value_or(spectrum.above_rounding),
                                 "the block is exactly of low rank: nothing to shrink");
    result.bulk_edge = spectrum.eigenvalue(edge);
    if (options.rank) rank = std::min(*options.rank, p);
    const std::size_t needed = needed_values(rank, k, options.imputation);
    if (needed > p) {
        // Nothing is said about a block whose noise cannot be seen.
        result.note = fmt::format("rank {} leaves fewer than {} noise eigenvalues: set to 0", rank, needed - rank);
        return result;
    }

    // Step 2: the noise law. Imputed values reach beyond the outliers when the bulk has no square-root edge; then the
    // largest observed noise eigenvalue bounds them.
    std::vector<double> noise = noise_eigenvalues(spectrum, rank, k, options);
    if (options.clip && rank > 0 && noise[0] >= lambda[rank - 1])
        for (double& mu : noise) mu = std::min(mu, lambda[rank]);
    EmpiricalLaw law(noise, shape);
    if (!options.mass_of_rest) law.count = static_cast<double>(p);

    // Step 3: strengths, overlaps, shrunk values.
    for (std::size_t i = 0; i < rank; ++i) {
        OutlierEstimate outlier;
        double shrunk = 0.0;
        if (options.clip) {
            if (lambda[i] > noise[0]) outlier = estimate_outlier(law, shape, Eigenvalue{lambda[i]});
            shrunk = theory::shrink(outlier.strength, outlier.overlap_left, outlier.overlap_right, options.loss);
            shrunk = std::clamp(shrunk * spectrum.unit, 0.0, singular_values[i]);
        } else {
            const auto raw =
                unclipped(transforms_at(law, Eigenvalue{lambda[i]}), shape.rows <= shape.columns, options.loss);
            outlier = {raw[0], raw[1], raw[2]};
            shrunk = raw[3] * spectrum.unit;
        }
        result.strengths.push_back(outlier.strength * spectrum.unit);
        result.overlap_left.push_back(outlier.overlap_left);
        result.overlap_right.push_back(outlier.overlap_right);
        result.shrunk.push_back(shrunk);
    }
    result.rank = rank;
    for (double& mu : noise) mu *= spectrum.unit * spectrum.unit;
    result.noise_eigenvalues = std::move(noise);
    return result;
}

SpectralFamily eoptshrink_family() {
    return {{"eoptshrink",
             "optimal shrinkage under noise of unknown separable covariance, rank by the bulk edge",
             {":paper (the text taken literally: pilot=d power=2 impute=j mass=side)",
              ":author (the author's program: factor=1.1 margin=0 impute=2r mass=side clip=no)",
              ":edgefit (edge=fit: rank by a line through the top of the noise, sees up to 2k signals)",
              "rank=R (oracle rank) or rd (components that pay for their stored bits); default: by the edge",
              "bits=N (with rank=rd: of a stored entry, 1-8 or 16, default 4)", "pilot=p|d|K (default p)",
              "edge=points|fit (default points)", "factor=F (default 1)", "power=1|2 (of eigenvalues, default 1)",
              "margin=M (default p^(-1/3))", "cap=R (largest rank of edge=fit, default 2k)",
              "impute=none|j|j-1|2r (default j-1)", "mass=rest|side (default rest)", "clip=yes|no (default yes)"},
             "paper Algorithm 2, reference reading; Su & Wu 2022"},
            make};
}

}  // namespace spiked::estimators
