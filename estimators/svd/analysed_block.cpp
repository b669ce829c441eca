#include "estimators/svd/analysed_block.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <type_traits>

#include "core/runtime/stop_point.hpp"
#include "estimators/svd/batch_decomposition.hpp"

namespace spiked::estimators {
namespace {

/// Blocks with a longer short side are decomposed one by one, and always in double.
constexpr std::size_t longest_in_batches = 1024;

arma::mat scatter_rows(const arma::mat& vectors, const arma::uvec& kept, std::size_t length) {
    arma::mat full(length, vectors.n_cols);
    full.rows(kept) = vectors;
    return full;
}

/// The rows and the columns that have other entries than zeros. Once every row is known to have one, a column is read
/// to its first entry only.
std::pair<arma::uvec, arma::uvec> lines_with_entries(const arma::mat& block) {
    const auto is_entry = [](double number) { return number != 0.0; };
    arma::uvec row_has(block.n_rows, arma::fill::zeros);
    arma::uvec column_has(block.n_cols, arma::fill::zeros);
    arma::uword rows = 0;
    for (arma::uword j = 0; j < block.n_cols; ++j) {
        const double* const column = block.colptr(j);
        if (rows == block.n_rows) {
            column_has(j) = std::any_of(column, column + block.n_rows, is_entry);
            continue;
        }
        for (arma::uword i = 0; i < block.n_rows; ++i)
            if (is_entry(column[i])) {
                column_has(j) = 1;
                rows += 1 - row_has(i);
                row_has(i) = 1;
            }
    }
    return {arma::find(row_has), arma::find(column_has)};
}

arma::uvec all_of(arma::uword count) { return count == 0 ? arma::uvec() : arma::regspace<arma::uvec>(0, 1, count - 1); }

}  // namespace

/// Decomposition of the cores of blocks of one shape, computed when a result is first requested.
class AnalysedBlock::Decomposition {
public:
    virtual ~Decomposition() = default;
    /// Results for the block that was put at index `at`, or for the only one, which is read when it is decomposed.
    [[nodiscard]] virtual std::vector<double> values(std::size_t at, const AnalysedBlock& block) = 0;
    [[nodiscard]] virtual SingularVectors vectors(std::size_t at, const AnalysedBlock& block, std::size_t count) = 0;

    template <class Real>
    class In;
};

template <class Real>
class AnalysedBlock::Decomposition::In final : public Decomposition {
public:
    In(Shape shape, std::size_t count, std::size_t threads)
        : shape_(shape),
          threads_(threads),
          cores_(count == 1 ? 0 : shape.rows * shape.columns * count, arma::fill::none) {}

    void put(std::size_t at, const AnalysedBlock& block) {
        if (cores_.is_empty()) return;
        Real* const to = cores_.memptr() + at * shape_.rows * shape_.columns;
        if (block.complete())
            copy(block.block_, to);
        else
            copy(block.core(), to);
    }
    [[nodiscard]] std::vector<double> values(std::size_t at, const AnalysedBlock& block) override {
        const auto found = batch(block).singular_values(at);
        std::vector<double> values(found.begin(), found.end());
        // Estimators allow for the rounding of double only: rounding errors of float must not look like noise to them.
        if (std::is_same_v<Real, float> && !values.empty()) {
            const double floor =
                static_cast<double>(shape_.long_side()) * std::numeric_limits<float>::epsilon() * values.front();
            for (double& value : values)
                if (value <= floor) value = 0.0;
        }
        return values;
    }
    [[nodiscard]] SingularVectors vectors(std::size_t at, const AnalysedBlock& block, std::size_t count) override {
        arma::Mat<Real> left;
        arma::Mat<Real> right;
        batch(block).leading_vectors(at, count, &left, &right);
        if constexpr (std::is_same_v<Real, double>)
            return {std::move(left), std::move(right)};
        else
            return {arma::conv_to<arma::mat>::from(left), arma::conv_to<arma::mat>::from(right)};
    }

private:
    BatchDecomposition<Real>& batch(const AnalysedBlock& block) {
        if (batch_) return *batch_;
        stop_point();
        BatchDecomposition<Real> batch(shape_, Instructions::best, threads_);
        if (cores_.is_empty())
            decompose_alone(batch, block);
        else
            batch.decompose({cores_.memptr(), cores_.n_elem});
        cores_.reset();
        batch_.emplace(std::move(batch));
        return *batch_;
    }
    void decompose_alone(BatchDecomposition<Real>& batch, const AnalysedBlock& block) {
        const arma::mat part = block.complete() ? arma::mat() : block.core();
        const arma::mat& core = block.complete() ? block.block_ : part;
        if constexpr (std::is_same_v<Real, double>) {
            batch.decompose({core.memptr(), core.n_elem});
        } else {
            cores_.set_size(core.n_elem);
            copy(core, cores_.memptr());
            batch.decompose({cores_.memptr(), cores_.n_elem});
        }
    }
    static void copy(const arma::mat& core, Real* to) {
        std::transform(core.begin(), core.end(), to, [](double entry) { return static_cast<Real>(entry); });
    }

    Shape shape_;
    std::size_t threads_;
    arma::Col<Real> cores_;
    std::optional<BatchDecomposition<Real>> batch_;
};

void AnalysedBlock::prepare_decompositions(std::vector<AnalysedBlock*> blocks, Precision precision,
                                           std::size_t threads) {
    std::map<std::pair<std::size_t, std::size_t>, std::vector<AnalysedBlock*>> by_shape;
    std::vector<std::vector<AnalysedBlock*>> alone;
    std::vector<AnalysedBlock*> large;
    for (AnalysedBlock* block : blocks) {
        const Shape shape = block->shape();
        // Blocks that are skipped here have nothing to decompose, or are rejected when a result is requested.
        if (shape.short_side() == 0 || !block->block_.is_finite()) continue;
        if (shape.short_side() > longest_in_batches) {
            large.push_back(block);
            continue;
        }
        const bool fits = precision == Precision::float64 ||
                          arma::abs(block->block_).max() <= static_cast<double>(std::numeric_limits<float>::max());
        // A block that does not fit float is decomposed separately, so that it alone is rejected when a result is
        // requested.
        (fits ? by_shape[{shape.rows, shape.columns}] : alone.emplace_back()).push_back(block);
    }
    const auto join = [](auto decomposition, const std::vector<AnalysedBlock*>& members) {
        for (std::size_t i = 0; i < members.size(); ++i) {
            decomposition->put(i, *members[i]);
            members[i]->place_ = {decomposition, i};
        }
    };
    for (AnalysedBlock* block : large)
        join(std::make_shared<Decomposition::In<double>>(block->shape(), 1, threads), {block});
    std::vector<std::vector<AnalysedBlock*>> groups = std::move(alone);
    for (auto& [sides, members] : by_shape) groups.push_back(std::move(members));
    for (const auto& members : groups) {
        const Shape shape = members.front()->shape();
        if (precision == Precision::float32)
            join(std::make_shared<Decomposition::In<float>>(shape, members.size(), threads), members);
        else
            join(std::make_shared<Decomposition::In<double>>(shape, members.size(), threads), members);
    }
}

std::vector<AnalysedBlock> AnalysedBlock::as_batch(std::vector<arma::mat> blocks, EmptyLines empty_lines,
                                                   Precision precision) {
    std::vector<AnalysedBlock> analysed;
    analysed.reserve(blocks.size());
    std::vector<AnalysedBlock*> members;
    for (auto& block : blocks) {
        analysed.push_back(AnalysedBlock(Unplaced{}, std::move(block), empty_lines));
        members.push_back(&analysed.back());
    }
    prepare_decompositions(members, precision, 1);
    return analysed;
}

AnalysedBlock::AnalysedBlock(arma::mat block, EmptyLines empty_lines, Precision precision, std::size_t threads)
    : AnalysedBlock(Unplaced{}, std::move(block), empty_lines) {
    prepare_decompositions({this}, precision, threads);
}

AnalysedBlock::AnalysedBlock(Unplaced, arma::mat block, EmptyLines empty_lines) : block_(std::move(block)) {
    if (empty_lines == EmptyLines::strip) {
        std::tie(rows_, columns_) = lines_with_entries(block_);
    } else {
        rows_ = all_of(block_.n_rows);
        columns_ = all_of(block_.n_cols);
    }
}

arma::mat AnalysedBlock::core() const { return complete() ? block_ : arma::mat(block_.submat(rows_, columns_)); }

const std::vector<double>& AnalysedBlock::singular_values() {
    if (!values_) values_ = place_.in ? place_.in->values(place_.at, *this) : estimators::singular_values(core());
    return *values_;
}

SingularVectors AnalysedBlock::vectors(std::size_t count) {
    if (count == 0) return {arma::mat(block_.n_rows, 0), arma::mat(block_.n_cols, 0)};
    if (vectors_.left.n_cols < count)
        vectors_ =
            at_full_length(place_.in ? place_.in->vectors(place_.at, *this, count) : leading_vectors(core(), count));
    return {vectors_.left.head_cols(count), vectors_.right.head_cols(count)};
}

SingularVectors AnalysedBlock::at_full_length(SingularVectors of_core) const {
    if (complete()) return of_core;
    return {scatter_rows(of_core.left, rows_, block_.n_rows), scatter_rows(of_core.right, columns_, block_.n_cols)};
}

arma::mat AnalysedBlock::denoised(std::span<const double> shrunk) {
    if (shrunk.empty()) return shrunk_block(block_, {}, {}, {});  // without a decomposition
    return shrunk_block(block_, singular_values(), vectors(shrunk.size()), shrunk);
}

arma::mat AnalysedBlock::residual(std::span<const double> shrunk) { return block_ - denoised(shrunk); }

arma::mat shrunk_block(const arma::mat& block, std::span<const double> observed, const SingularVectors& vectors,
                       std::span<const double> shrunk) {
    if (shrunk.empty()) return arma::mat(arma::size(block), arma::fill::zeros);
    arma::vec fraction(shrunk.size());
    for (std::size_t i = 0; i < shrunk.size(); ++i) fraction(i) = observed[i] > 0.0 ? shrunk[i] / observed[i] : 0.0;
    if (block.n_rows >= block.n_cols) {
        const arma::mat right = vectors.right.head_cols(shrunk.size());
        arma::mat scores = block * right;
        scores.each_row() %= fraction.t();
        stop_point();
        return scores * right.t();
    }
    const arma::mat left = vectors.left.head_cols(shrunk.size());
    arma::mat scores = left.t() * block;
    scores.each_col() %= fraction;
    stop_point();
    return left * scores;
}

}  // namespace spiked::estimators
