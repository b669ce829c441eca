#include "validation/trials/host_checks.hpp"

#include <gtest/gtest.h>

namespace spiked::validation {
namespace {

TEST(HostChecks, PassOnThisMachine) {
    EXPECT_TRUE(check_product().passed) << check_product().detail;
    EXPECT_TRUE(check_decomposition().passed) << check_decomposition().detail;
}

TEST(HostChecksControl, OneWrongEntryOfAProductIsFound) {
    const ParityCheck found = check_product([](const arma::mat& a, const arma::mat& b) {
        arma::mat product = a * b;
        product(130, 66) += 1e-9;
        return product;
    });
    EXPECT_FALSE(found.passed);
    EXPECT_NE(found.detail.find("by at most 1.0e-09 (allowed 1e-11)"), std::string::npos) << found.detail;
}

}  // namespace
}  // namespace spiked::validation
