#include <fmt/format.h>

#include <algorithm>

#include "core/runtime/call_once.hpp"
#include "sim/kv/dump_view.hpp"
#include "validation/claims/parts/block_criteria.hpp"
#include "validation/claims/spectrum_gain.hpp"

// What a transform code gains over TurboQuant on the heads of a dump, and what their spectra predict.

namespace spiked::validation {
namespace {

constexpr std::size_t most_heads = 8;
constexpr std::size_t least_tokens = 512;
constexpr std::size_t most_tokens = 4096;
constexpr std::size_t gain_trials = 16;

/// The rows of a head, and what does not depend on the rotation of tq-mse.
struct CodedHead {
    arma::mat rows;
    BitsAndError code;
    double predicted = 0.0;
};

/// Some heads of a side of a dump, their first 4096 tokens, keys without their rotary embedding where the dump states
/// it.
struct DumpHeads {
    std::shared_ptr<const OpenDumps> open;
    std::vector<const DumpHeadPlace*> places;

    [[nodiscard]] arma::mat rows(const DumpHeadPlace& at) const {
        const sim::KvDump& dump = *open->dumps[at.dump];
        const sim::DumpView view{.undo_rotary = at.tensor->side == Side::key && sim::has_rotary(dump)};
        const stream::Stream nothing_random({}, "", stream::Role::token_order, 0);
        return sim::DumpHead(dump, *at.tensor, at.head, view, nothing_random)
            .read_block(0, std::min(at.tensor->tokens, most_tokens));
    }
    [[nodiscard]] CodedHead coded(const DumpHeadPlace& at, const TrialPlace& place) const {
        CodedHead head{rows(at), {}, 0.0};
        const double flat = by_turboquant(head.rows, {}).bits;
        head.code = by_causal_klt(head.rows, flat, !place.control_is(without_basis));
        const arma::mat seen =
            place.control_is(with_other_columns) ? with_shuffled_columns(head.rows, place, 0) : head.rows;
        head.predicted = water_filled_gain(head.rows, seen, flat);
        return head;
    }
};

/// All of them, coded when a trial first needs them.
struct CodedHeads {
    CallOnce once;
    std::vector<CodedHead> heads;
};

DumpHeads heads_of(const std::shared_ptr<const OpenDumps>& open, std::size_t dump, Side side) {
    DumpHeads found{open, {}};
    for (const auto& head : open->heads)
        if (head.dump == dump && head.tensor->side == side && head.tensor->tokens >= least_tokens)
            found.places.push_back(&head);
    const std::size_t all = found.places.size();
    for (std::size_t i = 0; i < most_heads && all > most_heads; ++i)
        found.places[i] = found.places[i * all / most_heads];
    found.places.resize(std::min(all, most_heads));
    std::erase_if(found.places, [&](const DumpHeadPlace* at) { return found.rows(*at).is_zero(); });
    return found;
}

}  // namespace

std::optional<Criterion> predicted_gain_on(const std::shared_ptr<const OpenDumps>& open, std::size_t dump, Side side) {
    const DumpHeads found = heads_of(open, dump, side);
    if (found.places.empty()) return std::nullopt;
    const auto prepare = [found, sha256 = open->sha256[dump]](TrialPlace place) -> Trial {
        place.cell += " " + sha256;
        const auto all = std::make_shared<CodedHeads>();
        return [=](std::uint64_t replicate) {
            all->once([&] {
                std::vector<CodedHead> heads;
                for (const DumpHeadPlace* at : found.places) heads.push_back(found.coded(*at, place));
                all->heads = std::move(heads);
            });
            estimators::QuantizerOptions rotation;
            rotation.seed = place.seed;
            rotation.rotation_index = replicate;
            double sum = 0.0;
            for (const CodedHead& head : all->heads)
                sum += gain_in_bits(head.code, by_turboquant(head.rows, rotation)) - head.predicted;
            return sum / static_cast<double>(all->heads.size()) + place.fault_of(with_bits_left_out);
        };
    };
    Criterion criterion =
        predicted_gain(plural_of(side),
                       fmt::format("{}, {} heads of {} of the dump; the rows are fixed, the error is over {} rotations",
                                   what_is_measured, found.places.size(), plural_of(side), gain_trials),
                       prepare);
    criterion.quick = {{found.places.front()->tensor->dim, gain_trials}};
    criterion.full = {};
    return criterion;
}

}  // namespace spiked::validation
