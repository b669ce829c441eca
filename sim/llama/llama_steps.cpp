#include "sim/llama/llama_steps.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/runtime/processor.hpp"
#include "sim/llama/float_exp.hpp"

namespace spiked::sim {
namespace {

// Loops run over columns outside and rows inside, the order of memory. Rows are independent and each sum has one order,
// so the width of the registers changes no bit.

#if defined(__x86_64__)
template <class Loops>
__attribute__((target("avx2"), optimize("O3"))) void with_avx2(const Loops& loops) {
    loops();
}
#endif

/// Runs loops over floats, compiled for the widest registers of this processor that the project uses. `loops` must be
/// always inlined.
template <class Loops>
void vectorised(const Loops& loops) {
#if defined(__x86_64__)
    if (processor().avx2) return with_avx2(loops);
#endif
    loops();
}

#define SPIKED_LOOPS __attribute__((always_inline))

/// The keys that the queries of a block of tokens see: query t the keys from oldest[t] (0 if empty) to before + t.
struct Seen {
    arma::uword tokens = 0, before = 0;
    std::span<const arma::uword> oldest;
};

/// Replaces scores by exp(score - the largest of the row), or 0 for keys that a query does not see, and adds them up.
/// Rows are the queries of each head in turn.
void exponentials(arma::fmat& scores, const Seen& seen, float* largest, double* sums) {
    const arma::uword rows = scores.n_rows;
    const arma::uword columns = scores.n_cols;
    const arma::uword tokens = seen.tokens;
    const arma::uword before = seen.before;
    const arma::uword* const oldest = seen.oldest.data();
    const bool all_old = seen.oldest.empty();
    float* const all = scores.memptr();
    vectorised([&]() SPIKED_LOOPS {
        std::fill_n(largest, rows, -std::numeric_limits<float>::infinity());
        std::fill_n(sums, rows, 0.0);
        for (int pass = 0; pass < 2; ++pass) {
            arma::uword end = all_old ? tokens : 0;  // the queries that see key j are begin, .., end - 1
            for (arma::uword j = 0; j < columns; ++j) {
                const arma::uword begin = j > before ? j - before : 0;
                while (end < tokens && oldest[end] <= j) ++end;
                // Where all queries see the key, those of all heads are one run.
                const bool whole = begin == 0 && end == tokens;
                const arma::uword stride = whole ? rows : tokens;
                const arma::uword stop = whole ? rows : end;
                for (arma::uword head = 0; head < rows; head += stride) {
                    float* column = all + j * rows + head;
                    float* most = largest + head;
                    double* sum = sums + head;
                    if (pass == 0) {
                        for (arma::uword t = begin; t < stop; ++t) most[t] = most[t] < column[t] ? column[t] : most[t];
                        continue;
                    }
                    for (arma::uword t = 0; t < begin; ++t) column[t] = 0.0F;
                    for (arma::uword t = begin; t < stop; ++t) {
                        column[t] = float_exp(column[t] - most[t]);
                        sum[t] += static_cast<double>(column[t]);
                    }
                    for (arma::uword t = stop; t < stride; ++t) column[t] = 0.0F;
                }
            }
        }
    });
}

/// Columns `first` to `last`, not copied.
arma::fmat columns_of(const arma::fmat& all, arma::uword first, arma::uword last) {
    return {const_cast<float*>(all.colptr(first)), all.n_rows, last - first + 1, false, true};
}

}  // namespace

arma::fmat rms_norm(const arma::fmat& rows, const arma::fvec& weight, double epsilon) {
    const arma::uword count = rows.n_rows;
    const arma::uword columns = rows.n_cols;
    arma::vec sums(count, arma::fill::zeros);
    arma::fvec scales(count);
    arma::fmat result(count, columns, arma::fill::none);
    const float* from = rows.memptr();
    float* to = result.memptr();
    double* sum = sums.memptr();
    float* scale = scales.memptr();
    const float* weights = weight.memptr();
    vectorised([&]() SPIKED_LOOPS {
        for (arma::uword j = 0; j < columns; ++j)
            for (arma::uword t = 0; t < count; ++t) {
                const double x = static_cast<double>(from[j * count + t]);
                sum[t] += x * x;
            }
        for (arma::uword t = 0; t < count; ++t)
            scale[t] = static_cast<float>(1.0 / std::sqrt(sum[t] / static_cast<double>(columns) + epsilon));
        for (arma::uword j = 0; j < columns; ++j)
            for (arma::uword t = 0; t < count; ++t) to[j * count + t] = from[j * count + t] * scale[t] * weights[j];
    });
    return result;
}

arma::fmat attend(const arma::fmat& queries, const arma::fmat& keys, const arma::fmat& values,
                  std::span<const arma::uword> oldest, std::vector<arma::fmat>* weights) {
    // The scores of this many rows stay in the cache of a processor core for contexts of thousands of tokens.
    constexpr arma::uword rows_at_once = 192;
    const arma::uword dim = keys.n_rows;
    const arma::uword heads = queries.n_cols / dim;
    const arma::uword before = keys.n_cols - queries.n_rows;
    const float scale = 1.0F / std::sqrt(static_cast<float>(dim));
    if (weights != nullptr) weights->assign(heads, arma::fmat(queries.n_rows, keys.n_cols, arma::fill::zeros));
    arma::fmat attended(queries.n_rows, queries.n_cols, arma::fill::none);
    const arma::uword step = std::max<arma::uword>(rows_at_once / heads, 16);
    for (arma::uword first = 0; first < queries.n_rows; first += step) {
        const arma::uword tokens = std::min(step, queries.n_rows - first);
        const arma::uword from = oldest.empty() ? 0 : oldest[first];
        const arma::uword last = before + first + tokens - 1;
        std::vector<arma::uword> own_oldest;
        for (arma::uword t = 0; t < tokens && !oldest.empty(); ++t) own_oldest.push_back(oldest[first + t] - from);
        arma::fmat joined(heads * tokens, dim, arma::fill::none);
        for (arma::uword h = 0; h < heads; ++h)
            joined.rows(h * tokens, (h + 1) * tokens - 1) =
                scale * queries.submat(first, h * dim, first + tokens - 1, (h + 1) * dim - 1);
        const arma::fmat seen_keys = columns_of(keys, from, last);
        const arma::fmat seen_values = columns_of(values, from, last);
        arma::fmat scores = joined * seen_keys;
        arma::fvec factors(heads * tokens);
        arma::vec sums(heads * tokens);
        exponentials(scores, {tokens, before + first - from, own_oldest}, factors.memptr(), sums.memptr());
        for (arma::uword t = 0; t < factors.n_elem; ++t) factors(t) = static_cast<float>(1.0 / sums(t));
        joined = scores * seen_values.t();
        joined.each_col() %= factors;
        for (arma::uword h = 0; h < heads; ++h) {
            attended.submat(first, h * dim, first + tokens - 1, (h + 1) * dim - 1) =
                joined.rows(h * tokens, (h + 1) * tokens - 1);
            if (weights == nullptr) continue;
            arma::fmat own = scores.rows(h * tokens, (h + 1) * tokens - 1);
            own.each_col() %= factors.rows(h * tokens, (h + 1) * tokens - 1);
            (*weights)[h].submat(first, from, first + tokens - 1, last) = own;
        }
    }
    return attended;
}

arma::fmat attention_weights(const arma::fmat& queries, const arma::fmat& keys) {
    arma::fmat weights = queries * keys.t() / std::sqrt(static_cast<float>(keys.n_cols));
    arma::fvec factors(weights.n_rows);
    arma::vec sums(weights.n_rows);
    exponentials(weights, {queries.n_rows, keys.n_rows - queries.n_rows, {}}, factors.memptr(), sums.memptr());
    for (arma::uword t = 0; t < weights.n_rows; ++t) factors(t) = static_cast<float>(1.0 / sums(t));
    weights.each_col() %= factors;
    return weights;
}

arma::fmat silu_product(arma::fmat gate, const arma::fmat& up) {
    float* values = gate.memptr();
    const float* factors = up.memptr();
    const arma::uword count = gate.n_elem;
    vectorised([&]() SPIKED_LOOPS {
        for (arma::uword i = 0; i < count; ++i) values[i] = values[i] / (1.0F + float_exp(-values[i])) * factors[i];
    });
    return gate;
}

arma::fmat swiglu(const arma::fmat& rows, const arma::fmat& gate, const arma::fmat& up, const arma::fmat& down) {
    return silu_product(rows * gate, rows * up) * down;
}

arma::vec log_probabilities_of(const arma::fmat& states, const WeightMatrix& head,
                               std::span<const std::int32_t> tokens) {
    // The logits of this many tokens of the vocabulary stay in the cache of a processor core.
    constexpr arma::uword columns_at_once = 1024;
    const arma::uword rows = states.n_rows;
    arma::vec result(rows, arma::fill::none);
    arma::fvec largest(rows), before(rows);
    arma::vec sums(rows, arma::fill::zeros);
    arma::fvec wanted(rows, arma::fill::zeros);
    largest.fill(-std::numeric_limits<float>::infinity());
    float* most = largest.memptr();
    float* last = before.memptr();
    double* sum = sums.memptr();
    for (arma::uword first = 0; first < head.outputs(); first += columns_at_once) {
        const arma::uword columns = std::min(columns_at_once, head.outputs() - first);
        const arma::fmat logits = head.part(first, columns).product(states);
        const float* all = logits.memptr();
        vectorised([&]() SPIKED_LOOPS {
            std::copy_n(most, rows, last);
            for (arma::uword j = 0; j < columns; ++j)
                for (arma::uword t = 0; t < rows; ++t)
                    most[t] = most[t] < all[j * rows + t] ? all[j * rows + t] : most[t];
            for (arma::uword t = 0; t < rows; ++t) sum[t] *= static_cast<double>(float_exp(last[t] - most[t]));
            for (arma::uword j = 0; j < columns; ++j)
                for (arma::uword t = 0; t < rows; ++t)
                    sum[t] += static_cast<double>(float_exp(all[j * rows + t] - most[t]));
        });
        for (arma::uword t = 0; t < rows; ++t)
            if (const auto token = static_cast<arma::uword>(tokens[t]); token >= first && token < first + columns)
                wanted(t) = logits(t, token - first);
    }
    for (arma::uword t = 0; t < rows; ++t)
        result(t) = static_cast<double>(wanted(t)) - static_cast<double>(largest(t)) - std::log(sums(t));
    return result;
}

void to_log_probabilities(arma::fmat& rows) {
    arma::fvec shift = arma::max(rows, 1);
    arma::vec sums(rows.n_rows, arma::fill::zeros);
    const arma::uword count = rows.n_rows;
    const arma::uword columns = rows.n_cols;
    const float* all = rows.memptr();
    const float* largest = shift.memptr();
    double* sum = sums.memptr();
    vectorised([&]() SPIKED_LOOPS {
        for (arma::uword j = 0; j < columns; ++j)
            for (arma::uword t = 0; t < count; ++t)
                sum[t] += static_cast<double>(float_exp(all[j * count + t] - largest[t]));
    });
    for (arma::uword t = 0; t < rows.n_rows; ++t)
        shift(t) = static_cast<float>(static_cast<double>(shift(t)) + std::log(sums(t)));
    rows.each_col() -= shift;
}

#undef SPIKED_LOOPS

}  // namespace spiked::sim
