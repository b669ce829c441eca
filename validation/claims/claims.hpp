#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/random/address.hpp"
#include "validation/statistics/statistics.hpp"
#include "validation/trials/predictions.hpp"

namespace spiked::validation {

/// Which sentence a criterion judges: the one in the paper, or what we put in its place.
enum class Form { printed, corrected };
[[nodiscard]] std::string_view name_of(Form form);

/// What is made of the numbers that trials give, and compared with a region.
enum class Summary {
    mean,      ///< of each size
    share,     ///< of trials that gave 1; the others give 0; each size
    rate,      ///< slope of log(root mean square) against log(size), all sizes together
    growth,    ///< the same slope for a quantile
    distance,  ///< Kolmogorov distance of the trials of a size from a law
};
[[nodiscard]] std::string_view name_of(Summary summary);

/// One change of the trials.
struct Fault {
    std::string name;
    std::string words;
};

/// Where the numbers of a criterion are drawn: a size, the address of the randomness, the fault planted (empty: none).
struct TrialPlace {
    std::size_t size = 0;
    std::string fault;
    stream::StudySeed seed;
    std::string cell;

    [[nodiscard]] bool planted(std::string_view name) const { return fault == name; }
};
/// One number, a pure function of the replicate; asked from several threads at once.
using Trial = std::function<double(std::uint64_t replicate)>;

struct SizePlan {
    std::size_t size = 0;
    std::uint64_t trials = 0;
};

/// A statement in a form that numbers can decide.
struct Criterion {
    Form form = Form::printed;
    std::string name;  ///< unique in its claim; part of the address of its randomness
    std::string measures;
    Summary summary = Summary::mean;
    std::function<Trial(const TrialPlace&)> prepare;
    std::function<Region(std::size_t size)> region;  ///< of slopes: asked for size 0
    std::vector<SizePlan> quick;                     ///< empty: the full tier only
    std::vector<SizePlan> full;                      ///< empty: as quick
    /// Violations that the same trials, sample size and region must not let pass.
    std::vector<Fault> faults = {};
    /// Of a printed form that is refuted: changes that make the sentence true, which the same must not refute.
    std::vector<Fault> positive_controls = {};
    double level = 0.95;                                               ///< of the quantile of `growth`
    std::function<double(double)> (*law)(std::size_t size) = nullptr;  ///< of `distance`
};

enum class PrintedVerdict { none, holds, refuted, inconclusive, vacuous };
[[nodiscard]] std::string_view name_of(PrintedVerdict verdict);

/// A statement of the theory as data.
struct Claim {
    std::string id;
    std::string place;      ///< in the paper or the literature
    std::string statement;  ///< as printed, in our words
    std::string corrected;  ///< what holds instead, or beside it; empty: nothing
    /// What the full tier has found of the printed form: another decided verdict is a failure. None: any is news.
    PrintedVerdict settled = PrintedVerdict::holds;
    std::string on = {};  ///< the dump it is asked of; empty: of simulated blocks
    std::vector<Criterion> criteria = {};
    std::optional<StudyForm> in_study = {};
};

[[nodiscard]] const std::vector<Claim>& claims();
struct KvPlan;
/// Ids of the claims that blocks of a dump can decide.
inline constexpr const char* claims_about_blocks[] = {"one-bit-saved", "adaptive-rank", "rope.cost"};
/// These for each dump of the plan, without those that it has no blocks for: rope.cost is about keys, and a side that
/// is zero decides nothing. They are about that dump, not about others of its kind. Throws as open_dumps does.
[[nodiscard]] std::vector<Claim> claims_on_dumps(const KvPlan& plan);
/// What `on` names each dump: its file name, where two are the same the whole path.
[[nodiscard]] std::vector<std::string> dump_titles(const std::vector<std::string>& paths);
/// Throws nothing: null when there is none of that id.
[[nodiscard]] const Claim* find_claim(std::string_view id);

}  // namespace spiked::validation
