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

/// Coefficients of a context direction over the tokens t = 0, 1, ..; each has mean square 1.
///   smooth   sqrt(2) cos(2 pi f t + p), p uniform, f uniform on (i, i + 1) / period for direction i = 0, 1, ..
///   random   independent standard normals
enum class ContextCourse { smooth, random };
/// Where the outlier channels may lie: anywhere, or only in the slower half of the rotary pairs, as in trained models.
enum class OutlierPlace { slow, any };

/// `smooth` or `random`, `slow` or `any`; throw usage_error with the nearest.
[[nodiscard]] ContextCourse parse_context_course(std::string_view text);
[[nodiscard]] OutlierPlace parse_outlier_place(std::string_view text);

/// What the tokens of a prompt share: `rank` orthonormal directions of the hidden states, drawn for each replicate.
struct KvContext {
    std::size_t rank = 4;
    double decay = 0.7;  ///< strength of a direction over that of the one before it, 0 < decay <= 1
    ContextCourse course = ContextCourse::smooth;
    double period = 256.0;  ///< tokens; of smooth courses
    /// Root mean square norm of the context's part of a row, where the noise's is 1. The sides differ because a
    /// projection may read context better than it reads tokens.
    double key = 1.4;
    double value = 0.7;
    double query = 0.7;
};

/// The part of each token's own: A^{1/2} X B^{1/2} over tokens and hidden states.
struct KvNoise {
    double scale = 1.0;  ///< root mean square norm of its rows
    EntryLaw entries = {};
    double token_correlation = 0.0;  ///< A is AR(1) over the tokens, -1 < rho < 1
    double hidden_decay = 6.0;       ///< B is diagonal, eigenvalues proportional to exp(-decay (j - 1/2) / hidden)
};

/// Key channels of large mean and spread, the same for all tokens, before the rotary embedding.
struct KvOutliers {
    std::size_t channels = 6;
    double mean = 5.0;   ///< absolute mean, in units of d^(-1/2); signs are random
    double scale = 1.5;  ///< factor on those columns of the key projection: both context and noise
    OutlierPlace place = OutlierPlace::slow;
};

/// Row 0. Its hidden state is one that no other token has, so its rows are fixed vectors of the model: the key points
/// where the queries' mean points, opposite to the other keys' mean, and draws attention; the value is small.
struct KvSink {
    double key = 1.2;         ///< norm of the signal of its key
    double value = 0.05;      ///< and of its value, in a random direction
    double token_part = 0.1;  ///< factor on its own noise
};

struct KvRotary {
    Rope rope = {};
    std::uint64_t position_start = 0;
};

struct KvQueries {
    std::size_t heads = 2;  ///< query heads that share a key and value head; 0: no queries are made
    double mean = 0.25;     ///< norm of the mean that all queries have, in units of their noise
    /// Queries are multiplied by scale d, so that noise against noise gives products over sqrt(d), the logits of
    /// attention, a standard deviation of `scale`.
    double scale = 1.0;
};

/// Blocks like those of a KV cache with a known split S~ = S + Z (not in the paper, which has real dumps only).
///
/// Hidden states (tokens x hidden) are h = context + token part; keys, values and queries are h W_K, h W_V, h W_Q with
/// independent N(0, 1/d) entries of W, plus the mean of the outlier channels (keys, queries), then the rotary embedding
/// (keys, queries). S is all that comes from context, outlier mean and sink; Z is what comes from the token part. Both
/// go through the same projection and embedding, so the split is exact.
///
/// Scale: entries of Z have variance noise.scale^2 / d over the draw of W, rows norm about 1; in
/// outlier channels scale^2 times that, in the sink's row token_part^2 times that. For given W values, and keys before
/// the embedding, have separable noise with the covariances below; after it a key's column covariance depends on its
/// position. S has rank signal_rank() before the embedding; after it more singular values are not zero (defaults:
/// some 43 above 1e-10 of the first, 34 above 1e-3, 14 above 1e-1), which true_signal() counts.
///
/// The defaults follow what the dumps of small models (rope-lm, MiniLM, needle) and the paper's tables for
/// Llama-3.1-8B have in common. Share ||S~ - its best rank-r part|| / ||S~|| in blocks of 128 x 128, mean pairwise
/// cosine of rows, largest channel (root mean square) over the median one:
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
/// As in MiniLM, token 0 has a small value, a key turned away from the others, and a good part of the attention (a half
/// at the defaults, .1-.3 there; rope-lm and needle have no sink). What real spectra have and these do not: a fast
/// decay of the tail (r = 20 before RoPE).
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
    bool fresh_projections = false;  ///< W and outlier channels drawn for each replicate, not once for the cell
};

/// Throws usage_error for a number outside its range, naming it as `describe` does, and for parts that do not fit.
void require_possible(const KvLikeOptions& options);

/// The options as a study file writes its [model]: what can change a number, in a fixed order.
[[nodiscard]] Json describe(const KvLikeOptions& options);

/// Rank of S before the rotary embedding, at most tokens and d: the context's, one more for the outlier mean or the
/// sink of keys (they share a direction), one more for the sink of values.
struct KvSignalRank {
    std::size_t key = 0;
    std::size_t value = 0;
};
[[nodiscard]] KvSignalRank signal_rank(const KvLikeOptions& options);

/// A, tokens x tokens: the row covariance of Z, the sink's row with its factor.
[[nodiscard]] arma::mat row_covariance(const KvLikeOptions& options);

/// The fixed part of one head. Projections are hidden x d and hold the scale of the outlier channels.
struct KvLikeModel {
    arma::mat key_projection;
    arma::mat value_projection;
    std::vector<arma::mat> query_projections;  ///< one a query head
    arma::uvec outlier_channels;
    arma::rowvec key_mean;    ///< before the embedding, like all means
    arma::rowvec query_mean;  ///< of norm queries.mean: not yet multiplied by queries.scale d
    arma::rowvec sink_key;    ///< empty without a sink, like sink_value
    arma::rowvec sink_value;

    /// B, d x d: the column covariance of Z before the embedding, Z = A^{1/2} X B^{1/2}, entries of X of variance 1/d.
    [[nodiscard]] arma::mat key_covariance(const KvLikeOptions& options) const;
    [[nodiscard]] arma::mat value_covariance(const KvLikeOptions& options) const;
};

/// tokens x d each; observed = signal + noise.
struct KvLikePart {
    arma::mat observed;
    arma::mat signal;
    arma::mat noise;
};

struct KvLikeSample {
    KvLikePart key;
    KvLikePart value;
    std::vector<arma::mat> queries;  ///< tokens x d, one a query head
    arma::mat course;  ///< tokens x rank: coefficients times strengths of the directions (squares sum to 1)
};

/// One key and value head with its query heads. Heads of one seed and cell share the hidden states of a replicate and
/// have projections of their own.
class KvLikeHead {
public:
    /// Throws like require_possible, and usage_error for a head beyond the 2^32 entries of a stream.
    KvLikeHead(const KvLikeOptions& options, const stream::StudySeed& seed, std::string cell, std::size_t head = 0);

    [[nodiscard]] const KvLikeOptions& options() const { return options_; }
    /// A pure function of (seed, cell, replicate, head): the same in any order and on any thread. Adding tokens, heads,
    /// replicates or query heads leaves the others what they were (up to rounding). Cost: a Gaussian of tokens x
    /// hidden, a product with hidden x d for keys, values and each query head: 3 ms at the defaults, 2 without queries,
    /// 4 more for fresh projections.
    [[nodiscard]] KvLikeSample sample(std::uint64_t replicate) const;
    /// The projections behind a replicate; the same for all of them unless they are fresh.
    [[nodiscard]] KvLikeModel model(std::uint64_t replicate = 0) const;

private:
    [[nodiscard]] KvLikeModel draw_model(std::uint64_t replicate) const;

    KvLikeOptions options_;
    stream::StudySeed seed_;
    std::string cell_;
    std::size_t head_;
    std::optional<KvLikeModel> shared_;  ///< unless fresh
};

/// What an estimator should find: the singular values of S that are not zero next to the first, with their vectors.
struct TrueSignal {
    arma::vec singular_values;  ///< r, descending
    arma::mat left;             ///< tokens x r
    arma::mat right;            ///< d x r
};
/// Values at most `floor` times the largest are left out. Throws bug when LAPACK fails.
[[nodiscard]] TrueSignal true_signal(const arma::mat& signal, double floor = 1e-10);

/// Which cache to write. `replicate` stands for a prompt: dumps of one seed and cell with different ones have the same
/// model and other tokens.
struct KvLikeCache {
    std::size_t layers = 2;  ///< each a model of its own
    std::size_t heads = 2;   ///< key and value heads
    DType dtype = DType::f16;
    stream::StudySeed seed = {};
    std::string cell = "kv-like";
    std::uint64_t replicate = 0;
    std::string prompt_id;     ///< empty: made of cell, seed and replicate
    std::size_t needles = 0;   ///< planted in the last layer, and asked for (kv_needles.hpp)
    double needle_logit = 12;  ///< of a question with its needle
};

/// A dump in safetensors with the names and metadata that kv_dump.hpp and dump_view.hpp read: tensors
/// layers.{layer}.key|value|query, [head, token, dim], model "kv-like", keys post-rope (none without an embedding),
/// attention causal. Query head q reads key and value head floor(q / number of query heads of each). Head h of layer l
/// is KvLikeHead(options, seed, "CELL layer l", h), with needles in the last one where they are asked for. Whole or not
/// at all; memory of one layer. Throws usage_error like require_possible and for a type that holds no blocks,
/// write_error like write_safetensors.
void write_kv_like(const std::string& path, const KvLikeOptions& options, const KvLikeCache& cache);

}  // namespace spiked::sim
