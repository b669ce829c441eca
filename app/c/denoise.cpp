#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "app/c/arrays.hpp"
#include "app/c/border.hpp"
#include "app/c/preparation.hpp"
#include "estimators/compressors/compressor.hpp"
#include "estimators/inference/spectrum_notes.hpp"
#include "estimators/inference/spike_intervals.hpp"
#include "estimators/svd/analysed_block.hpp"
#include "estimators/transforms/seen_noise.hpp"
#include "sim/spiked/covariance_spec.hpp"

namespace spiked::c {
namespace {

theory::Loss loss_named(const char* loss) {
    return loss == nullptr ? theory::Loss::frobenius : enum_named<theory::Loss>(loss, "loss");
}

/// The method of a name. Programs call by one name again and again, so each thread keeps the last one: reading a name
/// takes a hundredth of a call on a 128 x 128 matrix, and more where the caches hold other things.
const estimators::SpectralMethod& estimator_named(const char* name, const char* loss_name) {
    thread_local std::optional<estimators::SpectralMethod> last;
    const char* const text = required_array(name, "method");
    const theory::Loss loss = loss_named(loss_name);
    if (!last || last->name != text || last->loss != loss) last = estimators::parse_estimator(text, loss);
    return *last;
}

/// Checks that arrays of this capacity have room for the values of a rows x columns matrix.
void check_capacity(std::int64_t capacity, std::size_t rows, std::size_t columns, const char* name) {
    const auto values = static_cast<std::int64_t>(std::min(rows, columns));
    if (capacity < values)
        throw BufferTooSmall{fmt::format("{} has room for {} values (a {} x {} matrix has {}): pass longer arrays",
                                         name, capacity, rows, columns, values)};
}

void check_estimate(spiked_estimate* estimate, std::size_t rows, std::size_t columns) {
    if (estimate == nullptr) return;
    estimate->values = static_cast<std::int64_t>(std::min(rows, columns));
    check_capacity(estimate->capacity, rows, columns, "estimate");
}

/// How intervals are made, as it was asked for.
struct IntervalRequest {
    spiked_intervals* to = nullptr;
    estimators::IntervalMethod method = estimators::IntervalMethod::none;
    double confidence = 0.95;
};

IntervalRequest checked_intervals(spiked_intervals* intervals, std::size_t rows, std::size_t columns) {
    if (intervals == nullptr) return {};
    IntervalRequest request{intervals, estimators::IntervalMethod::theory};
    if (intervals->method != nullptr)
        request.method = enum_named<estimators::IntervalMethod>(intervals->method, "intervals");
    if (intervals->confidence != 0.0) request.confidence = intervals->confidence;
    if (!(request.confidence > 0.0 && request.confidence < 1.0))
        throw usage_error("confidence is {} (it is above 0 and below 1): pass for example 0.95", request.confidence);
    check_capacity(intervals->capacity, rows, columns, "intervals");
    return request;
}

void fill_array(double* to, const std::vector<double>& values) {
    if (to != nullptr) std::copy(values.begin(), values.end(), to);
}

void fill_estimate(spiked_estimate& estimate, const std::vector<double>& singular_values,
                   const estimators::Shrinkage& found) {
    constexpr double none = std::numeric_limits<double>::quiet_NaN();
    fill_array(estimate.singular_values, singular_values);
    fill_array(estimate.strengths, found.strengths);
    fill_array(estimate.overlap_left, found.overlap_left);
    fill_array(estimate.overlap_right, found.overlap_right);
    fill_array(estimate.shrunk, found.shrunk);
    write_cut(estimate.note, static_cast<std::size_t>(std::max<std::int64_t>(estimate.note_capacity, 0)), found.note);
    estimate.values = static_cast<std::int64_t>(singular_values.size());
    estimate.rank = static_cast<std::int64_t>(found.rank);
    estimate.bulk_edge = found.bulk_edge ? found.bulk_edge->value : none;
    estimate.expected_error = found.expected_error ? found.expected_error->squared : none;
    estimate.expected_relative_error = found.expected_error ? found.expected_error->relative : none;
}

void write_ends(double* to, std::size_t component, const std::optional<estimators::Interval>& interval) {
    constexpr double none = std::numeric_limits<double>::quiet_NaN();
    if (to == nullptr) return;
    to[2 * component] = interval ? interval->low : none;
    to[2 * component + 1] = interval ? interval->high : none;
}

void fill_intervals(const IntervalRequest& request, const estimators::Shrinkage& found,
                    const std::vector<double>& singular_values, estimators::Shape shape,
                    const std::optional<estimators::NoiseTails>& tails) {
    if (request.to == nullptr) return;
    spiked_intervals& to = *request.to;
    to.count = 0;
    to.next_value = std::numeric_limits<double>::quiet_NaN();
    const auto intervals =
        estimators::spike_intervals(found, singular_values, shape, request.method, request.confidence, tails);
    if (request.method != estimators::IntervalMethod::none)
        to.next_value = estimators::next_component_p_value(found, singular_values, shape).value_or(to.next_value);
    if (!intervals) return;
    const auto room = static_cast<std::size_t>(std::max<std::int64_t>(to.reason_capacity, 0));
    for (std::size_t i = 0; i < intervals->size(); ++i) {
        const estimators::SpikeIntervals& component = (*intervals)[i];
        write_ends(to.strength, i, component.strength);
        write_ends(to.overlap_left, i, component.overlap_left);
        write_ends(to.overlap_right, i, component.overlap_right);
        if (to.reasons != nullptr) write_cut(to.reasons + i * room, room, component.reason);
    }
    to.count = static_cast<std::int64_t>(intervals->size());
}

/// The known noise covariance of one side, a matrix or its diagonal.
std::optional<arma::mat> noise_of(const spiked_covariance* given, std::size_t size, const char* name) {
    if (given == nullptr || (given->spec == nullptr && given->matrix == nullptr)) return std::nullopt;
    if (given->spec != nullptr && given->matrix != nullptr)
        throw usage_error("{} has a spec and a matrix (which contradict each other): set one to NULL", name);
    arma::mat covariance =
        given->spec != nullptr ? sim::covariance_matrix(given->spec, size) : read_matrix(given->matrix, name);
    if (covariance.n_rows != size || (covariance.n_cols != 1 && covariance.n_cols != size))
        throw usage_error("{} is {} x {} (the side has {}): pass {} x {}, or {} variances as one column", name,
                          covariance.n_rows, covariance.n_cols, size, size, size, size);
    return covariance;
}

estimators::KnownNoise known_noise(const spiked_covariance* row, const spiked_covariance* column,
                                   const estimators::AnalysedBlock& block, const sim::SeenEntries& entries) {
    estimators::KnownCovariances whole{noise_of(row, block.block().n_rows, "row_noise"),
                                       noise_of(column, block.block().n_cols, "col_noise")};
    return estimators::restricted(noise_of_seen(std::move(whole), entries.row_weights, entries.column_weights.t()),
                                  block.kept_rows(), block.kept_columns());
}

/// All singular values of a matrix, as a caller gives them.
std::vector<double> spectrum_of(const double* singular_values, std::int64_t count) {
    const double* const first = required_array(singular_values, "singular_values");
    std::vector<double> values(first, first + count_of(count, 0, "count"));
    if (!std::is_sorted(values.rbegin(), values.rend()))
        throw input_error("singular_values are not in descending order (or NaN): sort them, largest first");
    return values;
}

void denoise(const spiked_matrix* data, const char* method, const char* loss, const spiked_covariance* row_noise,
             const spiked_covariance* col_noise, bool keep_empty, const sim::Preparation& preparation,
             const spiked_matrix* signal, spiked_estimate* estimate, spiked_intervals* intervals, double* share_seen) {
    const estimators::SpectralMethod& named = estimator_named(method, loss);
    arma::mat read = read_data(data, preparation);
    if (signal != nullptr) check_output(*signal, data->rows, data->cols, "signal");
    check_estimate(estimate, read.n_rows, read.n_cols);
    const IntervalRequest request = checked_intervals(intervals, read.n_rows, read.n_cols);
    sim::SeenEntries entries;
    if (!preparation.empty()) {
        sim::PreparedMatrix ready = sim::prepared(std::move(read), preparation);
        read = std::move(ready.matrix);
        entries = std::move(ready.entries);
    }
    if (share_seen != nullptr) *share_seen = entries.share;
    if (entries.missing > 0) estimators::reject_whole_counts(named, entries.share);
    using EmptyLines = estimators::AnalysedBlock::EmptyLines;
    estimators::AnalysedBlock block(std::move(read), keep_empty ? EmptyLines::keep : EmptyLines::strip,
                                    estimators::Precision::float64, asked_threads());
    const auto known = known_noise(row_noise, col_noise, block, entries);
    std::optional<estimators::SpectralMethod> knowing;
    if (!known.empty()) {
        if (!named.takes_noise_law())
            throw usage_error("row_noise and col_noise are not used by {} (only {} use them): pass NULL", named.name,
                              estimators::users_of_noise_law());
        knowing = named.knowing(known);
    }
    const estimators::SpectralMethod& chosen = knowing ? *knowing : named;
    // Methods that need the matrix itself see all its rows.
    const estimators::Shape independent = preparation.independent_shape(block.shape());
    chosen.check_room(independent.rows, independent.columns);
    const bool needs_block = chosen.needs_block();
    const estimators::Shape shape = needs_block ? block.shape() : independent;
    const std::vector<double>& all = block.singular_values();
    const std::vector<double> values(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(shape.short_side()));
    estimators::Shrinkage found;
    if (signal != nullptr && !chosen.transforms.empty()) {
        auto applied = chosen.apply(block);
        write_matrix(*signal, applied.signal);
        found = std::move(applied.shrinkage);
    } else {
        found = needs_block ? chosen.estimate(block) : chosen.estimator.estimate(values, shape);
        if (signal != nullptr) write_matrix(*signal, block.denoised(found.shrunk));
    }
    std::optional<estimators::NoiseTails> tails;
    if (request.to != nullptr && request.method != estimators::IntervalMethod::none && chosen.transforms.empty())
        tails = estimators::noise_tails(block.block(), std::span(all).first(found.rank), block.vectors(found.rank));
    fill_intervals(request, found, values, shape, tails);
    if (tails && entries.missing == 0) estimators::add_note_on_tails(found, *tails);
    if (estimate == nullptr) return;
    fill_estimate(*estimate, block.singular_values(), found);
    estimate->stripped_rows = static_cast<std::int64_t>(block.block().n_rows - block.shape().rows);
    estimate->stripped_cols = static_cast<std::int64_t>(block.block().n_cols - block.shape().columns);
}

void shrink(const double* singular_values, std::int64_t count, std::int64_t rows, std::int64_t cols, const char* method,
            const char* loss, spiked_estimate* estimate, spiked_intervals* intervals) {
    const estimators::SpectralMethod& chosen = estimator_named(method, loss);
    if (chosen.needs_block())
        throw usage_error(
            "{} needs the matrix (here are its singular values alone): choose one that needs singular values only, "
            "such as eoptshrink",
            chosen.name);
    const estimators::Shape shape{count_of(rows, 1, "rows"), count_of(cols, 1, "cols")};
    if (count != std::min(rows, cols))
        throw usage_error("{} singular values (a {} x {} matrix has {}): pass all of them, zeros too", count, rows,
                          cols, std::min(rows, cols));
    const std::vector<double> values = spectrum_of(singular_values, count);
    check_estimate(estimate, shape.rows, shape.columns);
    const IntervalRequest request = checked_intervals(intervals, shape.rows, shape.columns);
    chosen.check_room(shape.rows, shape.columns);
    const estimators::Shrinkage found = chosen.estimator.estimate(values, shape);
    fill_intervals(request, found, values, shape, std::nullopt);
    if (estimate == nullptr) return;
    fill_estimate(*estimate, values, found);
    estimate->stripped_rows = estimate->stripped_cols = 0;
}

std::vector<std::string> denoise_notes(const spiked_matrix* data, const double* singular_values, std::int64_t count,
                                       double share_seen) {
    const std::vector<double> values = spectrum_of(singular_values, count);
    if (!(share_seen > 0.0 && share_seen <= 1.0))
        throw usage_error("share_seen is {} (it is above 0 and at most 1): pass 1 where all entries are known",
                          share_seen);
    std::vector<std::string> notes;
    const auto add = [&](std::vector<std::string> more) {
        std::move(more.begin(), more.end(), std::back_inserter(notes));
    };
    if (data != nullptr) {
        const arma::mat matrix = read_matrix(data, "data");
        add(sim::data_notes(matrix, {.largest_value = values.empty() ? 0.0 : values.front()}));
        if (auto note = sim::note_on_symmetry(matrix)) add({std::move(*note)});
    }
    add(estimators::spectrum_notes(values, share_seen));
    return notes;
}

}  // namespace
}  // namespace spiked::c

using namespace spiked;

extern "C" {

int spiked_denoise(const spiked_matrix* data, const char* method, const char* loss, const spiked_covariance* row_noise,
                   const spiked_covariance* col_noise, int keep_empty, const spiked_matrix* signal,
                   spiked_estimate* estimate) {
    return spiked_denoise_intervals(data, method, loss, row_noise, col_noise, keep_empty, nullptr, nullptr, signal,
                                    estimate, nullptr);
}

int spiked_denoise_intervals(const spiked_matrix* data, const char* method, const char* loss,
                             const spiked_covariance* row_noise, const spiked_covariance* col_noise, int keep_empty,
                             const char* center, const char* standardize, const spiked_matrix* signal,
                             spiked_estimate* estimate, spiked_intervals* intervals) {
    return spiked_denoise_missing(data, nullptr, method, loss, row_noise, col_noise, keep_empty, center, standardize,
                                  signal, estimate, intervals, nullptr);
}

int spiked_denoise_missing(const spiked_matrix* data, const char* missing, const char* method, const char* loss,
                           const spiked_covariance* row_noise, const spiked_covariance* col_noise, int keep_empty,
                           const char* center, const char* standardize, const spiked_matrix* signal,
                           spiked_estimate* estimate, spiked_intervals* intervals, double* share_seen) {
    return c::computed([&] {
        c::denoise(data, method, loss, row_noise, col_noise, keep_empty != 0,
                   c::preparation_of(center, standardize, missing), signal, estimate, intervals, share_seen);
    });
}

int spiked_denoise_notes(const spiked_matrix* data, const double* singular_values, int64_t count, double share_seen,
                         char* notes, int64_t notes_capacity) {
    return c::computed(
        [&] { c::write_notes(notes, notes_capacity, c::denoise_notes(data, singular_values, count, share_seen)); });
}

int spiked_shrink(const double* singular_values, int64_t count, int64_t rows, int64_t cols, const char* method,
                  const char* loss, spiked_estimate* estimate) {
    return spiked_shrink_intervals(singular_values, count, rows, cols, method, loss, estimate, nullptr);
}

int spiked_shrink_intervals(const double* singular_values, int64_t count, int64_t rows, int64_t cols,
                            const char* method, const char* loss, spiked_estimate* estimate,
                            spiked_intervals* intervals) {
    return c::computed([&] { c::shrink(singular_values, count, rows, cols, method, loss, estimate, intervals); });
}

}  // extern "C"
