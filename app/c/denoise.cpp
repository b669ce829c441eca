#include <algorithm>
#include <limits>
#include <optional>
#include <span>
#include <string>

#include "app/c/arrays.hpp"
#include "app/c/border.hpp"
#include "estimators/compressors/compressor.hpp"
#include "estimators/svd/analysed_block.hpp"
#include "sim/spiked/covariance_spec.hpp"

namespace spiked::c {
namespace {

theory::Loss loss_named(const char* loss) {
    return loss == nullptr ? theory::Loss::frobenius : enum_named<theory::Loss>(loss, "loss");
}

/// Checks that the arrays of an estimate have room for a rows x cols matrix.
void check_estimate(spiked_estimate* estimate, std::size_t rows, std::size_t columns) {
    if (estimate == nullptr) return;
    estimate->values = static_cast<std::int64_t>(std::min(rows, columns));
    if (estimate->capacity < estimate->values)
        throw BufferTooSmall{
            fmt::format("estimate has room for {} values (a {} x {} matrix has {}): pass longer arrays",
                        estimate->capacity, rows, columns, estimate->values)};
}

void fill_array(double* to, const std::vector<double>& values) {
    if (to != nullptr) std::copy(values.begin(), values.end(), to);
}

void fill_estimate(spiked_estimate* estimate, const std::vector<double>& singular_values,
                   const estimators::Shrinkage& found) {
    if (estimate == nullptr) return;
    constexpr double none = std::numeric_limits<double>::quiet_NaN();
    fill_array(estimate->singular_values, singular_values);
    fill_array(estimate->strengths, found.strengths);
    fill_array(estimate->overlap_left, found.overlap_left);
    fill_array(estimate->overlap_right, found.overlap_right);
    fill_array(estimate->shrunk, found.shrunk);
    write_cut(estimate->note, static_cast<std::size_t>(std::max<std::int64_t>(estimate->note_capacity, 0)), found.note);
    estimate->values = static_cast<std::int64_t>(singular_values.size());
    estimate->rank = static_cast<std::int64_t>(found.rank);
    estimate->bulk_edge = found.bulk_edge ? found.bulk_edge->value : none;
    estimate->expected_error = found.expected_error ? found.expected_error->squared : none;
    estimate->expected_relative_error = found.expected_error ? found.expected_error->relative : none;
}

/// The known noise covariance of one side, restricted to the rows or columns that were kept.
std::optional<estimators::NoiseCovariance> noise_of(const spiked_covariance* given, std::size_t size,
                                                    const arma::uvec& kept, const char* name) {
    if (given == nullptr || (given->spec == nullptr && given->matrix == nullptr)) return std::nullopt;
    if (given->spec != nullptr && given->matrix != nullptr)
        throw usage_error("{} has a spec and a matrix (which contradict each other): set one to NULL", name);
    const arma::mat covariance =
        given->spec != nullptr ? sim::covariance_matrix(given->spec, size) : read_matrix(given->matrix, name);
    if (covariance.n_rows != size || (covariance.n_cols != 1 && covariance.n_cols != size))
        throw usage_error("{} is {} x {} (the side has {}): pass {} x {}, or {} variances as one column", name,
                          covariance.n_rows, covariance.n_cols, size, size, size, size);
    const auto whole = covariance.n_cols == 1 ? estimators::NoiseCovariance::diagonal(covariance)
                                              : estimators::NoiseCovariance::full(covariance);
    return whole.restricted(kept);
}

estimators::KnownNoise known_noise(const spiked_covariance* row, const spiked_covariance* column,
                                   const estimators::AnalysedBlock& block) {
    return {noise_of(row, block.block().n_rows, block.kept_rows(), "row_noise"),
            noise_of(column, block.block().n_cols, block.kept_columns(), "col_noise")};
}

}  // namespace
}  // namespace spiked::c

using namespace spiked;

extern "C" {

int spiked_denoise(const spiked_matrix* data, const char* method, const char* loss, const spiked_covariance* row_noise,
                   const spiked_covariance* col_noise, int keep_empty, const spiked_matrix* signal,
                   spiked_estimate* estimate) {
    return c::computed([&] {
        auto chosen = estimators::parse_estimator(c::required_array(method, "method"), c::loss_named(loss));
        arma::mat read = c::read_matrix(data, "data");
        if (signal != nullptr) c::check_output(*signal, data->rows, data->cols, "signal");
        c::check_estimate(estimate, read.n_rows, read.n_cols);
        using EmptyLines = estimators::AnalysedBlock::EmptyLines;
        estimators::AnalysedBlock block(std::move(read), keep_empty != 0 ? EmptyLines::keep : EmptyLines::strip);
        const auto known = c::known_noise(row_noise, col_noise, block);
        if ((known.row || known.column) && !chosen.takes_noise_law())
            throw usage_error("row_noise and col_noise are not used by {} (only {} use them): pass NULL", chosen.name,
                              estimators::users_of_noise_law());
        chosen = chosen.knowing(known);
        chosen.check_room(block.shape().rows, block.shape().columns);
        if (signal != nullptr) {
            const auto applied = chosen.apply(block);
            c::write_matrix(*signal, applied.signal);
            c::fill_estimate(estimate, block.singular_values(), applied.shrinkage);
        } else {
            const auto found = chosen.estimate(block);
            c::fill_estimate(estimate, block.singular_values(), found);
        }
        if (estimate == nullptr) return;
        estimate->stripped_rows = static_cast<std::int64_t>(block.block().n_rows - block.shape().rows);
        estimate->stripped_cols = static_cast<std::int64_t>(block.block().n_cols - block.shape().columns);
    });
}

int spiked_shrink(const double* singular_values, int64_t count, int64_t rows, int64_t cols, const char* method,
                  const char* loss, spiked_estimate* estimate) {
    return c::computed([&] {
        const auto chosen = estimators::parse_estimator(c::required_array(method, "method"), c::loss_named(loss));
        if (!chosen.transforms.empty() || chosen.estimator.estimate_block)
            throw usage_error(
                "{} needs the matrix (here are its singular values alone): choose one that needs singular values only, "
                "such as eoptshrink",
                chosen.name);
        const estimators::Shape shape{c::count_of(rows, 1, "rows"), c::count_of(cols, 1, "cols")};
        if (count != std::min(rows, cols))
            throw usage_error("{} singular values (a {} x {} matrix has {}): pass all of them, zeros too", count, rows,
                              cols, std::min(rows, cols));
        const double* const first = c::required_array(singular_values, "singular_values");
        const std::vector<double> values(first, first + count);
        if (!std::is_sorted(values.rbegin(), values.rend()))
            throw input_error("singular_values are not in descending order (or NaN): sort them, largest first");
        c::check_estimate(estimate, shape.rows, shape.columns);
        chosen.check_room(shape.rows, shape.columns);
        c::fill_estimate(estimate, values, chosen.estimator.estimate(values, shape));
        if (estimate != nullptr) estimate->stripped_rows = estimate->stripped_cols = 0;
    });
}

}  // extern "C"
