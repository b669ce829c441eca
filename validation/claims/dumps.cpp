#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>

#include "sim/kv/dump_view.hpp"
#include "validation/claims/parts/block_criteria.hpp"
#include "validation/claims/parts/fixture.hpp"
#include "validation/claims/spectrum_gain.hpp"
#include "validation/kv/open_dumps.hpp"

// Claims on the blocks and heads of a dump. They are judged on the dump itself, on all of its blocks or on a subset;
// only the rotation of the quantizer or the random order of tokens varies from trial to trial, and errors are over
// these.

namespace spiked::validation {
namespace {

constexpr std::size_t most_blocks = 128;  // per side
constexpr std::size_t dump_trials = 16;

/// Blocks of one side of a dump, an evenly spaced subset where there are too many. Blocks that are all zero, such as
/// padding, are left out of every mean.
struct DumpSide {
    struct Place {
        const DumpHeadPlace* head = nullptr;
        std::size_t first_token = 0;
    };

    std::shared_ptr<const OpenDumps> open;
    std::string sha256;
    std::size_t tokens = 0;  ///< per block
    std::vector<Place> places;
    std::string description;

    [[nodiscard]] std::vector<SizePlan> plan() const { return {{places.front().head->tensor->dim, dump_trials}}; }
    /// Random numbers for a dump depend on its content, not on its path.
    [[nodiscard]] TrialPlace addressed(TrialPlace place) const {
        place.cell += " " + sha256;
        return place;
    }
    [[nodiscard]] arma::mat read(const Place& at, const sim::DumpView& view, const stream::Stream& order) const {
        const sim::DumpHead head(*open->dumps[at.head->dump], *at.head->tensor, at.head->head, view, order);
        return head.read_block(at.first_token, tokens);
    }
    /// A block after the inverse rotary embedding, whether an embedding was applied or not.
    [[nodiscard]] arma::mat derotated(const Place& at, const arma::mat& block) const {
        const sim::DumpRotary rotary = sim::dump_rotary(*open->dumps[at.head->dump]);
        return sim::undo_rope(block, rotary.rope, rotary.position_start + static_cast<double>(at.first_token));
    }
};

DumpSide side_of(const std::shared_ptr<const OpenDumps>& open, std::size_t dump, Side side, std::size_t tokens) {
    DumpSide found{open, open->sha256[dump], tokens, {}, ""};
    for (const auto& head : open->heads)
        if (head.dump == dump && head.tensor->side == side)
            for (std::size_t first = 0; first + tokens <= head.tensor->tokens; first += tokens)
                found.places.push_back({&head, first});
    const std::size_t all = found.places.size();
    if (all > most_blocks) {
        for (std::size_t i = 0; i < most_blocks; ++i) found.places[i] = found.places[i * all / most_blocks];
        found.places.resize(most_blocks);
    }
    // A side that is all zero has no error to reduce.
    const stream::Stream order({}, "", stream::Role::token_order, 0);
    if (std::all_of(found.places.begin(), found.places.end(),
                    [&](const DumpSide::Place& at) { return found.read(at, {}, order).is_zero(); }))
        found.places.clear();
    found.description = fmt::format("{} of {} blocks of {} of the dump", found.places.size(), all, plural_of(side));
    return found;
}

/// The same control in a part of the blocks. The number of a trial is a mean over the blocks, or such a mean over
/// another that has no fault, and so linear in this part.
Control in_blocks(Control control) {
    control.size = FaultSize{1.0, "of the blocks", 0.0, control.description + ", in {} % of the blocks"};
    return linear(std::move(control));
}

Blocks blocks_of(const DumpSide& side) {
    return {
        .description =
            side.description + fmt::format("; the blocks are fixed, the error is over {} rotations", dump_trials),
        .quick = side.plan(),
        .full = {},
        .prepare = [=](const TrialPlace& place) -> BlockVisit {
            const stream::Stream order(place.seed, place.cell, stream::Role::token_order, 0);
            return [=](std::uint64_t, const auto& visit) {
                for (const auto& at : side.places) {
                    const arma::mat block = side.read(at, {}, order);
                    if (!block.is_zero()) visit(analysed(block));
                }
            };
        },
        .unexplained = 0.025,
        // With almost no signal the other controls would pass: the open loop costs nothing and factors take no bits.
        .negative_controls = {in_blocks({"bit-lost", "an index bit that is counted and not used"})}};
}

Trial rope_trial_on(const DumpSide& keys, const TrialPlace& anywhere, Against against) {
    constexpr arma::uword run = 32;
    // Keys as stored over de-rotated keys, where those of a part of the blocks, evenly spread, were never rotated.
    const auto rotated_in_part = [=](double unrotated) {
        const stream::Stream nothing_random({}, "", stream::Role::token_order, 0);
        double before = 0.0;
        double after = 0.0;
        for (std::size_t i = 0; i < keys.places.size(); ++i) {
            const auto at = static_cast<double>(i);
            const bool fault = std::floor((at + 1.0) * unrotated) > std::floor(at * unrotated);
            const arma::mat block = keys.read(keys.places[i], {.undo_rotary = fault}, nothing_random);
            if (block.is_zero()) continue;
            before += tail_energy(block);
            after += tail_energy(keys.derotated(keys.places[i], block));
        }
        return before / after;
    };
    return [=, place = keys.addressed(anywhere)](std::uint64_t replicate) {
        // `which` selects a random order of the whole sequence of a head, the same for all its blocks.
        const auto tails = [&](const sim::DumpView& view, std::size_t which) {
            const stream::Stream order = order_stream(place, replicate, which);
            double sum = 0.0;
            double count = 0.0;
            for (const auto& at : keys.places) {
                arma::mat block = keys.read(at, view, order);
                if (block.is_zero()) continue;
                if (place.control_is("runs") && !view.shuffle)
                    for (arma::uword t = 0; t < block.n_rows; ++t) block.row(t) = block.row(t - t % run);
                sum += tail_energy(block);
                count += 1.0;
            }
            return sum / count;
        };
        const sim::DumpView shuffled{.shuffle = true};
        const sim::DumpView derotated{.undo_rotary = true};
        if (place.control_is("no-rotation")) return rotated_in_part(place.fault);
        const double stored = tails(place.control_is("no-order") ? shuffled : sim::DumpView{}, 1);
        return stored / tails(against == Against::derotated ? derotated : shuffled, 0);
    };
}

}  // namespace

std::vector<std::string> dump_titles(const std::vector<std::string>& names) {
    std::vector<std::string> files;
    for (const auto& name : names) files.push_back(std::filesystem::path(name).filename().string());
    std::vector<std::string> titles = files;
    for (std::size_t i = 0; i < names.size(); ++i)
        if (std::count(files.begin(), files.end(), files[i]) > 1) titles[i] = names[i];
    return titles;
}

std::vector<Claim> claims_on_dumps(const std::shared_ptr<const OpenDumps>& open, const std::vector<std::string>& titles,
                                   std::size_t block_tokens) {
    std::vector<Claim> claims;
    for (std::size_t i = 0; i < open->dumps.size(); ++i) {
        const sim::KvDump& dump = *open->dumps[i];
        const auto about = [&](std::string_view id) {
            const auto& row = *std::ranges::find(claims_about_blocks, id, &ClaimAboutBlocks::id);
            Claim claim = *find_claim(id);
            claim.on = titles[i];
            claim.expected_verdict = PrintedVerdict::none;
            claim.refuted_as = ClaimKind::does_not_transfer;
            claim.note =
                fmt::format("errors are over {} {} with the blocks fixed: they say nothing about other blocks or dumps",
                            dump_trials, row.random);
            claim.criteria.clear();
            claim.in_study.reset();
            return claim;
        };
        Claim saved = about("one-bit-saved");
        saved.corrected = "it saves log(||X|| / ||R||) over the logarithm a bit is worth, less the bits of the factors";
        Claim adaptive = about("adaptive-rank");
        adaptive.statement = "automatic rank selection improves on rank 1 at the same index bits b by 5 % or more";
        adaptive.plain.says =
            "Choosing the rank from the data is at least 5 % better than rank 1, at equal index bits.";
        adaptive.corrected =
            "at equal stored bits it saves what the energy of the further components is worth, less the bits of their "
            "factors: on some blocks a gain, on others a loss";
        Claim rotary = about("rope.cost");
        Claim gain = about("spectrum.gain");
        for (const Side side : {Side::key, Side::value}) {
            if (auto criterion = predicted_gain_on(open, i, side)) gain.criteria.push_back(*std::move(criterion));
            const DumpSide found = side_of(open, i, side, block_tokens);
            if (found.places.empty()) continue;
            const Blocks blocks = blocks_of(found);
            const std::string name = plural_of(side);
            saved.criteria.push_back(bits_saved(Form::printed, name, blocks, "tq-mse", nearly_one));
            saved.criteria.push_back(bits_explained(name, blocks, "tq-mse"));
            adaptive.criteria.push_back(error_at_equal_index_bits(name, blocks));
            for (Control& control : adaptive.criteria.back().negative_controls) control = in_blocks(control);
            adaptive.criteria.push_back(bits_explained(name, blocks, "svd:1+tq-mse"));
            if (side == Side::value) continue;
            for (const Against against : {Against::shuffled, Against::derotated})
                if (against == Against::shuffled || sim::has_rotary(dump)) {
                    const std::string random =
                        against == Against::shuffled
                            ? fmt::format("; the blocks are fixed, the error is over {} random orders", dump_trials)
                            : "; nothing is random";
                    Criterion criterion =
                        rope_cost(against, found.description + random, found.plan(), {},
                                  [=](const TrialPlace& place) { return rope_trial_on(found, place, against); });
                    Control& control = criterion.negative_controls.front();
                    control = in_blocks(control);
                    if (against == Against::shuffled) {
                        // Blocks of at most four different rows have no energy outside four directions.
                        criterion.positive_controls = {
                            with_equal_trials({"runs", "every key in the place of the 31 behind it"})};
                    } else {
                        control.linear = false;  // a mean over another that has the fault too
                        criterion.reach = 0.0;
                    }
                    rotary.criteria.push_back(std::move(criterion));
                }
        }
        for (Claim* claim : {&saved, &adaptive, &rotary, &gain}) {
            const auto is_corrected = [](const Criterion& one) { return one.form == Form::corrected; };
            if (std::none_of(claim->criteria.begin(), claim->criteria.end(), is_corrected)) claim->corrected.clear();
            if (!claim->criteria.empty()) claims.push_back(std::move(*claim));
        }
    }
    return claims;
}

}  // namespace spiked::validation
