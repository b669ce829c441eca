#include "estimators/analysed_block.hpp"

namespace spiked::estimators {
namespace {

arma::mat in_place(const arma::mat& vectors, const arma::uvec& kept, std::size_t length) {
    arma::mat full(length, vectors.n_cols);
    full.rows(kept) = vectors;
    return full;
}

}  // namespace

AnalysedBlock::AnalysedBlock(arma::mat block, EmptyLines empty_lines) : block_(std::move(block)) {
    if (empty_lines == EmptyLines::strip) {
        rows_ = arma::find(arma::any(block_, 1));
        columns_ = arma::find(arma::any(block_, 0));
    } else {
        rows_ = arma::regspace<arma::uvec>(0, 1, static_cast<arma::uword>(block_.n_rows) - 1);
        columns_ = arma::regspace<arma::uvec>(0, 1, static_cast<arma::uword>(block_.n_cols) - 1);
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
        vectors_ = leading_vectors(core(), count);
        if (!complete())
            vectors_ = {in_place(vectors_.left, rows_, block_.n_rows),
                        in_place(vectors_.right, columns_, block_.n_cols)};
    }
    return {vectors_.left.head_cols(count), vectors_.right.head_cols(count)};
}

arma::mat AnalysedBlock::denoised(const Shrinkage& shrinkage) {
    const SingularVectors leading = vectors(shrinkage.rank);
    arma::mat scaled = leading.left;
    for (arma::uword i = 0; i < scaled.n_cols; ++i) scaled.col(i) *= shrinkage.shrunk[i];
    return scaled * leading.right.t();
}

}  // namespace spiked::estimators
