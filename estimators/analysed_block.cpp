#include "estimators/analysed_block.hpp"

namespace spiked::estimators {
namespace {

arma::mat in_place(const arma::mat& vectors, const arma::uvec& kept, std::size_t length) {
    arma::mat full(length, vectors.n_cols);
    full.rows(kept) = vectors;
    return full;
}

arma::uvec all_of(arma::uword count) { return count == 0 ? arma::uvec() : arma::regspace<arma::uvec>(0, 1, count - 1); }

}  // namespace

AnalysedBlock::AnalysedBlock(arma::mat block, EmptyLines empty_lines) : block_(std::move(block)) {
    if (empty_lines == EmptyLines::strip) {
        rows_ = arma::find(arma::any(block_, 1));
        columns_ = arma::find(arma::any(block_, 0));
    } else {
        rows_ = all_of(block_.n_rows);
        columns_ = all_of(block_.n_cols);
    }
}

arma::mat AnalysedBlock::core() const { return complete() ? block_ : arma::mat(block_.submat(rows_, columns_)); }

const std::vector<double>& AnalysedBlock::singular_values() {
    if (!values_) values_ = estimators::singular_values(core());
    return *values_;
}

SingularVectors AnalysedBlock::vectors(std::size_t count) {
    if (count == 0) return {arma::mat(block_.n_rows, 0), arma::mat(block_.n_cols, 0)};
    if (vectors_.left.n_cols < count) {
        vectors_ = at_full_length(leading_vectors(core(), count));
    }
    return {vectors_.left.head_cols(count), vectors_.right.head_cols(count)};
}

SingularVectors AnalysedBlock::at_full_length(SingularVectors of_core) const {
    if (complete()) return of_core;
    return {in_place(of_core.left, rows_, block_.n_rows), in_place(of_core.right, columns_, block_.n_cols)};
}

arma::mat AnalysedBlock::denoised(const Shrinkage& shrinkage) {
    const std::vector<double>& observed = singular_values();
    const SingularVectors leading = vectors(shrinkage.rank);
    arma::vec share(shrinkage.rank);
    for (std::size_t i = 0; i < shrinkage.rank; ++i)
        share(i) = observed[i] > 0.0 ? shrinkage.shrunk[i] / observed[i] : 0.0;
    if (block_.n_rows >= block_.n_cols) {
        arma::mat scores = block_ * leading.right;
        scores.each_row() %= share.t();
        return scores * leading.right.t();
    }
    arma::mat scores = leading.left.t() * block_;
    scores.each_col() %= share;
    return leading.left * scores;
}

arma::mat AnalysedBlock::residual(const Shrinkage& shrinkage) { return block_ - denoised(shrinkage); }

}  // namespace spiked::estimators
