#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "estimators/compressors/compressor.hpp"
#include "theory/quantization/lloyd_max.hpp"
#include "validation/claims/parts/block_criteria.hpp"
#include "validation/claims/parts/fixture.hpp"
#include "validation/claims/parts/printed_tables.hpp"

// Claims on the costs and savings of compression in stored bits.

namespace spiked::validation {
namespace {

/// White noise and five components with the energies of the paper's tables for Llama: relative to the norm of a block
/// of keys, the residuals after one and after all components are .625 and .52 (for values .897 and .78).
Fixture calibrated_fixture(Side side, std::size_t size) {
    const std::vector<double> fractions = side == Side::key ? std::vector<double>{0.61, 0.055, 0.04, 0.02, 0.012}
                                                            : std::vector<double>{0.195, 0.07, 0.05, 0.045, 0.035};
    const double noise = 1.0 - std::accumulate(fractions.begin(), fractions.end(), 0.0);
    Fixture fixture = make_fixture({}, size);
    for (const double fraction : fractions)
        fixture.model.strengths.push_back({std::sqrt(fraction / noise * fixture.d())});
    return fixture;
}

Blocks calibrated(Side side) {
    return {fmt::format("{} as in the paper's tables", plural_of(side)),
            {{128, 60}},
            {{128, 400}},
            [=](const TrialPlace& place) -> BlockVisit {
                return [=, fixture = calibrated_fixture(side, place.size)](std::uint64_t replicate, const auto& visit) {
                    visit(fixture.decomposed(place, replicate).block);
                };
            }};
}

/// A trial that measures the mean over its blocks.
template <class OfBlock>
Trial mean_over(BlockVisit blocks, OfBlock of_block) {
    return [=, blocks = std::move(blocks)](std::uint64_t replicate) {
        double sum = 0.0;
        double count = 0.0;
        blocks(replicate, [&](estimators::AnalysedBlock& block) {
            sum += of_block(block, replicate);
            count += 1.0;
        });
        return sum / count;
    };
}

const estimators::MethodSpec& by_eoptshrink() {
    static const estimators::MethodSpec method = estimators::parse_method("eoptshrink+tq-mse");
    return method;
}

/// The result of one method on one block.
struct Coded : BitsAndError {
    std::size_t rank = 0;
};

Coded code(estimators::AnalysedBlock& block, const estimators::MethodSpec& method, unsigned bits,
           const TrialPlace& place, std::uint64_t replicate) {
    estimators::QuantizerOptions options;
    options.seed = place.seed;
    options.rotation_index = replicate;
    options.open_loop = place.control_is("open-loop");
    const arma::mat& x = block.block();
    const unsigned lost = place.control_is("bit-lost") ? 1 : 0;
    const estimators::Compressor compressor(method, x.n_cols, bits - lost, options);
    const auto encoded = compressor.encode(block);
    const arma::mat back = compressor.decode(encoded.encoded.bytes, x.n_rows);
    const double entries = static_cast<double>(x.n_elem);
    const double error = arma::norm(x - back, "fro") / arma::norm(x, "fro");
    return {{8.0 * static_cast<double>(encoded.encoded.bytes.size()) / entries + lost, error}, encoded.rank};
}

/// Bits per entry of the block that a low-rank part of this rank takes: 4 bits per entry of a singular vector, 16 bits
/// per singular value and for the rank.
double factor_bits(const estimators::AnalysedBlock& block, std::size_t rank) {
    const double n = static_cast<double>(block.block().n_rows);
    const double d = static_cast<double>(block.block().n_cols);
    return (static_cast<double>(rank) * (4.0 * (n + d) + 16.0) + 16.0) / (n * d);
}

/// Bits at which the line through two points of another method (log error against bits) reaches the given error.
double bits_for(double error, const BitsAndError& coarse, const BitsAndError& fine) {
    const double per_bit = std::log(coarse.error / fine.error) / (fine.bits - coarse.bits);
    return coarse.bits + std::log(coarse.error / error) / per_bit;
}

/// eoptshrink+tq-mse at 3 index bits with the control of the trial, and another method at 3 and 4 bits without it.
struct Comparison {
    Coded shrunk, coarse, fine;

    Comparison(estimators::AnalysedBlock& block, const estimators::MethodSpec& other, TrialPlace place,
               std::uint64_t replicate)
        : shrunk(code(block, by_eoptshrink(), 3, place, replicate)) {
        shrunk.bits -= place.fault_of("factors-not-counted") * factor_bits(block, shrunk.rank);
        place.control.clear();
        coarse = code(block, other, 3, place, replicate);
        fine = code(block, other, 4, place, replicate);
    }
    /// Bits per entry saved over the other method at the error of eoptshrink+tq-mse.
    [[nodiscard]] double saved() const { return bits_for(shrunk.error, coarse, fine) - shrunk.bits; }
};

/// The block with three equally strong directions that have 95 % of its energy: there a low-rank part of rank 3 saves
/// more than a bit, and rank 1 is too small.
arma::mat with_three_directions(const arma::mat& x) {
    arma::mat left, right;
    arma::vec values;
    arma::svd_econ(left, values, right, x);
    const double energy = arma::accu(arma::square(values));
    const double rest = arma::accu(arma::square(values.tail(values.n_elem - 3)));
    values.tail(values.n_elem - 3) *= std::sqrt(0.05 * energy / rest);
    values.head(3).fill(std::sqrt(0.95 * energy / 3.0));
    return left * arma::diagmat(values) * right.t();
}
const Control three_directions{"three-directions", "three equal directions with 95 % of the energy of each block"};

Trial saving_trial(const TrialPlace& place, const Blocks& blocks, const std::string& other_name) {
    const estimators::MethodSpec other = estimators::parse_method(other_name);
    return mean_over(blocks.prepare(place), [=](estimators::AnalysedBlock& block, std::uint64_t replicate) {
        const bool changed = place.control_is(three_directions.name);
        return Comparison(changed ? analysed(with_three_directions(block.block())) : block, other, place, replicate)
            .saved();
    });
}

/// A unit vector with entries rounded to the 4-bit Lloyd-Max levels of a normal law, the format of stored factors.
arma::vec rounded(const arma::vec& vector) {
    static const theory::Codebook codebook = theory::lloyd_max_normal(4);
    const double scale = std::sqrt(static_cast<double>(vector.n_elem));
    arma::vec nearest = vector;
    nearest.transform([&](double entry) {
        return *std::min_element(codebook.levels.begin(), codebook.levels.end(), [&](double a, double b) {
            return std::abs(a - entry * scale) < std::abs(b - entry * scale);
        }) / scale;
    });
    return nearest;
}

/// ||X - S^|| / ||X||, where S^ has the first components with rounded vectors. The vectors come from the block itself
/// and not from the decoded bytes, so that an error in the method cannot explain itself.
double left_over(estimators::AnalysedBlock& block, const estimators::MethodSpec& method, std::size_t rank) {
    if (!method.spectral || rank == 0) return 1.0;
    const auto shrinkage = method.spectral->estimate(block);
    const auto vectors = block.vectors(rank);
    arma::mat left = block.block();
    for (std::size_t i = 0; i < rank; ++i)
        left -= shrinkage.shrunk[i] * rounded(vectors.left.col(i)) * rounded(vectors.right.col(i)).t();
    return arma::norm(left, "fro") / arma::norm(block.block(), "fro");
}

/// The bits saved, minus the bits predicted from the removed energies and the bits of the factors.
Trial explained_trial(const TrialPlace& place, const Blocks& blocks, const std::string& other_name) {
    const estimators::MethodSpec other = estimators::parse_method(other_name);
    return mean_over(blocks.prepare(place), [=](estimators::AnalysedBlock& block, std::uint64_t replicate) {
        const Comparison found(block, other, place, replicate);
        const auto distortion = [&](int bits) {
            return theory::lloyd_max_sphere(static_cast<int>(block.block().n_cols), bits).distortion;
        };
        const double per_bit = 0.5 * std::log(distortion(3) / distortion(4));
        const double removed =
            left_over(block, other, found.coarse.rank) / left_over(block, by_eoptshrink(), found.shrunk.rank);
        // A method without a low-rank part does not store a rank.
        const double other_factors = other.spectral ? factor_bits(block, found.coarse.rank) : 0.0;
        const double more = factor_bits(block, found.shrunk.rank) - other_factors;
        return found.saved() - (std::log(removed) / per_bit - more);
    });
}

/// The largest saving of the printed eOptShrinkQ values over another method of the tables. Without `factors`, the bits
/// of eOptShrinkQ beyond the index bits, those of its factors, are not counted.
double largest_printed_saving(const BitsAndError (PrintedTable::*other)[3], bool factors) {
    double largest = -100.0;
    for (const auto& table : printed_tables)
        for (std::size_t i = 0; i < std::size(table.shrunk); ++i) {
            const auto& row = table.*other;
            BitsAndError shrunk = table.shrunk[i];
            if (!factors) shrunk.bits = std::floor(shrunk.bits);
            const std::size_t from = shrunk.error > row[1].error ? 0 : 1;
            largest = std::max(largest, bits_for(shrunk.error, row[from], row[from + 1]) - shrunk.bits);
        }
    return largest;
}

Criterion printed_saving(Form form, const BitsAndError (PrintedTable::*other)[3], std::string_view name,
                         AcceptanceRegion region) {
    const std::vector<Control> changes{
        only_whole({"factors-not-counted", "the bits of the factors left out of the count"})};
    const bool printed = form == Form::printed;
    return {.form = form,
            .name = printed ? "printed-tables" : "printed-tables-equal-bits",
            .measures = fmt::format("bits an entry saved over {} at equal error, largest in the paper's Tables 1 to 4, "
                                    "printed bits",
                                    name),
            .summary = Summary::mean,
            .prepare = [=](const TrialPlace& place) -> Trial {
                const bool factors = !place.control_is("factors-not-counted");
                return [=](std::uint64_t) { return largest_printed_saving(other, factors); };
            },
            .region = [=](std::size_t) { return region; },
            .quick = {{128, 2}},
            .full = {},
            .negative_controls = printed ? std::vector<Control>{} : changes,
            .positive_controls = printed ? changes : std::vector<Control>{},
            .reach = 0.0};
}

const Control only_rank_1{"rank-1", "rank 1 itself in its place"};

/// The largest ratio of the errors of eOptShrinkQ and of rank 1 at equal index bits in the tables.
Criterion printed_error_ratio() {
    return {.form = Form::printed,
            .name = "printed-tables",
            .measures =
                "error of eOptShrinkQ over that of rank 1 at equal index bits, largest in the paper's Tables 1 to 4",
            .summary = Summary::mean,
            .prepare = [](const TrialPlace& place) -> Trial {
                double largest = 0.0;
                for (const auto& table : printed_tables)
                    for (std::size_t i = 0; i < std::size(table.shrunk); ++i) {
                        const auto& shrunk = place.control_is(only_rank_1.name) ? table.first[i] : table.shrunk[i];
                        largest = std::max(largest, shrunk.error / table.first[i].error);
                    }
                return [=](std::uint64_t) { return largest; };
            },
            .region = [](std::size_t) { return at_most(0.95); },
            .quick = {{128, 2}},
            .full = {},
            .negative_controls = {only_whole(only_rank_1)},
            .reach = 0.0};
}

const FaultSize norms_left_out{16.0, "bits a row", 0.0, "{} bits a row left out of the count"};
const Control norms_not_counted = linear({"norms-not-counted", "one norm a row left out of the count", norms_left_out});

/// Stored bits per entry minus a formula in the size and the rank.
template <class Formula>
Criterion counted(Form form, std::string name, const std::string& method_name, Formula formula,
                  std::vector<Control> negative_controls, std::vector<Control> positive_controls = {}) {
    return {.form = form,
            .name = std::move(name),
            .measures =
                fmt::format("stored bits an entry of {} minus the formula, 2 index bits, blocks of keys", method_name),
            .summary = Summary::mean,
            .prepare = [=](const TrialPlace& place) -> Trial {
                return [=, method = estimators::parse_method(method_name),
                        fixture = calibrated_fixture(Side::key, place.size)](std::uint64_t replicate) {
                    estimators::AnalysedBlock& block = fixture.decomposed(place, replicate).block;
                    const Coded coded = code(block, method, 2, place, replicate);
                    const double size = static_cast<double>(place.size);
                    const auto rank = static_cast<double>(coded.rank);
                    const double missing = place.fault_of("norms-not-counted") * 16.0 / size;
                    return coded.bits - missing - formula(size, rank);
                };
            },
            // The margin allows for padding to a whole byte.
            .region = [](std::size_t size) { return around(0.0, 8.0 / static_cast<double>(size * size)); },
            .quick = {{128, 20}},
            .full = {{64, 50}, {128, 50}},
            .negative_controls = std::move(negative_controls),
            .positive_controls = std::move(positive_controls),
            .reach = 0.0};
}

}  // namespace

std::string plural_of(Side side) { return fmt::format("{}s", sim::side_name(side)); }

Criterion bits_saved(Form form, std::string name, const Blocks& blocks, std::string other, AcceptanceRegion region) {
    const bool printed = form == Form::printed;
    return {.form = form,
            .name = std::move(name),
            .measures = fmt::format("bits an entry that eoptshrink+tq-mse saves over {} at equal error, all stored "
                                    "bits counted, {}",
                                    other, blocks.description),
            .summary = Summary::mean,
            .prepare = [=](const TrialPlace& place) { return saving_trial(place, blocks, other); },
            .region = [=](std::size_t) { return region; },
            .quick = blocks.quick,
            .full = blocks.full,
            .negative_controls = printed ? std::vector<Control>{} : std::vector<Control>{three_directions},
            .positive_controls = printed ? std::vector<Control>{three_directions} : std::vector<Control>{}};
}

Criterion error_at_equal_index_bits(std::string_view name, const Blocks& blocks) {
    return {.form = Form::printed,
            .name = fmt::format("{}-at-2-bits", name),
            .measures = fmt::format("error of eoptshrink+tq-mse over that of svd:1+tq-mse, 2 index bits each, {}",
                                    blocks.description),
            .summary = Summary::mean,
            .prepare =
                [=](const TrialPlace& place) {
                    const estimators::MethodSpec by_rank_1 = estimators::parse_method("svd:1+tq-mse");
                    return mean_over(blocks.prepare(place),
                                     [=](estimators::AnalysedBlock& block, std::uint64_t replicate) {
                                         constexpr unsigned bits = 2;
                                         const bool same = place.control_is(only_rank_1.name);
                                         // Another rotation, so that the control is no constant.
                                         return code(block, same ? by_rank_1 : by_eoptshrink(), bits, place,
                                                     replicate + (same ? 1000000 : 0))
                                                    .error /
                                                code(block, by_rank_1, bits, place, replicate).error;
                                     });
                },
            .region = [](std::size_t) { return at_most(0.95); },
            .quick = blocks.quick,
            .full = blocks.full,
            .negative_controls = {only_rank_1}};
}

Criterion bits_explained(std::string_view name, const Blocks& blocks, std::string other) {
    return {.form = Form::corrected,
            .name = fmt::format("explained-{}", name),
            .measures = fmt::format("bits saved over {} minus log(rho) / log(error of a bit) less the bits of the "
                                    "factors, {}",
                                    other, blocks.description),
            .summary = Summary::mean,
            .prepare = [=](const TrialPlace& place) { return explained_trial(place, blocks, other); },
            .region = [=](std::size_t) { return around(0.0, blocks.unexplained); },
            .quick = blocks.quick,
            .full = blocks.full,
            .negative_controls = blocks.negative_controls};
}

std::vector<Claim> compression_claims() {
    const std::string adaptive = "eoptshrink+tq-mse";
    const Blocks keys = calibrated(Side::key);
    const Blocks values = calibrated(Side::value);
    Blocks keys_of_savings = keys;  // the bits saved on keys vary most, and to one side
    keys_of_savings.quick = {{128, 700}};
    return {
        {.id = "bits.formula",
         .place = "paper, Algorithms 1 and 3",
         .statement = "tq-prod takes b + 1 + 16/d bits an entry, eOptShrinkQ b + r (n + d) b_s / (nd) beside norms and "
                      "singular values, which are named apart",
         .plain = {"The stored bits are those of the formulas.", "bits an entry above the formula, tq-prod",
                   "printed-prod"},
         .corrected = "tq-prod stores two norms, b + 1 + 32/d; eOptShrinkQ also the norms of the residual, r singular "
                      "values and the rank, which cancel only against methods that store as much",
         .expected_verdict = PrintedVerdict::refuted,
         .refuted_as = ClaimKind::misprint,
         .note =
             "Algorithm 1 stores two norms for tq-prod and counts one; no table counts norms. eOptShrinkQ stores "
             ".1309 of a bit more than its formula at d = 128: .125 for the norms, which the paper names apart, and "
             ".0059 for singular values and the rank",
         .criteria = {counted(Form::printed, "printed-prod", "tq-prod", [](double d, double) { return 3.0 + 16.0 / d; },
                              {}, {norms_not_counted}),
                      counted(Form::corrected, "stored-prod", "tq-prod",
                              [](double d, double) { return 3.0 + 32.0 / d; }, {norms_not_counted}),
                      counted(Form::corrected, "stored-shrunk", adaptive,
                              [](double d, double rank) {
                                  return 2.0 + 16.0 / d + (16.0 + rank * (16.0 + 2.0 * d * 4.0)) / (d * d);
                              },
                              {linear({"norms-not-counted", "the norms of the residual left out of the count",
                                       norms_left_out})})}},
        {.id = "one-bit-saved",
         .place = "paper, abstract and Section 4.1",
         .statement = "eOptShrinkQ saves nearly one bit an entry over TurboQuant at equal quality",
         .plain = {"The method saves nearly one bit an entry.", "bits saved at equal error, keys", "keys"},
         .corrected = "it saves log(||X|| / ||R||) over the logarithm a bit is worth, less the bits of the factors: "
                      ".65 to .78 of a bit on keys, about .1 on values",
         .expected_verdict = PrintedVerdict::refuted,
         .refuted_as = ClaimKind::overstated,
         .note =
             "the cut at .85 of a bit decides. On keys the paper itself reports .65 (3.35 bits against 4.00, Section "
             "4.1) and .78 (3.22 against 4.00, conclusion); its tables give .64 to .72 at equal error on keys and "
             ".06 to .09 on values",
         .criteria = {printed_saving(Form::printed, &PrintedTable::one, "TurboQuant", nearly_one),
                      bits_saved(Form::printed, "keys", keys_of_savings, "tq-mse", nearly_one),
                      bits_saved(Form::printed, "values", values, "tq-mse", nearly_one),
                      bits_explained("keys", keys_of_savings, "tq-mse"), bits_explained("values", values, "tq-mse")}},
        {.id = "adaptive-rank",
         .place = "paper, Section 4.1",
         .statement = "automatic rank selection improves on rank 1 at the same index bits b",
         .plain = {"Choosing the rank from the data is better than rank 1, at equal index bits.",
                   "error over that of rank 1, keys", "keys-at-2-bits"},
         .corrected = "at equal stored bits, which is our comparison, it saves what the energy of the further "
                      "components is worth less the bits of their factors: under a tenth of a bit",
         .note =
             "the paper compares at equal b, where the further components cost nothing, and calls the rule "
             "essential; in its tables they save .01 of a bit at most at equal stored bits. The cut at .95 decides on "
             "dumps: an error above .95 of that of rank 1 counts as no improvement",
         .criteria = {error_at_equal_index_bits("keys", keys), error_at_equal_index_bits("values", values),
                      printed_error_ratio(),
                      bits_saved(Form::corrected, "keys-at-equal-bits", keys, "svd:1+tq-mse", at_most(0.1)),
                      bits_saved(Form::corrected, "values-at-equal-bits", values, "svd:1+tq-mse", at_most(0.1)),
                      printed_saving(Form::corrected, &PrintedTable::first, "rank 1", at_most(0.1)),
                      bits_explained("keys", keys, "svd:1+tq-mse"), bits_explained("values", values, "svd:1+tq-mse")}},
    };
}

}  // namespace spiked::validation
