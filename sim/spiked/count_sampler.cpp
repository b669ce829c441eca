#include "sim/spiked/count_sampler.hpp"

#include <algorithm>
#include <boost/random/exponential_distribution.hpp>
#include <boost/random/gamma_distribution.hpp>
#include <boost/random/normal_distribution.hpp>
#include <boost/random/poisson_distribution.hpp>
#include <cmath>
#include <cstdint>

#include "core/runtime/error.hpp"
#include "sim/random/element_engine.hpp"

namespace spiked::sim {
namespace {

void require_between(double value, double least, double most, const char* what) {
    if (!(value >= least && value <= most))
        throw usage_error("the {} of counts is {} (it must be from {} to {}): correct it", what, value, least, most);
}

/// Exponential factors times the depth of each line.
arma::mat positive_factors(const stream::Stream& stream, std::size_t size, std::size_t components, double spread) {
    arma::mat factors(size, components);
    for (std::size_t i = 0; i < size; ++i) {
        stream::ElementEngine engine(stream, static_cast<std::uint32_t>(i));
        const double depth = std::exp(spread * boost::random::normal_distribution<double>()(engine));
        for (std::size_t k = 0; k < components; ++k)
            factors(i, k) = depth * boost::random::exponential_distribution<double>()(engine);
    }
    return factors;
}

}  // namespace

arma::mat draw_counts(const arma::mat& means, double dispersion, const stream::Stream& stream) {
    require_between(dispersion, 0.0, 100.0, "dispersion");
    arma::mat counts(means.n_rows, means.n_cols);
    for (arma::uword e = 0; e < means.n_elem; ++e) {
        require_between(means(e), 0.0, 1e12, "mean");
        stream::ElementEngine engine(stream, static_cast<std::uint32_t>(e));
        double mean = means(e);
        if (dispersion > 0.0) mean *= boost::random::gamma_distribution<double>(1.0 / dispersion, dispersion)(engine);
        counts(e) =
            mean > 0.0 ? static_cast<double>(boost::random::poisson_distribution<std::int64_t>(mean)(engine)) : 0.0;
    }
    return counts;
}

void require_possible(const CountModel& model) {
    if (model.components == 0 || model.components > std::min(model.rows, model.columns))
        throw usage_error("counts of {} components do not fit a {} x {} block: give from 1 to {}", model.components,
                          model.rows, model.columns, std::min(model.rows, model.columns));
    require_between(model.mean, 1e-9, 1e6, "mean");
    require_between(model.row_spread, 0.0, 3.0, "row spread");
    require_between(model.column_spread, 0.0, 3.0, "column spread");
    require_between(model.dispersion, 0.0, 100.0, "dispersion");
}

CountSample sample_counts(const CountModel& model, const stream::StudySeed& seed, std::string_view cell,
                          std::uint64_t replicate) {
    using stream::Role;
    using stream::Stream;
    require_possible(model);
    CountSample result;
    result.means = positive_factors(Stream(seed, cell, Role::left_vectors, replicate), model.rows, model.components,
                                    model.row_spread) *
                   positive_factors(Stream(seed, cell, Role::right_vectors, replicate), model.columns, model.components,
                                    model.column_spread)
                       .t();
    result.means *= model.mean / arma::mean(arma::vectorise(result.means));
    result.observed = draw_counts(result.means, model.dispersion, Stream(seed, cell, Role::noise, replicate));
    return result;
}

}  // namespace spiked::sim
