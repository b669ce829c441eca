#include "estimators/caches/causal_group.hpp"

#include <algorithm>

#include "core/runtime/error.hpp"

namespace spiked::estimators {
namespace {

bool is_on(const NameOptions& own, const char* key) { return own.choice_or_default(key) == "on"; }

JoinedHeads joined(std::size_t channels, const CacheGroup& group) {
    const std::size_t heads = group.keys + group.values;
    if (heads == 0 || channels % heads != 0) throw precondition_error("{} channels of {} heads", channels, heads);
    return {group.keys, group.values, channels / heads};
}

}  // namespace

CausalOptions causal_options(const NameOptions& own, std::size_t columns) {
    CausalOptions options;
    options.sink = is_on(own, "sink");
    options.basis = own.choice_or_default("basis") == "past";
    options.predict = is_on(own, "ar");
    options.dependent = is_on(own, "dependent");
    options.adapt = is_on(own, "adapt");
    options.same = is_on(own, "same");
    options.live = own.choice_or_default("freeze") == "never";
    if (!options.live) options.freeze = own.whole_or_default("freeze");
    options.update = own.whole("update").value_or(
        std::max<std::size_t>(own.whole_or_default("update"), least_causal_update(columns)));
    options.lambda = own.number("lambda").value_or(options.dependent ? 0.3 : 0.12);
    return options;
}

CausalGroup::CausalGroup(const CacheMethod& method, std::size_t channels, const CacheGroup& group)
    : options(causal_options(method.own, channels)), heads(joined(channels, group)), ids(group.ids) {
    if (options.same && ids.empty())
        throw usage_error(
            "\"{}\" has no token ids here (it predicts a token from the last one of the same id): leave same=on out, "
            "or "
            "use kv run, kv frontier or kv perplexity",
            method.text);
    if (method.own.choice_or_default("weights") == "queries")
        for (const arma::mat& queries : group.queries) weights.push_back(query_exponents(queries));
}

CausalShape CausalGroup::shape(bool scaled) const {
    return scaled ? joined_shape(heads) : CausalShape{(heads.keys + heads.values) * heads.dimension};
}

std::vector<std::int8_t> CausalGroup::exponents(const arma::mat& rows) const {
    if (!scales()) return {};
    if (!joins()) return weights.front();
    const std::size_t first = options.sink && rows.n_rows > 1 ? 1 : 0;
    return joined_exponents(rows.rows(first, std::min<std::size_t>(rows.n_rows, causal_block) - 1), heads, weights);
}

std::size_t CausalGroup::header_size(const CausalShape& shape) const {
    return 2 + shape.scales() + (options.sink ? 2 * shape.columns : 0);
}

}  // namespace spiked::estimators
