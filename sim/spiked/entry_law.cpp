#include "sim/spiked/entry_law.hpp"

#include <boost/random/laplace_distribution.hpp>
#include <boost/random/student_t_distribution.hpp>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <vector>

#include "core/runtime/error.hpp"
#include "core/text/name_options.hpp"
#include "sim/random/element_engine.hpp"
#include "sim/random/normal.hpp"

namespace spiked::sim {

struct EntryLaw::Kind {
    RegistryEntry entry;
    EntryMoments (*moments)(double parameter);
    void (*fill)(double parameter, const stream::Stream& stream, std::span<double> out);
};

namespace {

using stream::Stream;

constexpr const char* gaussian_name = "gaussian";  // of the default

constexpr double infinite = std::numeric_limits<double>::infinity();
constexpr double least_probability = 1e-9;  // draws resolve 1e-16, so it is still accurate to 1e-7

/// The upper 53 bits of the first two words, an integer from 0 to 2^53 - 1.
double bits_53(const stream::PhiloxCounter& words) {
    return static_cast<double>((std::uint64_t{words[1]} << 32 | words[0]) >> 11);
}

template <class Draw>
void each_element(std::span<double> out, Draw draw) {
    if (out.size() > std::size_t{1} << 32)
        throw precondition_error("{} entries are requested of one stream, which holds 2^32", out.size());
    for (std::size_t e = 0; e < out.size(); ++e) out[e] = draw(static_cast<std::uint32_t>(e));
}

EntryMoments student_moments(double nu) {
    EntryMoments moments{.skewness = std::nullopt, .kurtosis = infinite, .order = nu, .sub_gaussian = false};
    if (nu > 3.0) moments.skewness = 0.0;
    if (nu > 4.0) moments.kurtosis = 3.0 * (nu - 2.0) / (nu - 4.0);
    return moments;
}

EntryMoments two_point_moments(double p) {
    const double variance = p * (1.0 - p);  // of the indicator
    return {.skewness = (1.0 - 2.0 * p) / std::sqrt(variance), .kurtosis = 1.0 / variance - 3.0};
}

void fill_uniform(double, const Stream& stream, std::span<double> out) {
    each_element(out, [&](std::uint32_t e) {
        // The midpoints of 2^53 intervals are exactly symmetric about 0.
        return std::numbers::sqrt3 * ((2.0 * bits_53(stream.words(e)) + 1.0) * 0x1p-53 - 1.0);
    });
}

void fill_laplace(double, const Stream& stream, std::span<double> out) {
    each_element(out, [&](std::uint32_t e) {
        stream::ElementEngine engine(stream, e);
        return boost::random::laplace_distribution<double>(0.0, std::numbers::sqrt2 / 2.0)(engine);
    });
}

void fill_student(double nu, const Stream& stream, std::span<double> out) {
    const double scale = std::sqrt((nu - 2.0) / nu);
    each_element(out, [&](std::uint32_t e) {
        stream::ElementEngine engine(stream, e);
        return scale * boost::random::student_t_distribution<double>(nu)(engine);
    });
}

void fill_two_point(double p, const Stream& stream, std::span<double> out) {
    const double high = std::sqrt((1.0 - p) / p);
    const double low = -std::sqrt(p / (1.0 - p));
    each_element(out, [&](std::uint32_t e) { return bits_53(stream.words(e)) * 0x1p-53 < p ? high : low; });
}

void fill_sparse(double p, const Stream& stream, std::span<double> out) {
    const double size = 1.0 / std::sqrt(p);
    each_element(out, [&](std::uint32_t e) {
        const stream::PhiloxCounter words = stream.words(e);
        if (!(bits_53(words) * 0x1p-53 < p)) return 0.0;
        return words[2] >> 31 == 0 ? size : -size;
    });
}

const Registry<EntryLaw::Kind>& entry_law_kinds() {
    static const Registry<EntryLaw::Kind> table(
        "entry law",
        {
            {{gaussian_name,
              "standard normal, Box-Muller on addressed Philox words",
              {},
              "Box & Muller 1958",
              {"normal"}},
             [](double) { return EntryMoments{.skewness = 0.0}; },
             [](double, const Stream& stream, std::span<double> out) { stream::fill_normal(stream, out); }},
            {{"rademacher", "a random sign", {}, ""},
             [](double) { return EntryMoments{.skewness = 0.0, .kurtosis = 1.0}; },
             [](double, const Stream& stream, std::span<double> out) {
                 each_element(out, [&](std::uint32_t e) { return stream.words(e)[0] >> 31 == 0 ? 1.0 : -1.0; });
             }},
            {{"uniform", "uniform on [-sqrt(3), sqrt(3)]", {}, ""},
             [](double) { return EntryMoments{.skewness = 0.0, .kurtosis = 1.8}; },
             fill_uniform},
            {{"laplace", "two-sided exponential: all moments, not sub-Gaussian", {}, "Boost.Random"},
             [](double) { return EntryMoments{.skewness = 0.0, .kurtosis = 6.0, .sub_gaussian = false}; },
             fill_laplace},
            {{"student",
              "Student's t scaled to variance 1: moments of order below NU only",
              {{"", number("NU", {.above = 2.0}), "degrees of freedom, above 2"}},
              "Boost.Random"},
             student_moments,
             fill_student},
            {{"two-point",
              "sqrt((1-P)/P) with probability P, else -sqrt(P/(1-P)): skewed unless P = 1/2",
              {{"", number("P", {.least = least_probability, .most = 1.0 - least_probability}),
                "probability of the upper value, in (0, 1)"}},
              ""},
             two_point_moments,
             fill_two_point},
            {{"sparse",
              "a random sign times 1/sqrt(P) with probability P, else 0",
              {{"", number("P", {.least = least_probability, .most = 1.0}),
                "fraction of entries that are not 0, in (0, 1]"}},
              ""},
             [](double p) { return EntryMoments{.skewness = 0.0, .kurtosis = 1.0 / p}; },
             fill_sparse},
        });
    return table;
}

}  // namespace

EntryLaw::EntryLaw() : kind_(&entry_law_kinds().named(gaussian_name)), text_(kind_->entry.name) {}

EntryLaw EntryLaw::parse(std::string_view text) {
    const ParsedName parsed = parse_name(text);
    const Kind& kind = entry_law_kinds().named(parsed.name);
    const NameOptions named(parsed, kind.entry.options);
    EntryLaw law;
    law.text_ = text;
    law.kind_ = &kind;
    if (kind.entry.options.empty()) return law;
    const OptionSpec& parameter = kind.entry.options.front();
    if (named.words().size() != 1)
        throw usage_error("entry law \"{}\" needs one parameter, {} ({}): write {}", text, parameter.value.shown,
                          parameter.help, written_form(kind.entry));
    law.parameter_ = to_number(named.words().front()).value();
    return law;
}

bool EntryLaw::gaussian() const { return kind_->entry.name == gaussian_name; }

EntryMoments EntryLaw::moments() const { return kind_->moments(parameter_); }

void fill_entries(const EntryLaw& law, const stream::Stream& stream, std::span<double> out) {
    law.kind_->fill(law.parameter_, stream, out);
}

const std::vector<RegistryEntry>& entry_laws() {
    static const auto entries = entry_law_kinds().entries();
    return entries;
}

}  // namespace spiked::sim
