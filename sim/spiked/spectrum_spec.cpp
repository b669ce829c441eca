#include "sim/spiked/spectrum_spec.hpp"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "core/runtime/error.hpp"
#include "core/text/names.hpp"
#include "sim/io/file_formats.hpp"

namespace spiked::sim {
namespace {

using theory::Spectrum;

Error malformed(const std::string& spec, const CovarianceKind& kind) {
    return usage_error("spectrum \"{}\" is malformed (its parts do not match the kind): write {}", spec,
                       kind.spec_form());
}

/// The numbers behind the name, and N.
SpectrumSpec parsed_numbers(const std::string& spec, const CovarianceKind& kind,
                            const std::vector<std::string>& parts) {
    SpectrumSpec found{.kind = &kind};
    const std::size_t count = kind.parameters().size();
    std::size_t next = 1;
    if (count > 0) {
        if (parts.size() <= next) throw malformed(spec, kind);
        for (const auto& part : split(parts[next++], ',')) {
            const auto value = to_number(part);
            if (!value)
                throw usage_error("spectrum \"{}\": \"{}\" is not a number: write {}", spec, part, kind.spec_form());
            found.numbers.push_back(*value);
        }
        if (found.numbers.size() != count) throw malformed(spec, kind);
        kind.require_in_range(found.numbers, fmt::format("spectrum \"{}\": ", spec));
    }
    const OptionSpec* size = kind.size();
    if (size != nullptr && parts.size() > next) {
        const auto value = to_integer(parts[next++]);
        if (!value || *value < size->value.least || *value > size->value.most)
            throw usage_error("spectrum \"{}\": N is \"{}\" (a whole number from {} to {} is needed): write {}", spec,
                              parts[next - 1], size->value.least, size->value.most, kind.spec_form());
        found.size = static_cast<std::size_t>(*value);
    } else if (size != nullptr && size->fallback.empty()) {
        throw malformed(spec, kind);
    }
    if (parts.size() != next) throw malformed(spec, kind);
    return found;
}

}  // namespace

SpectrumSpec spectrum_spec(const std::string& spec) {
    for (const auto& suffix : matrix_suffixes())
        if (spec.ends_with(suffix) && spec.find(':') == std::string::npos) {
            // A table of text holds eigenvalues, any other file more often the sample.
            const bool table = suffix == ".csv" || suffix == ".tsv" || suffix == ".txt";
            throw usage_error("spectrum \"{}\" is a file name only: write {}:{}", spec, table ? "file" : "sample",
                              spec);
        }
    const auto parts = split(spec, ':');
    const CovarianceKind& kind = covariance_kinds().named(parts.front(), "spectrum");
    if (!kind.reads_file()) return parsed_numbers(spec, kind, parts);
    if (spec.size() <= parts.front().size() + 1)
        throw usage_error("spectrum \"{}\" names no file: write {}", spec, kind.spec_form());
    return {.kind = &kind, .path = spec.substr(parts.front().size() + 1)};
}

Spectrum SpectrumSpec::law() const {
    if (kind->reads_file()) return kind->read(path);
    const OptionSpec* option = kind->size();
    const std::size_t fallback =
        option == nullptr ? 0 : static_cast<std::size_t>(to_integer(option->fallback).value_or(0));
    return (kind->symbol != nullptr ? kind->symbol : kind->law)(numbers, size.value_or(fallback));
}

Spectrum parse_spectrum(const std::string& spec) { return spectrum_spec(spec).law(); }

}  // namespace spiked::sim
