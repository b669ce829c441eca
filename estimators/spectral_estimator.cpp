#include "estimators/spectral_estimator.hpp"

#include <algorithm>
#include <limits>

#include "estimators/eoptshrink.hpp"
#include "theory/base/names.hpp"

namespace spiked::estimators {
namespace {

std::size_t parse_rank(const std::string& text, const ParsedName& parsed) {
    const auto rank = to_integer(text);
    if (!rank || *rank < 0)
        throw usage_error("\"{}\": rank \"{}\" is not a whole number of at least 0: write for example {}:1",
                          parsed.text, text, parsed.name);
    return static_cast<std::size_t>(*rank);
}

void refuse_unknown_options(const ParsedName& parsed, const std::vector<std::string>& legal) {
    for (const auto& [key, value] : parsed.options) {
        const std::string name = key;
        if (std::count_if(parsed.options.begin(), parsed.options.end(),
                          [&](const auto& o) { return o.first == name; }) > 1)
            throw usage_error("\"{}\": {} is given twice: give it once", parsed.text, name);
    }
    for (const auto& [key, value] : parsed.options)
        if (std::find(legal.begin(), legal.end(), key) == legal.end())
            throw usage_error("\"{}\": {} has no option \"{}\"{}", parsed.text, parsed.name, key,
                              legal.empty() ? std::string("; it takes none") : suggestion(key, legal));
}

SpectralEstimator make_eoptshrink(const ParsedName& parsed, theory::Loss loss) {
    refuse_unknown_options(parsed, {"rank", "pilot", "margin", "impute"});
    if (!parsed.values.empty())
        throw usage_error(
            "\"{}\": this version has no reading \"{}\" of eoptshrink (only the reference): write eoptshrink",
            parsed.text, parsed.values.front());
    EOptShrinkOptions options{.loss = loss};
    if (const auto rank = parsed.option("rank")) options.rank = parse_rank(*rank, parsed);
    if (const auto pilot = parsed.option("pilot")) {
        if (*pilot != "p" && *pilot != "d")
            throw usage_error("\"{}\": pilot is p (from the short side) or d (from the columns), not \"{}\"",
                              parsed.text, *pilot);
        options.pilot_from_columns = *pilot == "d";
    }
    if (const auto margin = parsed.option("margin")) {
        options.margin = to_number(*margin);
        if (!options.margin || *options.margin < 0.0)
            throw usage_error("\"{}\": margin \"{}\" is not a number of at least 0", parsed.text, *margin);
    }
    if (const auto impute = parsed.option("impute")) {
        const std::vector<std::string> rules = {"none", "j", "j-1"};
        const auto rule = std::find(rules.begin(), rules.end(), *impute);
        if (rule == rules.end())
            throw usage_error("\"{}\": impute is none, j or j-1, not \"{}\"", parsed.text, *impute);
        options.imputation = static_cast<Imputation>(rule - rules.begin());
    }
    return {parsed.text, [options](std::span<const double> singular_values, Shape shape) {
                return eoptshrink(singular_values, shape, options);
            }};
}

SpectralEstimator make_truncated_svd(const ParsedName& parsed, theory::Loss) {
    refuse_unknown_options(parsed, {});
    if (parsed.values.size() != 1)
        throw usage_error("\"{}\": a truncated SVD needs its rank: write for example svd:1", parsed.text);
    const std::size_t wanted = parse_rank(parsed.values.front(), parsed);
    return {parsed.text, [wanted](std::span<const double> singular_values, Shape) {
                Shrinkage result;
                result.rank = std::min(wanted, singular_values.size());
                const auto end = singular_values.begin() + static_cast<std::ptrdiff_t>(result.rank);
                result.shrunk.assign(singular_values.begin(), end);
                const std::vector<double> unknown(result.rank, std::numeric_limits<double>::quiet_NaN());
                result.strengths = result.overlap_left = result.overlap_right = unknown;
                return result;
            }};
}

struct Maker {
    EstimatorEntry entry;
    SpectralEstimator (*make)(const ParsedName&, theory::Loss);
};

const std::vector<Maker>& makers() {
    static const std::vector<Maker> table = {
        {{"eoptshrink",
          "optimal shrinkage under noise of unknown separable covariance, rank by the bulk edge",
          {"rank=R (oracle rank; default: by the edge)", "pilot=p|d (default p)", "margin=M (default p^(-1/3))",
           "impute=none|j|j-1 (default j-1)"},
          "paper Algorithm 2, reference reading; Su & Wu 2022"},
         make_eoptshrink},
        {{"svd",
          "truncated SVD at the given rank, values kept as they are",
          {":R (rank, required)"},
          "Eckart & Young 1936"},
         make_truncated_svd},
    };
    return table;
}

}  // namespace

const std::vector<EstimatorEntry>& spectral_estimators() {
    static const std::vector<EstimatorEntry> entries = [] {
        std::vector<EstimatorEntry> all;
        for (const auto& maker : makers()) all.push_back(maker.entry);
        return all;
    }();
    return entries;
}

SpectralEstimator spectral_estimator(std::string_view name, theory::Loss loss) {
    const ParsedName parsed = parse_name(name);
    std::vector<std::string> names;
    for (const auto& maker : makers()) {
        if (maker.entry.name == parsed.name) return maker.make(parsed, loss);
        names.push_back(maker.entry.name);
    }
    throw usage_error("unknown spectral estimator \"{}\"{}", parsed.name, suggestion(parsed.name, names));
}

}  // namespace spiked::estimators
