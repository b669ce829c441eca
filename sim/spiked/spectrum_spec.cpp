#include "sim/spiked/spectrum_spec.hpp"

#include "core/runtime/error.hpp"
#include "core/text/names.hpp"
#include "sim/spiked/covariance_kinds.hpp"

namespace spiked::sim {
namespace {

using theory::Spectrum;

constexpr std::size_t default_count = 64;
constexpr std::size_t most_atoms = 1 << 20;

Error malformed(const std::string& spec, const CovarianceKind& kind) {
    return usage_error("spectrum \"{}\" is malformed (its parts do not match the kind): write {}", spec,
                       kind.spec_form());
}

Spectrum from_numbers(const std::string& spec, const CovarianceKind& kind, const std::vector<std::string>& parts) {
    std::size_t next = 1;
    std::vector<double> numbers;
    if (!kind.parameters.empty()) {
        if (parts.size() <= next) throw malformed(spec, kind);
        for (const auto& part : split(parts[next++], ',')) {
            const auto value = to_number(part);
            if (!value)
                throw usage_error("spectrum \"{}\": \"{}\" is not a number: write {}", spec, part, kind.spec_form());
            numbers.push_back(*value);
        }
        if (numbers.size() != kind.parameters.size()) throw malformed(spec, kind);
    }
    std::size_t count = default_count;
    if (kind.size != CovarianceKind::Size::none && parts.size() > next) {
        const auto value = to_integer(parts[next++]);
        if (!value || *value < 1 || *value > static_cast<std::int64_t>(most_atoms))
            throw usage_error("spectrum \"{}\": N is \"{}\" (a whole number from 1 to {} is needed): write {}", spec,
                              parts[next - 1], most_atoms, kind.spec_form());
        count = static_cast<std::size_t>(*value);
    } else if (kind.size == CovarianceKind::Size::required) {
        throw malformed(spec, kind);
    }
    if (parts.size() != next) throw malformed(spec, kind);
    return (kind.symbol != nullptr ? kind.symbol : kind.law)(numbers, count);
}

}  // namespace

Spectrum parse_spectrum(const std::string& spec) {
    if (spec.ends_with(".csv") && spec.find(':') == std::string::npos)
        throw usage_error("spectrum \"{}\" is a file name only: write file:{}", spec, spec);
    if (spec.ends_with(".npy") && spec.find(':') == std::string::npos)
        throw usage_error("spectrum \"{}\" is a file name only: write sample:{}", spec, spec);
    const auto parts = split(spec, ':');
    const CovarianceKind& kind = covariance_kind(parts.front(), "spectrum");
    if (!kind.reads_file()) return from_numbers(spec, kind, parts);
    if (spec.size() <= kind.name.size() + 1)
        throw usage_error("spectrum \"{}\" names no file: write {}", spec, kind.spec_form());
    return kind.read(spec.substr(kind.name.size() + 1));
}

}  // namespace spiked::sim
