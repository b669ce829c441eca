#include "validation/study/study_sweep.hpp"

#include <algorithm>
#include <set>
#include <span>

namespace spiked::validation {
namespace {

constexpr std::size_t most_problems = 20;  // finding more would read the model for each value

Factor factor_of(const std::string& name, const toml::node& value) {
    Factor factor{name, std::nullopt, node_text(value)};
    if (value.is_number()) factor.number = *value.value<double>();
    if (const toml::array* list = value.as_array(); list != nullptr && !list->empty() && list->get(0)->is_number())
        factor.number = *list->get(0)->value<double>();
    return factor;
}

/// One list of [sweep].
struct Sweep {
    std::string key;
    const toml::array* values;
};
using SweptValues = std::vector<std::pair<const Sweep*, const toml::node*>>;

/// The lists of [sweep] and how they are combined.
struct SweepLists {
    std::vector<Sweep> lists;
    bool zip = false;

    /// The number of points of the sweep; no value if there are too many.
    [[nodiscard]] std::optional<std::size_t> points(Diagnostics& diagnostics) const {
        std::size_t combinations = 1;
        for (const auto& sweep : lists) {
            if (zip && sweep.values->size() != lists.front().values->size())
                diagnostics.add(*sweep.values,
                                "with mode = \"zip\" every list of [sweep] has the same length: make them equal, or "
                                "use mode = \"cross\"");
            combinations = zip ? sweep.values->size() : combinations * sweep.values->size();
            constexpr std::size_t most_cells = 15000;
            if (combinations > most_cells) {
                diagnostics.add(
                    *sweep.values,
                    fmt::format("the sweep has more than {} cells: make it smaller, or split the study", most_cells));
                return std::nullopt;
            }
        }
        return combinations;
    }
    /// The value of every list at a point.
    [[nodiscard]] SweptValues at(std::size_t point) const {
        SweptValues values;
        std::size_t rest = point;
        for (const auto& sweep : lists) {
            const std::size_t index = zip ? point : rest % sweep.values->size();
            if (!zip) rest /= sweep.values->size();
            values.emplace_back(&sweep, sweep.values->get(index));
        }
        return values;
    }
    [[nodiscard]] std::vector<std::string> keys() const {
        std::vector<std::string> keys;
        for (const auto& one : lists) keys.push_back(one.key);
        return keys;
    }
};

SweepLists read_lists(const toml::table& table, Diagnostics& diagnostics) {
    SweepLists found;
    for (const auto& [key, value] : table) {
        if (key.str() == "mode") {
            const auto mode = value.value<std::string>();
            found.zip = mode == "zip";
            if (mode != "zip" && mode != "cross") diagnostics.add(value, "mode of [sweep] is \"cross\" or \"zip\"");
            continue;
        }
        if (key.str() == "skip") continue;
        const toml::array* list = value.as_array();
        if (key.str() == "kind")
            diagnostics.add(value, "the kind of a model cannot be swept: write a study for each kind");
        if (list == nullptr || list->empty())
            diagnostics.add(value, fmt::format("\"{}\" of [sweep] must be a list of values", key.str()));
        else
            found.lists.push_back({std::string(key.str()), list});
    }
    return found;
}

/// Conditions of a skip rule: a point of the sweep is left out where all of them hold.
using SkipRule = std::vector<FactorCondition>;

std::vector<SkipRule> read_skip(const toml::node& node, const std::vector<std::string>& keys,
                                Diagnostics& diagnostics) {
    std::vector<SkipRule> rules;
    const toml::array* list = node.as_array();
    if (list == nullptr || !list->is_homogeneous(toml::node_type::table)) {
        diagnostics.add(node,
                        "\"skip\" must be a list of tables: write for example skip = [{ n = 64, \"noise.row_cov.rho\" "
                        "= { gt = 0.5 } }]");
        return rules;
    }
    for (const auto& one : *list) {
        SkipRule rule;
        for (const auto& [key, value] : *one.as_table()) {
            const std::string name(key.str());
            if (std::find(keys.begin(), keys.end(), name) == keys.end())
                diagnostics.add(key.source(), fmt::format("skip: \"{}\" is not swept{}", name, suggestion(name, keys)));
            if (const toml::table* comparisons = value.as_table()) {
                for (const auto& condition : read_comparisons(*comparisons, diagnostics))
                    rule.push_back({name, condition.relation, condition.number, ""});
            } else {
                rule.push_back({name, std::nullopt, 0.0, node_text(value)});
            }
        }
        if (rule.empty())
            diagnostics.add(
                one, "a skip rule without conditions would leave out everything: add one, or leave the rule out");
        rules.push_back(std::move(rule));
    }
    return rules;
}

/// A suggestion for a key that lacks the name of its table, such as `signal.strength` for `strength`.
std::string longer_key(const toml::table& model, const std::string& key) {
    if (model.contains(key)) return "";
    for (const auto& [name, below] : model)
        if (const toml::table* table = below.as_table(); table != nullptr && table->contains(key))
            return fmt::format("; did you mean \"{}.{}\"?", name.str(), key);
    return "";
}

/// Reads the model with values of the sweep and reports each error once.
class SweptModel {
public:
    /// `known`: the errors of the model as written, which are reported already.
    SweptModel(ModelReader read, const toml::table& model, std::set<std::string> known, Diagnostics& diagnostics)
        : read_(read), model_(model), known_(std::move(known)), diagnostics_(diagnostics) {}

    [[nodiscard]] bool full() const { return reported_.size() >= most_problems; }

    /// Reports each value that is wrong by itself at its place.
    void check_values(const SweepLists& sweeps) {
        for (const auto& sweep : sweeps.lists)
            for (const auto& value : *sweep.values) {
                if (full()) break;
                for (const auto& problem : problems_with({{&sweep, &value}}))
                    if (!full() && (sweeps.lists.size() == 1 || problem.kind == Problem::Kind::unknown_key) &&
                        reported_.insert(sweep.key + problem.text).second)
                        diagnostics_.add(value, fmt::format("[sweep] {}: {}{}", sweep.key, problem.text,
                                                            longer_key(model_, sweep.key)));
            }
    }

    /// The model at a point. The place of an error is the value that is wrong by itself, or else the sweep.
    StudyPoint point(const SweptValues& values, std::vector<Factor> factors, const toml::table* sweep_table) {
        toml::table at = model_;
        for (const auto& [sweep, value] : values) (void)put(at, sweep->key, *value);
        Diagnostics here("", "");
        auto source = read_(at, here);
        StudyPoint point{source.value_or(BlockSource{}), std::move(factors), ""};
        complete_factors(point);
        if (here.count() > 0) {
            const toml::node* place = sweep_table;
            for (const auto& value : values)
                if (!problems_with({value}).empty()) place = value.second;
            for (const auto& problem : here.problems())
                if (reported_.insert(problem.text).second)
                    diagnostics_.add(*place, fmt::format("[sweep] at {}: {}", point.label, problem.text));
        }
        if (point.label.size() > longest_label && reported_.insert("label").second)
            diagnostics_.add(*sweep_table,
                             fmt::format("the values of a cell take {} bytes when written out (at most {}, because "
                                         "every table prints them): sweep shorter ones",
                                         point.label.size(), longest_label));
        return point;
    }

private:
    /// The errors of the model with these values of the sweep, without the errors of the model as written.
    [[nodiscard]] std::vector<Problem> problems_with(const SweptValues& values) const {
        toml::table at = model_;
        std::vector<Problem> problems;
        for (const auto& [sweep, value] : values)
            if (!put(at, sweep->key, *value))
                problems.push_back({"it does not lead to a key of [model]", Problem::Kind::unknown_key});
        Diagnostics here("", "");
        (void)read_(at, here);
        for (const auto& problem : here.problems())
            if (!known_.contains(problem.text)) problems.push_back(problem);
        return problems;
    }

    ModelReader read_;
    const toml::table& model_;
    std::set<std::string> known_;
    Diagnostics& diagnostics_;
    std::set<std::string> reported_;
};

}  // namespace

void complete_factors(StudyPoint& point) {
    for (const auto& factor : point.factors)
        point.label += fmt::format("{}{}={}", point.label.empty() ? "" : " ", factor.name, factor.text);
    for (const auto& [name, number] : {std::pair{"n", point.source.rows}, std::pair{"d", point.source.columns}})
        if (std::none_of(point.factors.begin(), point.factors.end(),
                         [&name = name](const Factor& f) { return f.name == name; }))
            point.factors.push_back({name, static_cast<double>(number), std::to_string(number)});
    if (point.label.empty()) point.label = fmt::format("n={} d={}", point.source.rows, point.source.columns);
}

std::vector<StudyPoint> points_of_sweep(ModelReader read, const toml::table& model, const toml::table* sweep,
                                        Diagnostics& diagnostics) {
    const std::size_t diagnostics_before = diagnostics.count();
    const SweepLists sweeps = sweep == nullptr ? SweepLists{} : read_lists(*sweep, diagnostics);
    const auto combinations = sweeps.points(diagnostics);
    if (!combinations) return {};
    // The model as written is checked first, because the copies that the sweep changes have no places in the file.
    const std::size_t of_model = diagnostics.problems().size();
    (void)read(model, diagnostics);
    if (diagnostics.count() - of_model >= most_problems) return {};
    std::set<std::string> known;
    for (const auto& problem : std::span(diagnostics.problems()).subspan(of_model)) known.insert(problem.text);
    SweptModel swept(read, model, std::move(known), diagnostics);
    std::vector<SkipRule> skip;
    if (const toml::node* rules = sweep == nullptr ? nullptr : sweep->get("skip"))
        skip = read_skip(*rules, sweeps.keys(), diagnostics);
    swept.check_values(sweeps);
    if (diagnostics.count() > diagnostics_before) return {};
    std::vector<StudyPoint> points;
    for (std::size_t c = 0; c < *combinations; ++c) {
        const SweptValues values = sweeps.at(c);
        std::vector<Factor> factors;
        for (const auto& [list, value] : values) factors.push_back(factor_of(list->key, *value));
        if (std::any_of(skip.begin(), skip.end(), [&](const SkipRule& rule) { return hold(rule, factors); })) continue;
        points.push_back(swept.point(values, std::move(factors), sweep));
        if (swept.full()) break;
    }
    if (points.empty() && diagnostics.count() == diagnostics_before)
        diagnostics.add(*sweep, "the skip rules leave no cell");
    return points;
}

}  // namespace spiked::validation
