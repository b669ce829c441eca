#include "validation/kv/block_adequacy.hpp"

#include <algorithm>
#include <cmath>
#include <span>

#include "core/runtime/error.hpp"
#include "core/runtime/parallel.hpp"
#include "estimators/svd/analysed_block.hpp"
#include "estimators/svd/batch_decomposition.hpp"
#include "sim/random/element_engine.hpp"
#include "sim/random/haar.hpp"
#include "sim/random/normal.hpp"
#include "theory/laws/finite_size.hpp"
#include "validation/kv/adequacy_null.hpp"
#include "validation/kv/block_statistics.hpp"

namespace spiked::validation {
namespace {

using estimators::Shape;
using stream::Role;
using stream::Stream;

constexpr std::size_t most_references = 32;
constexpr std::size_t splits = 2;
constexpr std::size_t loss_draws = 16;

enum Test : std::size_t {
    edge_shape,
    others_top,
    others_spectrum,
    halves_rank,
    halves_edge,
    peak_rows,
    peak_vectors,
    left_columns,
    left_rows,
    signal_columns,
    signal_rows,
    test_count
};

/// A uniform whole number below a bound.
std::size_t below(stream::ElementEngine& engine, std::size_t bound) {
    return static_cast<std::size_t>(std::uint64_t{engine()} * bound >> 32);
}

template <class Swap>
void shuffle(const Stream& stream, std::uint32_t element, std::size_t count, Swap swap) {
    stream::ElementEngine engine(stream, element);
    for (std::size_t i = count; i > 1; --i) swap(i - 1, below(engine, i));
}

/// Permutes the entries within each column at random.
arma::mat shuffled_columns(arma::mat matrix, const Stream& stream) {
    for (arma::uword j = 0; j < matrix.n_cols; ++j) {
        double* column = matrix.colptr(j);
        shuffle(stream, static_cast<std::uint32_t>(j), matrix.n_rows,
                [=](std::size_t a, std::size_t b) { std::swap(column[a], column[b]); });
    }
    return matrix;
}

/// Decomposes draws of one shape in batches.
class Decomposer {
public:
    explicit Decomposer(Shape shape) : engine_(shape) {}

    using Take = std::function<void(std::size_t draw, std::size_t place, estimators::BatchDecomposition<double>&)>;
    void operator()(std::size_t count, const std::function<arma::mat(std::size_t)>& make, const Take& take) {
        constexpr std::size_t lanes = estimators::BatchDecomposition<double>::lanes;
        for (std::size_t first = 0; first < count; first += lanes) {
            const std::size_t batch = std::min(lanes, count - first);
            entries_.clear();
            for (std::size_t place = 0; place < batch; ++place) {
                const arma::mat block = make(first + place);
                entries_.insert(entries_.end(), block.begin(), block.end());
            }
            engine_.decompose(entries_);
            for (std::size_t place = 0; place < batch; ++place) take(first + place, place, engine_);
        }
    }

private:
    estimators::BatchDecomposition<double> engine_;
    std::vector<double> entries_;
};

struct Halves {
    double rank_gap = 0.0;  ///< mean over splits of the absolute difference of the two ranks
    double edge_gap = 0.0;  ///< mean over splits of the absolute difference of the logarithms of the two edges
    double rank = 0.0;
};

/// Splits the rows at random into halves and analyses each half separately.
Halves halves_of(const arma::mat& block, const Stream& stream, Decomposer& decompose) {
    const arma::uword half = block.n_rows / 2;
    std::vector<arma::mat> parts;
    for (std::uint32_t split = 0; split < splits; ++split) {
        arma::uvec order = arma::regspace<arma::uvec>(0, block.n_rows - 1);
        shuffle(stream, split, order.n_elem, [&](std::size_t a, std::size_t b) { std::swap(order(a), order(b)); });
        parts.push_back(block.rows(order.head(half)));
        parts.push_back(block.rows(order.subvec(half, 2 * half - 1)));
    }
    std::vector<BlockSpectrum> found(parts.size());
    decompose(
        parts.size(), [&](std::size_t i) { return parts[i]; },
        [&](std::size_t i, std::size_t place, auto& engine) {
            found[i] = analyse_spectrum(engine.singular_values(place), {half, block.n_cols});
        });
    const auto edge = [](const BlockSpectrum& of) {
        return of.shrinkage.bulk_edge ? of.shrinkage.bulk_edge->value : 0.0;
    };
    Halves halves;
    for (std::size_t split = 0; split < splits; ++split) {
        const auto& a = found[2 * split];
        const auto& b = found[2 * split + 1];
        const double ra = static_cast<double>(a.shrinkage.rank);
        const double rb = static_cast<double>(b.shrinkage.rank);
        halves.rank_gap += std::abs(ra - rb) / static_cast<double>(splits);
        halves.rank += (ra + rb) / (2.0 * static_cast<double>(splits));
        // A half without noise has edge 0, which gives an infinite distance to a half with noise.
        if (edge(a) != edge(b)) halves.edge_gap += std::abs(std::log(edge(a) / edge(b))) / static_cast<double>(splits);
    }
    return halves;
}

/// A block of the head with the results that need no draws.
struct Prepared {
    arma::mat block;
    arma::mat residual;
    BlockSpectrum spectrum;
    double vector_peak = 0.0;
    std::string skipped;
};

Prepared prepare(const arma::mat& block) {
    Prepared prepared{.block = block};
    estimators::AnalysedBlock data(block, estimators::AnalysedBlock::EmptyLines::keep);
    const auto& values = data.singular_values();
    prepared.spectrum = analyse_spectrum(values, data.shape());
    const auto& shrinkage = prepared.spectrum.shrinkage;
    const std::size_t noise_end =
        std::min(values.size(), shrinkage.rank + 2 * theory::pilot_count(data.shape().short_side()));
    if (values.front() == 0.0)
        prepared.skipped = "zero";
    else if (!shrinkage.bulk_edge || !(values[noise_end - 1] > 1e-12 * values.front()))
        prepared.skipped = "no noise: exactly of low rank";
    if (!prepared.skipped.empty()) return prepared;
    prepared.residual = data.residual(shrinkage.shrunk);
    const auto vectors = data.vectors(std::min(shrinkage.rank + edge_vectors(data.shape()), values.size()));
    prepared.vector_peak = vector_peak(vectors.left, vectors.right, shrinkage.rank);
    return prepared;
}

/// The other blocks of the head to which the null law is fitted: at most most_references, evenly spaced.
std::vector<const Prepared*> others_of(const std::vector<Prepared>& head, std::size_t block) {
    std::vector<const Prepared*> chosen;
    for (std::size_t other = 0; other < head.size(); ++other)
        if (other != block && head[other].skipped.empty()) chosen.push_back(&head[other]);
    std::vector<const Prepared*> references(std::min(chosen.size(), most_references));
    for (std::size_t i = 0; i < references.size(); ++i) references[i] = chosen[i * chosen.size() / references.size()];
    return references;
}

std::vector<const arma::mat*> residuals_of(const std::vector<const Prepared*>& blocks) {
    std::vector<const arma::mat*> residuals;
    for (const Prepared* block : blocks) residuals.push_back(&block->residual);
    return residuals;
}

/// Tests one block against its null laws.
class Judge {
public:
    Judge(const std::vector<Prepared>& head, std::size_t block, const AdequacyDraws& draws)
        : at_(head[block]),
          block_(block),
          draws_(draws),
          shape_{at_.block.n_rows, at_.block.n_cols},
          references_(others_of(head, block)),
          law_(residuals_of(references_)),
          whole_(shape_),
          half_({shape_.rows / 2, shape_.columns}) {}

    BlockAdequacy judge() {
        found_.rank = at_.spectrum.shrinkage.rank;
        found_.p_values.assign(test_count, std::numeric_limits<double>::quiet_NaN());
        undo_loss();
        against_others();
        against_regular();
        for (const bool rows : {false, true}) {
            against_shuffled(at_.residual, at_.spectrum.residual.front(), rows, "left",
                             rows ? left_rows : left_columns);
            against_shuffled(at_.block, at_.spectrum.eigenvalues.front(), rows, "signal",
                             rows ? signal_rows : signal_columns);
        }
        return found_;
    }

private:
    [[nodiscard]] Stream stream(const char* purpose, Role role, std::size_t draw) const {
        return {draws_.seed, draws_.cell + " " + purpose, role, std::uint64_t{block_} << 32 | draw};
    }
    [[nodiscard]] arma::mat gaussian(const char* purpose, std::size_t draw) const {
        arma::mat entries(shape_.rows, shape_.columns);
        stream::fill_normal(stream(purpose, Role::noise, draw), {entries.memptr(), entries.n_elem});
        return entries;
    }
    /// A signal with the estimated strengths and random vectors.
    [[nodiscard]] arma::mat signal(const char* purpose, std::size_t draw) const {
        const auto& strengths = at_.spectrum.shrinkage.strengths;
        const std::size_t rank = strengths.size();
        return stream::haar_frame(stream(purpose, Role::left_vectors, draw), shape_.rows, rank) *
               arma::diagmat(arma::vec(strengths)) *
               stream::haar_frame(stream(purpose, Role::right_vectors, draw), shape_.columns, rank).t();
    }
    void decide(Test test, double observed, const std::vector<double>& null) {
        const auto extreme = std::count_if(null.begin(), null.end(), [&](double drawn) { return drawn >= observed; });
        found_.p_values[test] = static_cast<double>(1 + extreme) / static_cast<double>(1 + null.size());
    }
    void undo_loss();
    void against_others();
    void against_regular();
    void against_shuffled(const arma::mat& matrix, double top, bool rows, const std::string& of, Test test);

    const Prepared& at_;
    std::size_t block_;
    const AdequacyDraws& draws_;
    Shape shape_;
    std::vector<const Prepared*> references_;
    ResidualLaw law_;
    Decomposer whole_;
    Decomposer half_;
    BlockAdequacy found_;
};

/// Subtracting estimated components also removes noise, most of it from the channels with the largest variance. The law
/// is corrected for the variance that draws lose in this way.
void Judge::undo_loss() {
    arma::rowvec kept(shape_.columns, arma::fill::zeros);
    double drawn = 0.0;
    for (std::size_t draw = 0; draw < loss_draws; ++draw) {
        const Prepared lossy = prepare(law_.draw(gaussian("loss", draw)) + signal("loss", draw));
        if (!lossy.skipped.empty()) continue;
        kept += arma::mean(arma::square(lossy.residual), 0);
        drawn += 1.0;
    }
    if (drawn > 0.0) law_.restore(kept / drawn);
}

void Judge::against_others() {
    const std::size_t count = draws_.count;
    std::vector<double> peaks(count), vector_peaks(count), rank_gaps(count), edge_gaps(count);
    std::vector<std::vector<double>> drawn(count);
    whole_(
        count,
        [&](std::size_t draw) {
            const arma::mat noise = law_.draw(gaussian("others", draw));
            peaks[draw] = peak_of(noise);
            const arma::mat block = noise + signal("others", draw);
            const Halves halves = halves_of(block, stream("halves", Role::resampling, draw + 1), half_);
            rank_gaps[draw] = halves.rank_gap;
            edge_gaps[draw] = halves.edge_gap;
            return block;
        },
        [&](std::size_t draw, std::size_t place, auto& engine) {
            const BlockSpectrum spectrum = analyse_spectrum(engine.singular_values(place), shape_);
            drawn[draw] = spectrum.residual;
            const std::size_t rank = spectrum.shrinkage.rank;
            arma::mat left, right;
            engine.leading_vectors(place, std::min(rank + edge_vectors(shape_), shape_.short_side()), &left, &right);
            vector_peaks[draw] = vector_peak(left, right, rank);
        });

    // Each draw is compared with the following draws, as the block is with the other blocks.
    std::vector<double> tops, distances;
    for (std::size_t draw = 0; draw < count; ++draw) {
        std::vector<const std::vector<double>*> next;
        for (std::size_t i = 1; i <= std::min(references_.size(), count - 1); ++i)
            next.push_back(&drawn[(draw + i) % count]);
        const auto [top, spectrum] = distance_from_others(drawn[draw], next);
        tops.push_back(top);
        distances.push_back(spectrum);
    }
    std::vector<const std::vector<double>*> spectra;
    for (const auto* other : references_) spectra.push_back(&other->spectrum.residual);
    const auto observed = distance_from_others(at_.spectrum.residual, spectra);
    decide(others_top, observed.top, tops);
    decide(others_spectrum, observed.spectrum, distances);

    const Halves halves = halves_of(at_.block, stream("halves", Role::resampling, 0), half_);
    found_.half_rank = halves.rank;
    decide(halves_rank, halves.rank_gap, rank_gaps);
    decide(halves_edge, halves.edge_gap, edge_gaps);

    const double peak = peak_of(at_.residual);
    const double n = static_cast<double>(shape_.rows);
    const double d = static_cast<double>(shape_.columns);
    found_.peak_over_bound = peak / std::sqrt(2.0 * law_.unevenness * std::log(n * d) / d);
    decide(peak_rows, peak, peaks);
    decide(peak_vectors, at_.vector_peak, vector_peaks);
}

void Judge::against_regular() {
    const arma::rowvec deviations =
        regular_deviations(at_.spectrum.residual, shape_.rows, shape_.columns, law_.correlation);
    std::vector<double> null(draws_.count);
    whole_(
        draws_.count,
        [&](std::size_t draw) {
            arma::mat block = gaussian("regular", draw);
            correlate_rows(block, law_.correlation);
            block.each_row() %= deviations;
            return arma::mat(block + signal("regular", draw));
        },
        [&](std::size_t draw, std::size_t place, auto& engine) {
            const BlockSpectrum spectrum = analyse_spectrum(engine.singular_values(place), shape_);
            null[draw] = edge_shape_of(spectrum.eigenvalues, spectrum.shrinkage.rank).power_advantage;
        });
    const EdgeShape shape = edge_shape_of(at_.spectrum.eigenvalues, at_.spectrum.shrinkage.rank);
    found_.power_advantage = shape.power_advantage;
    found_.exponent = shape.exponent;
    decide(edge_shape, shape.power_advantage, null);
}

void Judge::against_shuffled(const arma::mat& matrix, double top, bool rows, const std::string& of, Test test) {
    std::vector<double> null(draws_.count);
    const std::string purpose = of + (rows ? " rows" : " columns");
    const arma::mat transposed = rows ? arma::mat(matrix.t()) : arma::mat();
    whole_(
        draws_.count,
        [&](std::size_t draw) {
            const Stream order = stream(purpose.c_str(), Role::resampling, draw);
            return rows ? arma::mat(shuffled_columns(transposed, order).t()) : shuffled_columns(matrix, order);
        },
        [&](std::size_t draw, std::size_t place, auto& engine) {
            null[draw] = std::pow(engine.singular_values(place).front(), 2);
        });
    decide(test, top, null);
}

}  // namespace

const std::vector<AdequacyTest>& adequacy_tests() {
    static const std::vector<AdequacyTest> tests = {
        {"edge.shape", "the top of the noise falls more like a power law than under regular noise", true},
        {"others.top", "the largest eigenvalue of the residual is not that of the other blocks' law", true},
        {"others.spectrum", "the residual's spectrum is far from that of the other blocks (Kolmogorov distance)", true},
        {"halves.rank", "random halves of the rows differ more in rank", true},
        {"halves.edge", "random halves of the rows differ more in edge", true},
        {"peak.rows", "a row of the residual has a larger coordinate, relative to its norm", true},
        {"peak.vectors", "a vector at the edge of the residual has a larger coordinate", true},
        {"left.columns", "the residual's top exceeds that of its entries permuted within columns", false},
        {"left.rows", "the residual's top exceeds that of its entries permuted within rows", false},
        {"signal.columns", "the block's top exceeds that of its entries permuted within columns", false},
        {"signal.rows", "the block's top exceeds that of its entries permuted within rows", false},
    };
    return tests;
}

std::vector<BlockAdequacy> judge_head(const std::vector<arma::mat>& blocks, const AdequacyDraws& draws) {
    if (blocks.size() < 2 || std::min(blocks.front().n_rows, blocks.front().n_cols) < smallest_judged_side)
        throw input_error(
            "{} blocks of a head cannot be judged (2 or more are needed, of {} rows and columns at least): dump more "
            "tokens",
            blocks.size(), smallest_judged_side);
    std::vector<Prepared> head(blocks.size());
    for_each_parallel(blocks.size(), draws.threads, [&](std::size_t b) { head[b] = prepare(blocks[b]); });
    const auto usable =
        std::count_if(head.begin(), head.end(), [](const auto& block) { return block.skipped.empty(); });
    std::vector<BlockAdequacy> found(blocks.size());
    for_each_parallel(blocks.size(), draws.threads, [&](std::size_t b) {
        found[b].skipped = head[b].skipped;
        if (found[b].skipped.empty() && usable < 2) found[b].skipped = "no other block of the head to compare with";
        if (found[b].skipped.empty()) found[b] = Judge(head, b, draws).judge();
    });
    return found;
}

}  // namespace spiked::validation
