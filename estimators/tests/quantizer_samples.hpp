#pragma once
#include <gtest/gtest.h>

#include <armadillo>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <functional>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "core/runtime/error.hpp"
#include "estimators/quantizers/quantizer_table.hpp"
#include "sim/random/normal.hpp"

namespace spiked::estimators {

inline const stream::StudySeed test_seed = stream::StudySeed::parse("0x5eed");

/// Independent N(0, 1) entries, with a separate stream for every replicate.
template <class Real = double>
arma::Mat<Real> gaussian(std::size_t rows, std::size_t columns, std::uint64_t replicate) {
    arma::Mat<Real> matrix(rows, columns);
    stream::fill_normal(stream::Stream(test_seed, "quantizer test", stream::Role::noise, replicate),
                        std::span<Real>(matrix.memptr(), matrix.n_elem));
    return matrix;
}

inline double relative_error(const arma::mat& decoded, const arma::mat& block) {
    return arma::norm(decoded - block, "fro") / arma::norm(block, "fro");
}

inline arma::mat through(const RowQuantizer& quantizer, const arma::mat& rows) {
    return quantizer.decode(quantizer.encode(rows).bytes, rows.n_rows);
}

/// The message of the error that was thrown; fails unless the message is one line and the error is of this kind.
inline std::string message_of(const std::function<void()>& work, ErrorKind kind) {
    try {
        work();
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), kind) << error.what();
        EXPECT_EQ(std::string_view(error.what()).find('\n'), std::string_view::npos);
        return error.what();
    }
    ADD_FAILURE() << "nothing was thrown";
    return "";
}

/// Tests whether independent samples have this mean: Student's limit for a false-alarm rate of 1e-6, divided among
/// `tests` of them.
struct MeanTest {
    double deviation;  ///< mean - expected
    double limit;
    double mean;

    MeanTest(const arma::vec& samples, double expected, double tests) : mean(arma::mean(samples)) {
        const double count = static_cast<double>(samples.n_elem);
        const boost::math::students_t law(count - 1.0);
        limit = boost::math::quantile(boost::math::complement(law, 0.5e-6 / tests)) * arma::stddev(samples) /
                std::sqrt(count);
        deviation = mean - expected;
    }
    [[nodiscard]] bool agrees() const { return std::abs(deviation) <= limit; }
    /// The deviation that is detected with the same probability with which a false alarm is avoided.
    [[nodiscard]] double detectable() const { return 2.0 * limit; }
};

inline std::ostream& operator<<(std::ostream& out, const MeanTest& test) {
    return out << "mean " << test.mean << ", off by " << test.deviation << ", limit " << test.limit << ", detectable "
               << test.detectable();
}

}  // namespace spiked::estimators
