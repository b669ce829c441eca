#pragma once
#include <armadillo>
#include <string>
#include <vector>

#include "core/text/enum_names.hpp"
#include "sim/preparation/preparation.hpp"
#include "sim/random/address.hpp"
#include "sim/spiked/covariance.hpp"
#include "sim/spiked/entry_law.hpp"
#include "sim/spiked/signal.hpp"
#include "theory/laws/quantities.hpp"

namespace spiked::sim {

/// How a block is coloured: with the dense roots of A and B, or in their eigenbases, where colouring scales rows and
/// columns. For Gaussian X the two have the same law up to the rotations by Q_A and Q_B: singular values, overlaps with
/// the true vectors and errors of every rotation-invariant estimator have the same distribution; quantities that are
/// not invariant (entries, the error of a quantizer without rotation) have another. Multiplying by column.basis().t()
/// from the right rotates the columns of an eigenbasis sample back.
enum class Colouring { dense, eigenbasis };

/// S~ = S + A^{1/2} X B^{1/2} (paper, spiked model): n x d, entries of X independent with variance 1/d, singular values
/// of S given by `strengths` (absolute, singular-value scale; up to a fraction of order n^-1/2 where left vectors are
/// random `scores`), at most min(n, d) of them. With `variances` the entry
/// (i, j) of X has that variance over d: noise of any variance profile (theory/laws/profile_law) where A = B = 1. The
/// kernels of a GPU do not draw such blocks.
struct SpikedModel {
    Covariance row;     ///< A, n x n
    Covariance column;  ///< B, d x d
    std::vector<SignalStrength> strengths;
    EntryLaw entries = {};
    VectorLaw left_vectors = {};
    VectorLaw right_vectors = {};
    Colouring colouring = Colouring::dense;
    /// A symmetric block, n = d, in place of one with independent entries (theory/symmetric/spiked_wigner): the entries
    /// of X below the diagonal also stand above it, and those on it are multiplied by sqrt(2), so that Gaussian ones
    /// make the Gaussian orthogonal ensemble. The signal is sum_i s_i v_i v_i^T with the left vectors v_i; strengths
    /// may be negative, and the right vectors of such are -v_i.
    bool symmetric = false;
    /// The probability that an entry is seen. Below 1, S~ is what is made of the entries seen: each divided by the
    /// fraction seen, and 0 where they are missing (`weight_seen_entries`); its noise is what is left without S.
    double seen = 1.0;
    arma::mat variances = {};  ///< n x d; empty: all are 1
    /// NU > 2: row i of X is multiplied by sqrt((NU - 2) / c_i), where the c_i of a replicate are independent
    /// chi-square variables with NU degrees of freedom. Rows of Gaussian entries are then multivariate t with NU
    /// degrees of freedom and covariance 1/d: elliptical noise. 0: no such scales.
    double student_rows = 0.0;
    /// What the probability that an entry is seen depends on, and how entries seen are weighted. The probabilities of
    /// rows (columns) lie evenly around `seen`, from seen (1 - W) for the first to seen (1 + W) for the last, but for
    /// half a step at the ends; of both, that of an entry is their product over `seen`.
    Missing seen_by = Missing::uniform;
    double seen_spread = 0.0;  ///< W
};

/// Whether both models draw the same blocks, bit for bit, from the same seed, cell and replicate.
[[nodiscard]] bool same_blocks(const SpikedModel& a, const SpikedModel& b);

struct SignalSides {
    arma::mat left;   ///< n x r
    arma::mat right;  ///< d x r
};

struct SpikedSample {
    arma::mat observed;
    arma::mat signal;
    arma::mat noise;
    arma::mat left;   ///< n x r, true left vectors, of length 1
    arma::mat right;  ///< d x r
};

/// Throws usage_error when no sample can be drawn: more strengths than min(n, d), vectors that do not fit, eigenbasis
/// colouring of entries that are not Gaussian, have variances or random scales of their own or of which some are
/// missing, variances of another size, negative or not finite, a probability of being seen that is not above 0 and at
/// most 1,
/// degrees of freedom of rows that are neither 0 nor above 2, a negative strength of a block that is not symmetric,
/// a symmetric block of n other than d, of another colouring than dense, with covariances, entries missing, variances
/// or random scales, or with scores as vectors. `sample` calls this function.
void require_possible(const SpikedModel& model);

/// The true vectors of one replicate, in the coordinates of the block.
[[nodiscard]] SignalSides signal_sides(const SpikedModel& model, const stream::StudySeed& seed, std::string_view cell,
                                       std::uint64_t replicate);

/// Draws one replicate, a pure function of (seed, cell, replicate). Costs one dense product for each covariance that is
/// not diagonal; in the eigenbasis only the vectors are multiplied.
[[nodiscard]] SpikedSample sample(const SpikedModel& model, const stream::StudySeed& seed, std::string_view cell,
                                  std::uint64_t replicate);

}  // namespace spiked::sim

template <>
struct spiked::EnumNames<spiked::sim::Colouring> {
    static constexpr EnumName<spiked::sim::Colouring> table[] = {{spiked::sim::Colouring::dense, "dense"},
                                                                 {spiked::sim::Colouring::eigenbasis, "eigenbasis"}};
};
