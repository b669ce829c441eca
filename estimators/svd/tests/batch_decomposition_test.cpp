// The fast decomposition against LAPACK in double: values, orthogonality and residuals for spectra of every kind, in
// both precisions and with every instruction set that this processor has.
#include "estimators/svd/batch_decomposition.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <string>

#include "core/runtime/error.hpp"
#include "estimators/svd/decomposition.hpp"
#include "sim/random/normal.hpp"

namespace spiked::estimators {
namespace {

using Random = std::mt19937_64;

std::size_t any_of(Random& random, std::size_t low, std::size_t high) {
    return std::uniform_int_distribution<std::size_t>(low, high)(random);
}

arma::mat random_gaussian(Random& random, std::size_t rows, std::size_t columns) {
    arma::mat matrix(rows, columns);
    const stream::Stream entries({}, "batch decomposition", stream::Role::noise, random());
    stream::fill_normal(entries, std::span<double>(matrix.memptr(), matrix.n_elem));
    return matrix;
}

arma::mat orthonormal(Random& random, std::size_t rows, std::size_t columns) {
    arma::mat q;
    arma::mat r;
    arma::qr_econ(q, r, random_gaussian(random, rows, columns));
    return q;
}

arma::mat with_spectrum(Random& random, std::size_t rows, std::size_t columns, const arma::vec& spectrum) {
    return orthonormal(random, rows, spectrum.n_elem) * arma::diagmat(spectrum) *
           orthonormal(random, columns, spectrum.n_elem).t();
}

using Make = arma::mat (*)(Random&, std::size_t rows, std::size_t columns);

/// The kinds of blocks in the tests.
const std::pair<const char*, Make> kinds[] = {
    {"gaussian", [](Random& random, std::size_t n, std::size_t d) { return random_gaussian(random, n, d); }},
    {"spiked",
     [](Random& random, std::size_t n, std::size_t d) {
         const std::size_t rank = std::min<std::size_t>({3, n, d});
         const arma::vec strengths(rank, arma::fill::value(100.0));
         return arma::mat(random_gaussian(random, n, d) / std::sqrt(static_cast<double>(d)) +
                          with_spectrum(random, n, d, strengths));
     }},
    {"geometric",
     [](Random& random, std::size_t n, std::size_t d) {
         const double ratio = std::pow(10.0, -0.1 * static_cast<double>(any_of(random, 1, 30)));
         arma::vec spectrum(std::min(n, d));
         for (arma::uword i = 0; i < spectrum.n_elem; ++i) spectrum(i) = std::pow(ratio, i);
         return with_spectrum(random, n, d, spectrum);
     }},
    {"clustered",
     [](Random& random, std::size_t n, std::size_t d) {
         const double gap = std::pow(10.0, -static_cast<double>(any_of(random, 3, 17)));
         arma::vec spectrum(std::min(n, d));
         for (arma::uword i = 0; i < spectrum.n_elem; ++i)
             spectrum(i) = (i % 3 == 0 ? 1.0 : 0.5) + gap * static_cast<double>(i);
         return with_spectrum(random, n, d, spectrum);
     }},
    {"orthogonal",
     [](Random& random, std::size_t n, std::size_t d) {
         return with_spectrum(random, n, d, arma::vec(std::min(n, d), arma::fill::ones));
     }},
    {"low rank",
     [](Random& random, std::size_t n, std::size_t d) {
         const std::size_t rank = any_of(random, 1, std::min(n, d));
         return arma::mat(random_gaussian(random, n, rank) * random_gaussian(random, rank, d));
     }},
    {"small integers of low rank",
     [](Random& random, std::size_t n, std::size_t d) {
         const std::size_t rank = any_of(random, 1, std::min<std::size_t>({n, d, 4}));
         return arma::mat(arma::round(random_gaussian(random, n, rank)) *
                          arma::round(random_gaussian(random, rank, d)));
     }},
    {"diagonal",
     [](Random& random, std::size_t n, std::size_t d) {
         arma::mat block(n, d);
         block.diag() = arma::round(2.0 * random_gaussian(random, std::min(n, d), 1));
         return block;
     }},
    {"bidiagonal that splits",
     [](Random& random, std::size_t n, std::size_t d) {
         arma::mat block(n, d);
         block.diag() = random_gaussian(random, std::min(n, d), 1);
         for (arma::uword i = 0; i + 1 < std::min(n, d); ++i) block(i, i + 1) = i % 3 == 0 ? 0.0 : 1.0;
         return block;
     }},
    {"equal blocks on the diagonal",
     [](Random& random, std::size_t n, std::size_t d) {
         arma::mat block(n, d);
         const arma::mat part = random_gaussian(random, 2, 2);
         for (arma::uword i = 0; i + 2 <= std::min(n, d); i += 2) block.submat(i, i, i + 1, i + 1) = part;
         return block;
     }},
    {"one hidden small value",
     [](Random& random, std::size_t n, std::size_t d) {
         arma::vec spectrum(std::min(n, d), arma::fill::ones);
         for (arma::uword i = 0; i < spectrum.n_elem; ++i) spectrum(i) += 0.1 * static_cast<double>(i);
         spectrum(spectrum.n_elem - 1) = 1e-9;
         return with_spectrum(random, n, d, spectrum);
     }},
    {"zero rows and columns",
     [](Random& random, std::size_t n, std::size_t d) {
         arma::mat block = random_gaussian(random, n, d);
         for (arma::uword i = 0; i < n; ++i)
             if (any_of(random, 0, 2) == 0) block.row(i).zeros();
         block.col(any_of(random, 0, d - 1)).zeros();
         return block;
     }},
    {"ones", [](Random&, std::size_t n, std::size_t d) { return arma::mat(n, d, arma::fill::ones); }},
    {"zero", [](Random&, std::size_t n, std::size_t d) { return arma::mat(n, d); }},
};

/// Largest errors, relative to the largest singular value where they have a scale.
struct Errors {
    double values = 0.0;          ///< over the short side
    double leading_values = 0.0;  ///< relative, of the first 16 values above a fourth of the first one
    double orthogonality = 0.0;
    double residual = 0.0;

    void widen(const Errors& other) {
        values = std::max(values, other.values);
        leading_values = std::max(leading_values, other.leading_values);
        orthogonality = std::max(orthogonality, other.orthogonality);
        residual = std::max(residual, other.residual);
    }
};

Errors value_errors(std::span<const double> values, const std::vector<double>& expected) {
    Errors errors;
    const double scale = expected[0] == 0.0 ? 1.0 : expected[0];
    for (std::size_t i = 0; i < expected.size(); ++i) {
        const double error = std::abs(values[i] - expected[i]);
        errors.values = std::max(errors.values, error / scale);
        if (i < 16 && expected[i] > 0.25 * expected[0])
            errors.leading_values = std::max(errors.leading_values, error / expected[i]);
        if (!(values[i] >= 0.0) || (i > 0 && values[i] > values[i - 1])) errors.values = INFINITY;
    }
    return errors;
}

Errors vector_errors(const arma::mat& block, std::span<const double> values, const arma::mat& left,
                     const arma::mat& right) {
    Errors errors;
    if (left.n_cols == 0) return errors;
    const double scale = values[0] == 0.0 ? 1.0 : values[0];
    const arma::mat identity(left.n_cols, left.n_cols, arma::fill::eye);
    errors.orthogonality =
        std::max(arma::abs(left.t() * left - identity).max(), arma::abs(right.t() * right - identity).max());
    const arma::rowvec s(const_cast<double*>(values.data()), left.n_cols, false);
    const arma::mat missing_left = block * right - left.each_row() % s;
    const arma::mat missing_right = block.t() * left - right.each_row() % s;
    errors.residual = std::max(std::sqrt(arma::sum(arma::square(missing_left / scale), 0).max()),
                               std::sqrt(arma::sum(arma::square(missing_right / scale), 0).max()));
    if (!std::isfinite(arma::accu(left) + arma::accu(right))) errors.residual = INFINITY;
    return errors;
}

/// The bounds of batch_decomposition.hpp.
template <class Real>
Errors bounds(Shape shape) {
    if (sizeof(Real) == 4) return {1e-6 + 4e-9 * static_cast<double>(shape.long_side()), 1e-6, 5e-6, 5e-6};
    return {1e-12 * static_cast<double>(shape.short_side()), 1e-12, 1e-12, 1e-12};
}

bool within(const Errors& errors, const Errors& limits) {
    return errors.values <= limits.values && errors.leading_values <= limits.leading_values &&
           errors.orthogonality <= limits.orthogonality && errors.residual <= limits.residual;
}

std::string text(const Errors& errors) {
    return fmt::format("values {:.1e}, leading values {:.1e}, orthogonality {:.1e}, residual {:.1e}", errors.values,
                       errors.leading_values, errors.orthogonality, errors.residual);
}

std::vector<Instructions> instruction_sets() {
    std::vector<Instructions> found;
    for (const Instructions wanted : {Instructions::generic, Instructions::avx2, Instructions::avx512}) try {
            const BatchDecomposition<float> decomposition({2, 2}, wanted);
            found.push_back(wanted);
        } catch (const Error&) {
        }
    return found;
}

template <class Real>
std::vector<Real> side_by_side(const std::vector<arma::mat>& blocks) {
    std::vector<Real> entries;
    for (const arma::mat& block : blocks)
        for (const double x : block) entries.push_back(static_cast<Real>(x));
    return entries;
}

struct Batch {
    std::vector<arma::mat> blocks;
    std::vector<std::vector<double>> expected;
    std::vector<const char*> kinds;
    std::size_t wanted = 0;
};

/// Largest errors for each kind of block.
using Found = std::map<std::string, Errors>;

template <class Real>
void judge(const Batch& batch, Instructions instructions, Found& found) {
    const Shape shape{batch.blocks[0].n_rows, batch.blocks[0].n_cols};
    BatchDecomposition<Real> decomposition(shape, instructions);
    decomposition.decompose(side_by_side<Real>(batch.blocks));
    ASSERT_EQ(decomposition.count(), batch.blocks.size());
    for (std::size_t i = 0; i < batch.blocks.size(); ++i) {
        arma::Mat<Real> left;
        arma::Mat<Real> right;
        decomposition.leading_vectors(i, batch.wanted, &left, &right);
        const auto values = decomposition.singular_values(i);
        Errors errors = value_errors(values, batch.expected[i]);
        errors.widen(vector_errors(batch.blocks[i], values, arma::conv_to<arma::mat>::from(left),
                                   arma::conv_to<arma::mat>::from(right)));
        found[batch.kinds[i]].widen(errors);
        EXPECT_TRUE(within(errors, bounds<Real>(shape)))
            << batch.kinds[i] << ", " << shape.rows << " x " << shape.columns << ", " << batch.wanted << " vectors, "
            << decomposition.instructions() << ", " << sizeof(Real) << " bytes: " << text(errors);
    }
}

/// Blocks of random kinds. Entries are rounded to float, so that both precisions decompose the same block.
Batch random_batch(Random& random, Shape shape, std::size_t count, std::size_t wanted) {
    Batch batch;
    batch.wanted = wanted;
    for (std::size_t i = 0; i < count; ++i) {
        const auto& [name, make] = kinds[any_of(random, 0, std::size(kinds) - 1)];
        const arma::mat block = make(random, shape.rows, shape.columns);
        batch.kinds.push_back(name);
        batch.blocks.push_back(arma::conv_to<arma::mat>::from(arma::conv_to<arma::fmat>::from(block)));
        batch.expected.push_back(singular_values(batch.blocks.back()));
    }
    return batch;
}

template <class Real>
void report(const char* precision, const Found& found) {
    for (const auto& [kind, errors] : found) std::cout << precision << ", " << kind << ": " << text(errors) << '\n';
}

TEST(BatchDecompositionReference, TenThousandBlocksOfAnyShapeAndSpectrumAgreeWithLapack) {
    Random random(20);
    Found in_double;
    Found in_float;
    const auto paths = instruction_sets();
    std::size_t blocks = 0;
    for (int round = 0; blocks < 10'000; ++round) {
        const std::size_t most = round % 100 == 0 ? 200 : round % 10 == 0 ? 64 : 24;
        const Shape shape{any_of(random, 1, most), any_of(random, 1, most)};
        const std::size_t p = shape.short_side();
        const std::size_t wanted = round % 5 == 0 ? p : any_of(random, 0, std::min<std::size_t>(p, 16));
        const Batch batch = random_batch(random, shape, any_of(random, 1, 18), wanted);
        blocks += batch.blocks.size();
        for (const Instructions path : paths) {
            judge<double>(batch, path, in_double);
            judge<float>(batch, path, in_float);
        }
        if (HasFailure()) break;
    }
    report<double>("double", in_double);
    report<float>("float", in_float);
}

TEST(BatchDecompositionReference, LargeBlocksAgreeWithLapack) {
    Random random(21);
    Found in_double;
    Found in_float;
    for (const Shape shape : {Shape{128, 128}, Shape{256, 256}, Shape{500, 130}, Shape{96, 1024}, Shape{512, 512}}) {
        const Batch batch = random_batch(random, shape, 3, 16);
        judge<double>(batch, Instructions::best, in_double);
        judge<float>(batch, Instructions::best, in_float);
    }
    Batch batch = random_batch(random, {1024, 1024}, 0, 16);
    batch.kinds.push_back("gaussian");
    batch.blocks.push_back(
        arma::conv_to<arma::mat>::from(arma::conv_to<arma::fmat>::from(random_gaussian(random, 1024, 1024))));
    batch.expected.push_back(singular_values(batch.blocks[0]));
    judge<double>(batch, Instructions::best, in_double);
    judge<float>(batch, Instructions::best, in_float);
    report<double>("double", in_double);
    report<float>("float", in_float);
}

TEST(BatchDecompositionReference, FloatKeepsSixDigitsOfTheFirstSixteenValuesBesideStrongSpikes) {
    Random random(26);
    for (const Shape shape : {Shape{128, 128}, Shape{256, 128}, Shape{64, 64}, Shape{128, 32}})
        for (const double strength : {3.0, 20.0, 100.0}) {
            const auto [n, d] = shape;
            const arma::mat noise = random_gaussian(random, n, d) / std::sqrt(static_cast<double>(d));
            const arma::vec strengths{strength, 0.8 * strength, 0.5 * strength};
            const auto block = arma::conv_to<arma::fmat>::from(noise + with_spectrum(random, n, d, strengths));
            const auto expected = singular_values(arma::conv_to<arma::mat>::from(block));
            for (const Instructions path : instruction_sets()) {
                BatchDecomposition<float> decomposition(shape, path);
                decomposition.decompose({block.memptr(), block.n_elem});
                for (std::size_t i = 0; i < 16; ++i)
                    EXPECT_NEAR(decomposition.singular_values(0)[i], expected[i], 1e-6 * expected[i])
                        << n << " x " << d << ", strength " << strength << ", value " << i;
            }
        }
}

template <class Real>
void judge_scale(double scale) {
    Random random(22);
    Batch batch = random_batch(random, {31, 20}, 12, 8);
    for (arma::mat& block : batch.blocks)
        for (double& x : block) x = static_cast<double>(static_cast<Real>(x * scale));
    for (std::size_t i = 0; i < batch.blocks.size(); ++i) {
        // LAPACK gets the block scaled back, which is exact for powers of two.
        arma::mat& block = batch.blocks[i];
        block /= scale;
        batch.expected[i] = singular_values(block);
        block *= scale;
        for (double& s : batch.expected[i]) s *= scale;
    }
    Found found;
    for (const Instructions path : instruction_sets()) judge<Real>(batch, path, found);
}

TEST(BatchDecompositionReference, HugeAndTinyBlocksAgreeWithLapack) {
    judge_scale<double>(0x1p500);  // 3e150
    judge_scale<double>(0x1p-500);
    judge_scale<double>(0x1p1015);
    judge_scale<double>(0x1p-1030);  // denormal
    judge_scale<float>(0x1p100F);    // 1e30
    judge_scale<float>(0x1p-100F);
    judge_scale<float>(0x1p-135F);  // denormal
}

template <class Real>
void expect_same(const arma::Mat<Real>& a, const arma::Mat<Real>& b) {
    ASSERT_EQ(arma::size(a), arma::size(b));
    EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin()));
}

template <class Real>
void judge_independence(Instructions path) {
    Random random(23);
    for (const Shape shape : {Shape{40, 33}, Shape{20, 50}, Shape{128, 128}, Shape{3, 3}}) {
        const Batch batch = random_batch(random, shape, 37, std::min<std::size_t>(8, shape.short_side()));
        const auto entries = side_by_side<Real>(batch.blocks);
        const std::size_t one = shape.rows * shape.columns;
        BatchDecomposition<Real> in_batch(shape, path);
        BatchDecomposition<Real> alone(shape, path);
        in_batch.decompose(entries);
        for (std::size_t i = 0; i < batch.blocks.size(); ++i) {
            alone.decompose(std::span(entries).subspan(i * one, one));
            const auto a = in_batch.singular_values(i);
            const auto b = alone.singular_values(0);
            EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin(), b.end())) << batch.kinds[i];
            arma::Mat<Real> left[2];
            arma::Mat<Real> right[2];
            in_batch.leading_vectors(i, batch.wanted, &left[0], &right[0]);
            alone.leading_vectors(0, batch.wanted, &left[1], &right[1]);
            expect_same(left[0], left[1]);
            expect_same(right[0], right[1]);
        }
    }
}

TEST(BatchDecompositionIdentity, TheResultsOfABlockAreBitIdenticalInAnyBatch) {
    for (const Instructions path : instruction_sets()) {
        judge_independence<double>(path);
        judge_independence<float>(path);
    }
}

TEST(BatchDecompositionIdentity, VectorsOfOneSideEqualThoseOfBothSides) {
    Random random(24);
    for (const Shape shape : {Shape{30, 40}, Shape{60, 30}}) {  // the second shape goes through its Gram matrix
        const arma::mat block = random_gaussian(random, shape.rows, shape.columns);
        BatchDecomposition<double> decomposition(shape);
        decomposition.decompose({block.memptr(), block.n_elem});
        arma::mat left;
        arma::mat right;
        arma::mat left_alone;
        arma::mat right_alone;
        decomposition.leading_vectors(0, 5, &left, &right);
        decomposition.leading_vectors(0, 5, &left_alone, nullptr);
        decomposition.leading_vectors(0, 5, nullptr, &right_alone);
        expect_same(left, left_alone);
        expect_same(right, right_alone);
    }
}

TEST(BatchDecompositionIdentity, EarlierRequestsDoNotChangeVectors) {
    Random random(25);
    // The values are so close that vectors are made orthogonal, and so far apart that LAPACK is not needed.
    const arma::mat block = arma::eye(80, 80) + 1e-4 * random_gaussian(random, 80, 80);
    BatchDecomposition<double> reused({80, 80});
    reused.decompose({block.memptr(), block.n_elem});
    for (const std::size_t wanted : {1, 12, 20, 3}) {
        BatchDecomposition<double> fresh({80, 80});
        fresh.decompose({block.memptr(), block.n_elem});
        arma::mat left[2];
        arma::mat right[2];
        reused.leading_vectors(0, wanted, &left[0], &right[0]);
        fresh.leading_vectors(0, wanted, &left[1], &right[1]);
        expect_same(left[0], left[1]);
        expect_same(right[0], right[1]);
    }
}

TEST(BatchDecomposition, BestIsTheWidestInstructionSetOfTheProcessor) {
    std::string widest;
    for (const Instructions path : instruction_sets()) widest = BatchDecomposition<float>({2, 2}, path).instructions();
    EXPECT_EQ(BatchDecomposition<float>({2, 2}).instructions(), widest);
    EXPECT_EQ(BatchDecomposition<double>({2, 2}).instructions(), widest);
    EXPECT_STREQ(BatchDecomposition<float>({2, 2}, Instructions::generic).instructions(), "generic");
}

template <class Real>
void expect_rejected(Real wrong, std::size_t rows, std::size_t columns) {
    for (const Instructions path : instruction_sets())
        for (std::size_t at = 0; at < rows * columns; ++at) {
            std::vector<Real> entries(3 * rows * columns, Real(1));
            entries[2 * rows * columns + at] = wrong;
            BatchDecomposition<Real> decomposition({rows, columns}, path);
            try {
                decomposition.decompose(entries);
                FAIL() << "accepted at " << at;
            } catch (const Error& error) {
                EXPECT_NE(std::string(error.what()).find("block 2 "), std::string::npos) << error.what();
            }
            EXPECT_EQ(decomposition.count(), 0U);
        }
}

TEST(BatchDecomposition, NanAndInfinityAreRejectedAndTheirBlockIsNamed) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    for (const double wrong : {std::nan(""), infinity, -infinity}) {
        expect_rejected<double>(wrong, 7, 9);
        expect_rejected<float>(static_cast<float>(wrong), 7, 9);
    }
}

TEST(BatchDecomposition, ZeroVectorsAndEmptyBatchesAreAllowed) {
    BatchDecomposition<double> decomposition({4, 3});
    decomposition.decompose({});
    EXPECT_EQ(decomposition.count(), 0U);
    const std::vector<double> entries(12, 1.0);
    decomposition.decompose(entries);
    arma::mat left;
    arma::mat right;
    decomposition.leading_vectors(0, 0, &left, &right);
    EXPECT_EQ(arma::size(left), arma::size(4, 0));
    EXPECT_EQ(arma::size(right), arma::size(3, 0));
    EXPECT_THROW(decomposition.leading_vectors(0, 4, &left, &right), Error);
    EXPECT_THROW((void)decomposition.singular_values(1), Error);
    EXPECT_THROW(BatchDecomposition<double>({0, 3}), Error);
}

TEST(BatchDecomposition, ValuesDescendWhereEqualOnesAreComputedInTwoWays) {
    // At a thousandth of the largest value, bisection replaces QL on squares.
    Random random(26);
    arma::vec spectrum(64, arma::fill::ones);
    spectrum(0) = 1000.0;
    BatchDecomposition<double> decomposition({64, 64});
    for (int t = 0; t < 30; ++t) {
        const arma::mat block = with_spectrum(random, 64, 64, spectrum);
        decomposition.decompose({block.memptr(), block.n_elem});
        const auto found = decomposition.singular_values(0);
        EXPECT_TRUE(std::is_sorted(found.begin(), found.end(), std::greater<>()));
        EXPECT_TRUE(within(value_errors(found, singular_values(block)), bounds<double>({64, 64})));
    }
}

TEST(BatchDecomposition, AllVectorsOfTwoClustersAreOrthonormal) {
    // LAPACK's divide and conquer leaves errors of 1e-11 in some of these blocks, and fails for others.
    Random random(27);
    arma::vec spectrum(35);
    for (arma::uword i = 0; i < 35; ++i) spectrum(i) = i < 18 ? 1.0 : 1e-8;
    BatchDecomposition<double> decomposition({35, 58});
    for (int t = 0; t < 60; ++t) {
        const arma::mat block = arma::round(with_spectrum(random, 35, 58, spectrum) / 5e-13) * 5e-13;
        decomposition.decompose({block.memptr(), block.n_elem});
        arma::mat left;
        arma::mat right;
        decomposition.leading_vectors(0, 35, &left, &right);
        const Errors errors = vector_errors(block, decomposition.singular_values(0), left, right);
        EXPECT_TRUE(within(errors, bounds<double>({35, 58}))) << text(errors);
    }
}

TEST(BatchDecompositionControl, TheErrorMeasuresDetectAWrongValueAndAWrongVector) {
    Random random(25);
    const arma::mat block = random_gaussian(random, 30, 20);
    BatchDecomposition<double> decomposition({30, 20});
    decomposition.decompose({block.memptr(), block.n_elem});
    arma::mat left;
    arma::mat right;
    decomposition.leading_vectors(0, 6, &left, &right);
    const auto found = decomposition.singular_values(0);
    const auto expected = singular_values(block);
    const Errors limits = bounds<double>({30, 20});
    EXPECT_TRUE(within(value_errors(found, expected), limits));
    EXPECT_TRUE(within(vector_errors(block, found, left, right), limits));

    std::vector<double> values(found.begin(), found.end());
    values[19] += 3e-11 * values[0];
    EXPECT_FALSE(within(value_errors(values, expected), limits));
    arma::mat perturbed = right;
    perturbed.col(3) += 1e-11 * right.col(2);
    EXPECT_FALSE(within(vector_errors(block, found, left, perturbed), limits));
    perturbed = right;
    perturbed.col(0) *= -1.0;
    EXPECT_FALSE(within(vector_errors(block, found, left, perturbed), limits));
}

}  // namespace
}  // namespace spiked::estimators
