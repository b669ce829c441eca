#include <fmt/format.h>

#include "sim/kv/kv_like.hpp"
#include "sim/random/permutation.hpp"
#include "validation/claims/parts/block_criteria.hpp"
#include "validation/claims/parts/fixture.hpp"

// The claim on the rotary embedding and the order of tokens, on simulated keys.

namespace spiked::validation {
namespace {

/// The tail energy of a block of keys as stored, divided by the tail energy after undoing the rotary embedding, or with
/// the tokens of the sequence in random order.
Trial rope_trial(const TrialPlace& place, Against against) {
    sim::KvLikeOptions options;
    options.tokens = 8 * place.size;
    options.head_dim = place.size;
    options.queries.heads = 0;
    options.sink.reset();
    options.fresh_projections = true;
    const sim::Rope rope = options.rotary->rope;
    if (place.control_is("no-rotation")) options.rotary.reset();
    auto head = std::make_shared<sim::KvLikeHead>(options, place.seed, place.cell);
    return [=](std::uint64_t replicate) {
        arma::mat keys = head->sample(replicate).key.observed;
        const auto shuffled = [&](std::size_t which) -> arma::mat {
            return keys.rows(arma::conv_to<arma::uvec>::from(
                stream::random_order(order_stream(place, replicate, which), keys.n_rows)));
        };
        if (place.control_is("no-order")) keys = shuffled(1);
        const arma::mat first = keys.head_rows(place.size);
        if (against == Against::derotated) {
            const arma::mat derotated = sim::undo_rope(first, rope, 0.0);
            return tail_energy(first) / tail_energy(derotated);
        }
        return tail_energy(first) / tail_energy(shuffled(0).head_rows(place.size));
    };
}

Criterion simulated_rope(Against against) {
    return rope_cost(against, "attention-like keys", {{128, 100}}, {},
                     [=](const TrialPlace& place) { return rope_trial(place, against); });
}

}  // namespace

double tail_energy(const arma::mat& block) {
    const arma::vec values = eigenvalues_of(block);
    return 1.0 - arma::accu(values.head(4)) / arma::accu(values);
}

stream::Stream order_stream(const TrialPlace& place, std::uint64_t replicate, std::size_t which) {
    return {place.seed, fmt::format("{} order {}", place.cell, which), stream::Role::token_order, replicate};
}

Criterion rope_cost(Against against, std::string_view where, std::vector<SizePlan> quick, std::vector<SizePlan> full,
                    std::function<Trial(const TrialPlace&)> prepare) {
    const bool derotated = against == Against::derotated;
    const std::string other =
        derotated ? "the same with the rotary embedding undone" : "the same of tokens in random order";
    return {.form = derotated ? Form::corrected : Form::printed,
            .name = derotated ? "rotation" : "order",
            .measures = fmt::format("energy of key blocks outside their first four directions, as stored over {}; {}",
                                    other, where),
            .summary = Summary::mean,
            .prepare = std::move(prepare),
            .region = [=](std::size_t) { return derotated ? at_least(1.2) : at_most(0.95); },
            .quick = std::move(quick),
            .full = std::move(full),
            .negative_controls = {
                derotated ? Control{"no-rotation", "keys without a rotary embedding"}
                          : Control{"no-order", "a sequence whose tokens are in random order to begin with"}}};
}

std::vector<Claim> rope_claims() {
    return {{.id = "rope.cost",
             .place = "paper, introduction, KV cache blocks as spiked random matrices",
             .statement = "consecutive keys share more low-rank structure than keys in random order",
             .plain = {"Keys in sequence share more structure than keys in random order.",
                       "energy outside four directions, over random", "order"},
             .corrected = "and still less than before the rotary embedding, which spreads their energy over more "
                          "directions",
             .criteria = {simulated_rope(Against::shuffled), simulated_rope(Against::derotated)}}};
}

}  // namespace spiked::validation
