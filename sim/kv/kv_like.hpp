#pragma once
#include <armadillo>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/json.hpp"
#include "sim/io/dtype.hpp"
#include "sim/kv/rope.hpp"
#include "sim/random/address.hpp"
#include "sim/spiked/entry_law.hpp"

namespace spiked::sim {

/// How the coefficient of a context direction varies over the tokens t = 0, 1, ..; its mean square is 1.
///   smooth   sqrt(2) cos(2 pi f t + p), p uniform, f uniform on (i, i + 1) / period for direction i = 0, 1, ..
///   random   independent standard normals
enum class ContextCourse { smooth, random };
/// The channels that may be outliers: all, or only those of the slower half of the rotary pairs, as in trained models.
enum class OutlierPlace { slow, any };

/// `smooth` or `random`, `slow` or `any`; throw usage_error with the nearest name.
[[nodiscard]] ContextCourse parse_context_course(std::string_view text);
[[nodiscard]] OutlierPlace parse_outlier_place(std::string_view text);

/// The part of the hidden states that the tokens of a prompt have in common: `rank` orthonormal directions, drawn for
/// each replicate.
struct KvContext {
    std::size_t rank = 4;
    double decay = 0.7;  ///< ratio of the strengths of successive directions, 0 < decay <= 1
    ContextCourse course = ContextCourse::smooth;
    double period = 256.0;  ///< in tokens; for smooth courses
    /// Root mean square norm of the context part of a row, relative to a noise norm of 1. The sides have different
    /// values because a projection may keep more of the context than of the token part.
    double key = 1.4;
    double value = 0.7;
    double query = 0.7;
};

/// The part of the hidden states that is specific to each token: A^{1/2} X B^{1/2} over tokens and hidden coordinates.
struct KvNoise {
    double scale = 1.0;  ///< root mean square norm of the rows of Z
    EntryLaw entries = {};
    double token_correlation = 0.0;  ///< A is AR(1) over the tokens, -1 < rho < 1
    double hidden_decay = 6.0;       ///< B is diagonal, eigenvalues proportional to exp(-decay (j - 1/2) / hidden)
};

/// Key channels of large mean and standard deviation, the same for all tokens, before the rotary embedding.
struct KvOutliers {
    std::size_t channels = 6;
    double mean = 5.0;   ///< absolute mean, in units of d^(-1/2); signs are random
    double scale = 1.5;  ///< factor on those columns of the key projection, so on context and noise
    OutlierPlace place = OutlierPlace::slow;
};

/// The attention sink, row 0. Its hidden state differs from those of all other tokens, so its rows are fixed vectors of
/// the model. The key is parallel to the mean of the queries, opposite to the mean of the other keys, so it attracts
/// attention; the value is small.
struct KvSink {
    double key = 1.2;         ///< norm of the signal of its key
    double value = 0.05;      ///< norm of the signal of its value, in a random direction
    double token_part = 0.1;  ///< factor on the noise of its row
};

struct KvRotary {
    Rope rope = {};
    std::uint64_t position_start = 0;
};

struct KvQueries {
    std::size_t heads = 2;  ///< query heads of each key and value head; 0: no queries
    double mean = 0.25;     ///< norm of the mean of all queries, relative to their noise
    /// Queries are multiplied by scale d. The attention logits q k / sqrt(d) of noise with noise then have the standard
    /// deviation `scale`.
    double scale = 1.0;
};

/// A generator of blocks like those of a KV cache, with a known decomposition S~ = S + Z (not in the paper, which uses
/// real dumps only).
///
/// Hidden states (tokens x hidden) are h = context + token part; keys, values and queries are h W_K, h W_V, h W_Q with
/// independent N(0, 1/d) entries of W, plus the mean of the outlier channels (keys, queries), then the rotary embedding
/// (keys, queries). S is the sum of context, outlier mean and sink, Z is the token part. Both are projected and
/// embedded in the same way, so the decomposition is exact.
///
/// Scale: over the draw of W, entries of Z have variance noise.scale^2 / d, so its rows have norm about noise.scale.
/// The variance is scale^2 times that in outlier channels and token_part^2 times that in the sink's row. Given W, the
/// noise of values, and of keys before the embedding, is separable with the covariances below; after the embedding the
/// column covariance of a key depends on its position. S has rank signal_rank() before the embedding. After it more
/// singular values are not zero (with the defaults some 43 above 1e-10 of the first, 34 above 1e-3, 14 above 1e-1);
/// true_signal() counts them.
///
/// The defaults reproduce what the dumps of small models (rope-lm, MiniLM, needle) and the paper's tables for
/// Llama-3.1-8B have in common. The table gives the relative error ||S~ - best rank-r approximation|| / ||S~|| in
/// blocks of 128 x 128, the mean pairwise cosine of rows, and the largest root mean square of a channel over the median
/// one:
///
///                        r = 1       r = 5       r = 20      cosine      channel
///   key, before RoPE     .71         .47         .34         .43         4.7       here
///                        .61-.66     .40-.52     .16-.21     .42-.50     3.8-4.8   rope-lm, needle
///   key                  .76         .58         .41         .38         4.5       here
///                        .84-.87     .68-.70     .35-.42     .20-.25     3.1-4.6   rope-lm, needle
///                        .74         .50                     .38         1.9       MiniLM (d = 32, no RoPE)
///                        .63         .52 (r 5.6)             .47                   the paper
///   value                .88         .77         .56         .11         1.6       here
///                        .90-.95     .64-.86     .19-.60     .04-.11     1.4-1.6   rope-lm, needle
///                        .89         .66                     .14         1.6       MiniLM
///                        .90         .78 (r 5.6)             .12                   the paper
///
/// As in MiniLM, token 0 has a small value, a key opposite to the others, and a large part of the attention (a half
/// with the defaults, .1-.3 in MiniLM; rope-lm and needle have no sink). The tail of real spectra decays faster than
/// here (r = 20 before RoPE).
struct KvLikeOptions {
    std::size_t tokens = 128;
    std::size_t head_dim = 128;  ///< d, even
    std::size_t hidden = 512;
    KvContext context = {};
    KvNoise noise = {};
    KvOutliers outliers = {};
    std::optional<KvSink> sink = KvSink{};
    std::optional<KvRotary> rotary = KvRotary{};
    KvQueries queries = {};
    bool fresh_projections = false;  ///< draw W and outlier channels for each replicate, not once for the cell
};

/// Throws usage_error for a number outside its range, with its name in `describe`, and for sizes that do not fit
/// together.
void require_possible(const KvLikeOptions& options);

/// The options like the [model] of a study file: everything that affects the numbers, in a fixed order.
[[nodiscard]] Json describe(const KvLikeOptions& options);

/// The rank of S before the rotary embedding, at most min(tokens, d): that of the context, plus one for keys with an
/// outlier mean or a sink (which are parallel), plus one for values with a sink.
struct KvSignalRank {
    std::size_t key = 0;
    std::size_t value = 0;
};
[[nodiscard]] KvSignalRank signal_rank(const KvLikeOptions& options);

/// A, tokens x tokens: the row covariance of Z, including the factor of the sink's row.
[[nodiscard]] arma::mat row_covariance(const KvLikeOptions& options);

/// The parameters of one head. Projections are hidden x d and include the scale of the outlier channels.
struct KvLikeModel {
    arma::mat key_projection;
    arma::mat value_projection;
    std::vector<arma::mat> query_projections;  ///< one for each query head
    arma::uvec outlier_channels;
    arma::rowvec key_mean;    ///< before the embedding, as all means here
    arma::rowvec query_mean;  ///< has norm queries.mean, without the factor queries.scale d
    arma::rowvec sink_key;    ///< empty without a sink, as is sink_value
    arma::rowvec sink_value;

    /// B, d x d: the column covariance of Z = A^{1/2} X B^{1/2} before the embedding, with entries of X of variance
    /// 1/d.
    [[nodiscard]] arma::mat key_covariance(const KvLikeOptions& options) const;
    [[nodiscard]] arma::mat value_covariance(const KvLikeOptions& options) const;
};

/// Three tokens x d matrices with observed = signal + noise.
struct KvLikePart {
    arma::mat observed;
    arma::mat signal;
    arma::mat noise;
};

struct KvLikeSample {
    KvLikePart key;
    KvLikePart value;
    std::vector<arma::mat> queries;  ///< tokens x d, one for each query head
    arma::mat course;  ///< tokens x rank: coefficients times strengths of the directions (squared strengths sum to 1)
};

/// A key and value head with its query heads. Heads of one seed and cell have the same hidden states in a replicate,
/// but different projections.
class KvLikeHead {
public:
    /// Throws like require_possible, and usage_error for a head beyond the 2^32 entries of a stream.
    KvLikeHead(const KvLikeOptions& options, const stream::StudySeed& seed, std::string cell, std::size_t head = 0);

    [[nodiscard]] const KvLikeOptions& options() const { return options_; }
    /// Draws a replicate, a pure function of (seed, cell, replicate, head): the same in any order and on any thread.
    /// Adding tokens, heads, replicates or query heads does not change the others (up to rounding). Costs a Gaussian of
    /// tokens x hidden and a product with hidden x d for keys, values and each query head: 3 ms with the defaults, 2
    /// without queries, 4 more for fresh projections.
    [[nodiscard]] KvLikeSample sample(std::uint64_t replicate) const;
    /// The parameters of a replicate; the same for all replicates unless options.fresh_projections is set.
    [[nodiscard]] KvLikeModel model(std::uint64_t replicate = 0) const;

private:
    [[nodiscard]] KvLikeModel draw_model(std::uint64_t replicate) const;

    KvLikeOptions options_;
    stream::StudySeed seed_;
    std::string cell_;
    std::size_t head_;
    std::optional<KvLikeModel> shared_;  ///< empty for fresh projections
};

/// The target of estimators: the singular values of S that are not negligible, with their vectors.
struct TrueSignal {
    arma::vec singular_values;  ///< r, descending
    arma::mat left;             ///< tokens x r
    arma::mat right;            ///< d x r
};
/// Omits singular values of at most `floor` times the largest. Throws postcondition_error when LAPACK fails.
[[nodiscard]] TrueSignal true_signal(const arma::mat& signal, double floor = 1e-10);

/// The cache that write_kv_like writes. `replicate` is the number of a prompt: dumps of one seed and cell that differ
/// in it have the same model and different tokens.
struct KvLikeCache {
    std::size_t layers = 2;  ///< each with its own model
    std::size_t heads = 2;   ///< key and value heads
    DType dtype = DType::f16;
    stream::StudySeed seed = {};
    std::string cell = "kv-like";
    std::uint64_t replicate = 0;
    std::string prompt_id;     ///< empty: composed of cell, seed and replicate
    std::size_t needles = 0;   ///< planted in the last layer, with a question for each (kv_needles.hpp)
    double needle_logit = 12;  ///< of a question and its needle
};

/// Writes a dump in safetensors, atomically, with the names and metadata that kv_dump.hpp and dump_view.hpp read:
/// tensors layers.{layer}.key|value|query, [head, token, dim], model "kv-like", keys post-rope ("none" without an
/// embedding), attention causal. Query head q attends to key and value head floor(q / number of query heads of each).
/// Head h of layer l is KvLikeHead(options, seed, "CELL layer l", h), in the last layer with needles if there are any.
/// Needs memory for one layer. Throws usage_error like require_possible and for a type that is_block_dtype rejects,
/// output_error like write_safetensors.
void write_kv_like(const std::string& path, const KvLikeOptions& options, const KvLikeCache& cache);

}  // namespace spiked::sim
