#include "estimators/svd/leading/leading_part.hpp"

#include <algorithm>

#include "app/c/arrays.hpp"
#include "app/c/border.hpp"
#include "estimators/svd/analysed_block.hpp"

namespace spiked::c {
namespace {

void write_vectors(const spiked_matrix* to, arma::mat vectors, std::size_t wanted) {
    if (to == nullptr) return;
    vectors.resize(vectors.n_rows, wanted);  // with zeros for values that zero rows and columns leave out
    write_matrix(*to, vectors);
}

void find_leading(const spiked_matrix* data, bool keep_empty, spiked_leading& to) {
    arma::mat read = read_matrix(data, "data");
    const auto most = static_cast<std::int64_t>(std::min(read.n_rows, read.n_cols));
    if (to.wanted < 1 || to.wanted > most)
        throw usage_error("wanted is {} (a {} x {} matrix has {} singular values): pass 1 to {}", to.wanted,
                          read.n_rows, read.n_cols, most, most);
    if (to.left != nullptr) check_output(*to.left, data->rows, to.wanted, "left");
    if (to.right != nullptr) check_output(*to.right, data->cols, to.wanted, "right");
    using EmptyLines = estimators::AnalysedBlock::EmptyLines;
    const estimators::AnalysedBlock block(std::move(read), keep_empty ? EmptyLines::keep : EmptyLines::strip);
    const auto wanted = static_cast<std::size_t>(to.wanted);
    estimators::LeadingPart found = estimators::leading_part(block, wanted, asked_threads());
    if (to.singular_values != nullptr) std::copy(found.values.begin(), found.values.end(), to.singular_values);
    if (to.bounds != nullptr) std::copy(found.bounds.begin(), found.bounds.end(), to.bounds);
    write_vectors(to.left, std::move(found.vectors.left), wanted);
    write_vectors(to.right, std::move(found.vectors.right), wanted);
    to.values = static_cast<std::int64_t>(found.values.size());
    to.krylov_dimension = static_cast<std::int64_t>(found.dimension);
}

}  // namespace
}  // namespace spiked::c

using namespace spiked;

extern "C" int spiked_leading_values(const spiked_matrix* data, int keep_empty, spiked_leading* found) {
    return c::computed([&] { c::find_leading(data, keep_empty != 0, c::required(found, "found")); });
}
