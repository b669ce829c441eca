#include "sim/spiked/spiked_sampler.hpp"

#include <algorithm>
#include <boost/random/chi_squared_distribution.hpp>
#include <cmath>

#include "core/runtime/error.hpp"
#include "sim/random/element_engine.hpp"

namespace spiked::sim {

bool same_blocks(const SpikedModel& a, const SpikedModel& b) {
    const auto same_strength = [](SignalStrength one, SignalStrength other) { return one.value == other.value; };
    return a.colouring == b.colouring && a.seen == b.seen && a.seen_by == b.seen_by && a.seen_spread == b.seen_spread &&
           a.student_rows == b.student_rows && a.symmetric == b.symmetric && a.entries.text() == b.entries.text() &&
           a.left_vectors.text() == b.left_vectors.text() && a.right_vectors.text() == b.right_vectors.text() &&
           std::equal(a.strengths.begin(), a.strengths.end(), b.strengths.begin(), b.strengths.end(), same_strength) &&
           arma::size(a.variances) == arma::size(b.variances) &&
           std::equal(a.variances.begin(), a.variances.end(), b.variances.begin()) && a.row.same_as(b.row) &&
           a.column.same_as(b.column);
}

namespace {

bool white(const Covariance& covariance) {
    return covariance.is_diagonal() && arma::all(covariance.eigenvalues() == 1.0);
}

void require_possible_signs(const SpikedModel& model) {
    if (!model.symmetric) {
        for (const SignalStrength strength : model.strengths)
            if (strength.value < 0.0)
                throw usage_error("strength {} is not possible (only symmetric blocks have negative ones): correct it",
                                  strength.value);
        return;
    }
    if (model.row.size() != model.column.size())
        throw usage_error("a symmetric block of {} x {} is not possible: give as many rows as columns",
                          model.row.size(), model.column.size());
    if (!white(model.row) || !white(model.column) || model.colouring != Colouring::dense || model.seen < 1.0 ||
        !model.variances.is_empty() || model.student_rows > 0.0 || !model.left_vectors.orthonormal())
        throw usage_error(
            "a symmetric block has white noise and orthonormal vectors (covariances, colouring in an eigenbasis, "
            "missing entries, variances, random scales and scores are not possible): leave one out");
}

}  // namespace

void require_possible(const SpikedModel& model) {
    const std::size_t n = model.row.size();
    const std::size_t d = model.column.size();
    const std::size_t rank = model.strengths.size();
    if (rank > std::min(n, d))
        throw usage_error("a signal of rank {} does not fit a {} x {} block: give at most {} strengths", rank, n, d,
                          std::min(n, d));
    require_possible_signs(model);
    model.left_vectors.require_room(n, rank);
    model.right_vectors.require_room(d, rank);
    if (model.colouring == Colouring::eigenbasis && !model.entries.gaussian())
        throw usage_error(
            "colouring in the eigenbasis of \"{}\" entries is not possible (only Gaussian entries are invariant under "
            "rotation): use dense colouring",
            model.entries.text());
    if (!(model.seen > 0.0 && model.seen <= 1.0))
        throw usage_error("seen = {} is not possible (a probability above 0 and at most 1): give for example 0.5",
                          model.seen);
    const double largest = model.seen * std::pow(1.0 + model.seen_spread, model.seen_by == Missing::both ? 2 : 1);
    const bool by_lines = model.seen_by != Missing::uniform;
    if (model.seen_by == Missing::none || !(model.seen_spread >= 0.0 && model.seen_spread < 1.0) ||
        (model.seen_spread > 0.0 && !by_lines) || largest > 1.0)
        throw usage_error(
            "seen = {} with seen_by = \"{}\" and seen_spread = {} is not possible (probabilities from seen (1 - "
            "seen_spread) to seen (1 + seen_spread), of rows or columns, at most 1): give for example 0.5, \"rows\" "
            "and "
            "0.5",
            model.seen, enum_name(model.seen_by), model.seen_spread);
    if (model.colouring == Colouring::eigenbasis && model.seen < 1.0)
        throw usage_error(
            "colouring in the eigenbasis of a matrix with missing entries is not possible (rotations change which are "
            "missing): use dense colouring");
    if (!(model.student_rows == 0.0 || (model.student_rows > 2.0 && std::isfinite(model.student_rows))))
        throw usage_error(
            "student_rows = {} is not possible (degrees of freedom above 2, where rows have a variance, or 0 for "
            "none): give for example 5",
            model.student_rows);
    if (model.colouring == Colouring::eigenbasis && model.student_rows > 0.0)
        throw usage_error(
            "rows of random scale cannot be coloured in the eigenbasis (a rotation mixes them): use dense colouring");
    if (model.variances.is_empty()) return;
    if (model.variances.n_rows != n || model.variances.n_cols != d)
        throw usage_error("the variances of entries are {} x {} (the block is {} x {}): give one for each entry",
                          model.variances.n_rows, model.variances.n_cols, n, d);
    if (!(model.variances.is_finite() && model.variances.min() >= 0.0))
        throw usage_error("the variances of entries go down to {} (they must be finite and at least 0): correct them",
                          model.variances.min());
    if (model.colouring == Colouring::eigenbasis)
        throw usage_error(
            "entries with variances of their own cannot be coloured in the eigenbasis (it rotates them): use dense "
            "colouring");
}

namespace {

/// Weights the entries that are seen, and takes the others away.
void lose_entries(SpikedSample& sample, const SpikedModel& model, const stream::Stream& stream) {
    if (sample.observed.n_elem > std::size_t{1} << 32)
        throw precondition_error("{} entries are requested of one stream, which holds 2^32", sample.observed.n_elem);
    const auto factor = [&](Missing lines, arma::uword at, arma::uword count) {
        if (model.seen_by != lines && model.seen_by != Missing::both) return 1.0;
        return 1.0 + model.seen_spread * (2.0 * (static_cast<double>(at) + 0.5) / static_cast<double>(count) - 1.0);
    };
    const arma::uword n = sample.observed.n_rows, d = sample.observed.n_cols;
    for (arma::uword e = 0; e < sample.observed.n_elem; ++e) {
        const double seen = model.seen * factor(Missing::rows, e % n, n) * factor(Missing::columns, e / n, d);
        const stream::PhiloxCounter words = stream.words(static_cast<std::uint32_t>(e));
        const auto bits = (std::uint64_t{words[1]} << 32 | words[0]) >> 11;
        if (!(static_cast<double>(bits) * 0x1p-53 < seen)) sample.observed[e] = arma::datum::nan;
    }
    (void)weight_seen_entries(sample.observed, model.seen_by);
    sample.noise = sample.observed - sample.signal;
}

/// Multiplies each row by a random scale of mean square 1 (SpikedModel::student_rows).
void scale_rows(arma::mat& white, double dof, const stream::Stream& stream) {
    for (arma::uword i = 0; i < white.n_rows; ++i) {
        stream::ElementEngine engine(stream, static_cast<std::uint32_t>(i));
        white.row(i) *= std::sqrt((dof - 2.0) / boost::random::chi_squared_distribution<double>(dof)(engine));
    }
}

}  // namespace

SignalSides signal_sides(const SpikedModel& model, const stream::StudySeed& seed, std::string_view cell,
                         std::uint64_t replicate) {
    using stream::Role;
    using stream::Stream;
    const std::size_t rank = model.strengths.size();
    SignalSides sides{model.left_vectors.draw(Stream(seed, cell, Role::left_vectors, replicate), model.row, rank),
                      model.right_vectors.draw(Stream(seed, cell, Role::right_vectors, replicate), model.column, rank)};
    if (model.symmetric) {
        sides.right = sides.left;
        for (std::size_t i = 0; i < rank; ++i)
            if (model.strengths[i].value < 0.0) sides.right.col(i) *= -1.0;
    }
    if (model.colouring == Colouring::eigenbasis) {
        sides.left = model.row.to_eigenbasis(sides.left);
        sides.right = model.column.to_eigenbasis(sides.right);
    }
    return sides;
}

SpikedSample sample(const SpikedModel& model, const stream::StudySeed& seed, std::string_view cell,
                    std::uint64_t replicate) {
    using stream::Role;
    using stream::Stream;
    require_possible(model);
    const std::size_t n = model.row.size();
    const std::size_t d = model.column.size();
    const std::size_t rank = model.strengths.size();

    SpikedSample result;
    arma::mat white(n, d, arma::fill::none);
    fill_entries(model.entries, Stream(seed, cell, Role::noise, replicate), {white.memptr(), white.n_elem});
    white /= std::sqrt(static_cast<double>(d));
    if (model.symmetric) {
        white = arma::symmatl(white);
        white.diag() *= std::sqrt(2.0);
    }
    if (!model.variances.is_empty()) white %= arma::sqrt(model.variances);
    // A spiked model has no other use of this role.
    if (model.student_rows > 0.0) scale_rows(white, model.student_rows, Stream(seed, cell, Role::channel, replicate));
    SignalSides sides = signal_sides(model, seed, cell, replicate);
    result.left = std::move(sides.left);
    result.right = std::move(sides.right);
    if (model.colouring == Colouring::dense) {
        result.noise = model.column.times_root(model.row.root_times(white));
    } else {
        result.noise = model.column.in_eigenbasis().times_root(model.row.in_eigenbasis().root_times(white));
    }
    arma::rowvec strengths(rank);
    for (std::size_t i = 0; i < rank; ++i) strengths(i) = std::abs(model.strengths[i].value);
    result.signal = (result.left.each_row() % strengths) * result.right.t();
    if (model.symmetric) result.signal = arma::symmatl(result.signal);  // else to rounding
    result.observed = result.signal + result.noise;
    if (!model.left_vectors.orthonormal()) result.left = arma::normalise(result.left);
    if (model.seen < 1.0) lose_entries(result, model, Stream(seed, cell, Role::missing, replicate));
    return result;
}

}  // namespace spiked::sim
