#include "sim/spiked/variance_profile.hpp"

#include <gtest/gtest.h>

#include <string>

#include "core/files/tests/scratch.hpp"
#include "sim/io/npy.hpp"

namespace spiked::sim {
namespace {

TEST(VarianceProfile, BlocksAndTheirWeightsAreRead) {
    const ProfileSpec spec = parse_profile("blocks:1,4,0.5/9,0.3,2:columns=0.2,0.5,0.3:rows=0.3,0.7");
    EXPECT_EQ(spec.classes.rows, 2U);
    EXPECT_EQ(spec.classes.columns, 3U);
    EXPECT_EQ(spec.classes.variances, (std::vector<double>{1.0, 4.0, 0.5, 9.0, 0.3, 2.0}));
    EXPECT_EQ(spec.classes.row_weights, (std::vector<double>{0.3, 0.7}));
    EXPECT_EQ(spec.classes.column_weights, (std::vector<double>{0.2, 0.5, 0.3}));
    EXPECT_TRUE(spec.path.empty());
    EXPECT_TRUE(parse_profile("blocks:1,4").classes.row_weights.empty());
}

TEST(VarianceProfile, ConsecutiveLinesBelongToTheClassesInProportion) {
    // 10 rows in classes of .3 and .7; 7 columns in thirds, whose cumulative numbers 2.33 and 4.67 are rounded.
    const ProfileSpec spec = parse_profile("blocks:1,2,3/4,5,6:rows=0.3,0.7");
    const theory::VarianceProfile profile = profile_of_size(spec, 10, 7);
    EXPECT_EQ(profile.row_weights, (std::vector<double>{0.3, 0.7}));
    EXPECT_EQ(profile.column_weights, (std::vector<double>{2.0 / 7.0, 3.0 / 7.0, 2.0 / 7.0}));
    const arma::mat variances = entry_variances(profile, 10, 7);
    const arma::rowvec above = {1, 1, 2, 2, 2, 3, 3};
    for (arma::uword i = 0; i < 10; ++i)
        for (arma::uword j = 0; j < 7; ++j) EXPECT_EQ(variances(i, j), above(j) + (i < 3 ? 0.0 : 3.0)) << i << ' ' << j;
}

TEST(VarianceProfile, AFileHoldsTheVarianceOfEveryEntry) {
    const ScratchFolder scratch;
    const arma::mat variances = {{1.0, 2.0, 3.0}, {4.0, 5.0, 6.0}};
    write_npy(scratch.path("s.npy"), variances);
    const ProfileSpec spec = parse_profile("file:" + scratch.path("s.npy"));
    EXPECT_EQ(spec.path, scratch.path("s.npy"));
    EXPECT_EQ(spec.classes.variances, (std::vector<double>{1.0, 2.0, 3.0, 4.0, 5.0, 6.0}));
    EXPECT_TRUE(arma::approx_equal(entry_variances(profile_of_size(spec, 2, 3), 2, 3), variances, "absdiff", 0.0));
    expect_error(ErrorKind::usage, [&] { (void)profile_of_size(spec, 3, 2); },
                 {"s.npy holds 2 x 3 variances (the block is 3 x 2)"});
    expect_error(ErrorKind::input, [&] { (void)parse_profile("file:" + scratch.path("none.npy")); }, {"none.npy"});
}

TEST(VarianceProfileBadInput, IllegalTexts) {
    const auto fails = [](const std::string& spec, std::initializer_list<std::string_view> parts) {
        expect_error(
            ErrorKind::usage, [&] { (void)profile_of_size(parse_profile(spec), 10, 10); }, parts);
    };
    fails("", {"not of a known kind"});
    fails("ar1:0.5", {"not of a known kind", "blocks:1,4/9,0.3"});
    fails("file:", {"name no file"});
    fails("blocks", {"have 0 lists of variances"});
    fails("blocks:1,2:3,4", {"have 2 lists of variances"});
    fails("blocks:1,x", {"\"x\" is not a number"});
    fails("blocks:1,2/3", {"have 2 and 1 variances"});
    fails("blocks:1,2:row=1", {"no option \"row\""});
    fails("blocks:1,2:rows=0.5,0.5", {"the 2 weights of rows sum to 1 (there are 1 classes)"});
    fails("blocks:1,2:columns=0.5,0.6", {"sum to 1.1"});
    fails("blocks:1,2:columns=0.99,0.01", {"a class of weight 0.01 has none of 10 columns"});
    fails("blocks:1,2:columns=1.5,-0.5", {"a class of weight 1.5"});
}

}  // namespace
}  // namespace spiked::sim
