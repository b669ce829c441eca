#include "estimators/bench/gram_route.hpp"

#include <algorithm>
#include <cmath>

#include "theory/base/error.hpp"

// Fortran passes the length of a character argument after all others.
extern "C" {
void dsyrk_(const char* triangle, const char* transposed, const int* size, const int* inner, const double* alpha,
            const double* a, const int* a_step, const double* beta, double* c, const int* c_step, std::size_t,
            std::size_t);
void dsytrd_(const char* triangle, const int* size, double* a, const int* a_step, double* diagonal,
             double* off_diagonal, double* reflectors, double* work, const int* work_size, int* info, std::size_t);
void dsterf_(const int* size, double* diagonal, double* off_diagonal, int* info);
void dstein_(const int* size, const double* diagonal, const double* off_diagonal, const int* count,
             const double* eigenvalues, const int* block, const int* split, double* vectors, const int* vectors_step,
             double* work, int* integers, int* failed, int* info);
void dormtr_(const char* side, const char* triangle, const char* transposed, const int* rows, const int* columns,
             const double* a, const int* a_step, const double* reflectors, double* c, const int* c_step, double* work,
             const int* work_size, int* info, std::size_t, std::size_t, std::size_t);
}

namespace spiked::estimators {

GramRoute::GramRoute(std::size_t rows, std::size_t columns)
    : block_(rows, columns),
      gram_(columns, columns),
      diagonal_(columns),
      off_diagonal_(columns),
      reflectors_(columns),
      eigenvalues_(columns),
      spare_(columns),
      work_(64 * columns),  // LAPACK's block size times the size
      ones_(columns, 1),
      integers_(2 * columns),
      singular_values_(columns) {
    if (rows < columns) throw bug("a Gram matrix of the longer side, {} of a {} x {} block", columns, rows, columns);
}

const std::vector<double>& GramRoute::singular_values(const arma::fmat& block) {
    const int rows = static_cast<int>(block_.n_rows);
    const int size = static_cast<int>(block_.n_cols);
    const int work_size = static_cast<int>(work_.n_elem);
    constexpr double one = 1.0;
    constexpr double zero = 0.0;
    int info = 0;
    std::copy(block.begin(), block.end(), block_.begin());
    dsyrk_("L", "T", &size, &rows, &one, block_.memptr(), &rows, &zero, gram_.memptr(), &size, 1, 1);
    dsytrd_("L", &size, gram_.memptr(), &size, diagonal_.memptr(), off_diagonal_.memptr(), reflectors_.memptr(),
            work_.memptr(), &work_size, &info, 1);
    eigenvalues_ = diagonal_;
    spare_ = off_diagonal_;
    dsterf_(&size, eigenvalues_.memptr(), spare_.memptr(), &info);
    if (info != 0)
        throw input_error("the eigenvalues of a {} x {} Gram matrix did not converge (LAPACK sterf): check its values",
                          size, size);
    std::transform(eigenvalues_.begin(), eigenvalues_.end(), singular_values_.rbegin(),
                   [](double eigenvalue) { return std::sqrt(std::max(eigenvalue, 0.0)); });
    return singular_values_;
}

arma::fmat GramRoute::right_vectors(std::size_t count) {
    const int size = static_cast<int>(gram_.n_cols);
    const int wanted = static_cast<int>(count);
    const int work_size = static_cast<int>(work_.n_elem);
    int info = 0;
    arma::mat vectors(gram_.n_cols, count);
    if (count == 0) return arma::fmat(gram_.n_cols, 0);
    std::vector<int> failed(count);
    dstein_(&size, diagonal_.memptr(), off_diagonal_.memptr(), &wanted, eigenvalues_.end() - wanted, ones_.data(),
            &size, vectors.memptr(), &size, work_.memptr(), integers_.data(), failed.data(), &info);
    if (info != 0)
        throw input_error("{} singular vectors of a block did not converge (LAPACK stein): check its values", info);
    dormtr_("L", "L", "N", &size, &wanted, gram_.memptr(), &size, reflectors_.memptr(), vectors.memptr(), &size,
            work_.memptr(), &work_size, &info, 1, 1, 1);
    return arma::conv_to<arma::fmat>::from(arma::fliplr(vectors));
}

}  // namespace spiked::estimators
