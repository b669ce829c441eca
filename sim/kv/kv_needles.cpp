#include "sim/kv/kv_needles.hpp"

#include <fmt/format.h>

#include <cmath>

#include "core/runtime/error.hpp"
#include "core/text/json.hpp"
#include "sim/random/normal.hpp"
#include "sim/random/permutation.hpp"

namespace spiked::sim {
namespace {

constexpr double smallest_fraction = 1e-12;

}  // namespace

KvNeedles::KvNeedles(const KvLikeOptions& options, const KvLikeCache& cache)
    : layer_(cache.layers - 1),
      heads_(cache.heads * options.queries.heads),
      dim_(options.head_dim),
      logit_(cache.needle_logit),
      dtype_(cache.dtype),
      directions_(answers, options.head_dim) {
    // The first token is free; a needle takes two tokens and its question one.
    const std::size_t most = (options.tokens - 1) / 3;
    if (cache.needles > most)
        throw usage_error("{} needles and as many questions do not fit {} tokens ({} do): give fewer, or more tokens",
                          cache.needles, options.tokens, most);
    if (!(options.noise.scale > 0.0))
        throw usage_error(
            "needles are distinguished by the noise of their tokens, and noise.scale = {} leaves none: give "
            "noise.scale above 0",
            options.noise.scale);
    if (heads_ == 0) throw usage_error("needles need queries as questions and there are none: give query heads");
    if (!(logit_ > 0.0) || !std::isfinite(logit_))
        throw usage_error("a needle with a logit of {} is not found: give a number above 0", logit_);
    context_ = options.tokens - cache.needles;
    const auto stream = [&](const char* purpose, stream::Role role, std::uint64_t replicate) {
        return stream::Stream(cache.seed, fmt::format("{} {}", cache.cell, purpose), role, replicate);
    };
    const auto order =
        stream::random_order(stream("needle places", stream::Role::token_order, cache.replicate), (context_ - 1) / 2);
    const auto draws = stream("needle answers", stream::Role::query, cache.replicate);
    for (std::size_t n = 0; n < cache.needles; ++n) {
        const std::size_t key_at = 1 + 2 * order[n];
        const auto answer = static_cast<std::int32_t>(draws.words(static_cast<std::uint32_t>(n))[0] % answers);
        needles_.push_back({key_at, key_at + 1, context_ + n, answer});
    }
    stream::fill_normal(stream("needle directions", stream::Role::projection, 0),
                        {directions_.memptr(), directions_.n_elem});
    directions_ = arma::normalise(directions_, 2, 1);
}

void KvNeedles::plant(KvLikeSample& sample) const {
    const double root = std::sqrt(static_cast<double>(dim_));
    const arma::mat& keys = sample.key.observed;
    arma::mat moments = keys.t() * keys;
    moments.diag() += smallest_fraction * arma::trace(moments);  // regular also with fewer tokens than channels
    const double value_norm = arma::norm(sample.value.observed, "fro") / std::sqrt(static_cast<double>(keys.n_rows));
    for (const Needle& needle : needles_) {
        const arma::rowvec key = keys.row(needle.value_at);
        const arma::rowvec discriminant = arma::solve(moments, key.t(), arma::solve_opts::likely_sympd).t();
        for (auto& queries : sample.queries)
            queries.row(needle.asked_at) = logit_ * root / arma::dot(discriminant, key) * discriminant;
        sample.value.observed.row(needle.value_at) +=
            value_norm * directions_.row(static_cast<arma::uword>(needle.answer));
    }
}

Metadata KvNeedles::metadata() const {
    Json list = Json::array();
    for (const Needle& needle : needles_)
        list.push(Json::object({{"key_at", needle.key_at},
                                {"value_at", needle.value_at},
                                {"asked_at", needle.asked_at},
                                {"answer", static_cast<std::int64_t>(needle.answer)}}));
    return {{"needles", list.text()},
            {"context", std::to_string(context_)},
            {"readout", Json::object({{"layer", layer_}, {"first_value_token", 0}, {"rms_eps", 1e-5}}).text()}};
}

std::vector<TensorSource> KvNeedles::tensors() const {
    std::vector<TensorSource> tensors;
    const auto add = [&](const char* name, std::vector<std::size_t> shape, auto entry) {
        const std::size_t columns = shape.back();
        tensors.push_back({fmt::format("readout.{}", name), dtype_, std::move(shape),
                           [columns, entry](std::uint64_t first, std::span<double> out) {
                               for (std::size_t i = 0; i < out.size(); ++i)
                                   out[i] = entry((first + i) / columns, (first + i) % columns);
                           }});
    };
    const auto zero = [](std::size_t, std::size_t) { return 0.0; };
    const auto one = [](std::size_t, std::size_t) { return 1.0; };
    add("residual", {needles_.size(), dim_}, zero);
    add("wo", {dim_, heads_ * dim_}, [dim = dim_, heads = heads_](std::size_t row, std::size_t column) {
        return column % dim == row ? 1.0 / static_cast<double>(heads) : 0.0;
    });
    add("mlp_norm", {dim_}, one);
    add("gate", {1, dim_}, zero);
    add("up", {1, dim_}, zero);
    add("down", {dim_, 1}, zero);
    add("final_norm", {dim_}, one);
    add("unembed", {answers, dim_}, [this](std::size_t row, std::size_t column) { return directions_(row, column); });
    return tensors;
}

}  // namespace spiked::sim
