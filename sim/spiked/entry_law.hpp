#pragma once
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/registry.hpp"
#include "sim/random/address.hpp"

namespace spiked::sim {

/// Moments of an entry law (mean 0, variance 1), which claims use in their assumptions about the entries of X.
struct EntryMoments {
    std::optional<double> skewness;                          ///< E x^3; empty where it does not exist
    double kurtosis = 3.0;                                   ///< E x^4 (3 for a Gaussian); may be infinite
    double order = std::numeric_limits<double>::infinity();  ///< E |x|^k is finite for every k below this
    bool sub_gaussian = true;                                ///< whether, for some constant; bounded laws are
};

/// The distribution of the entries of X before the division by sqrt(d): mean 0, variance 1.
/// It is written as in entry_laws(), for example `gaussian` or `student:5`.
class EntryLaw {
public:
    EntryLaw();  ///< gaussian

    /// Throws usage_error on an unknown name (the nearest is suggested), on a missing, superfluous or malformed
    /// parameter, and on one out of range: NU > 2, 1e-9 <= P <= 1 - 1e-9 (two-point), 1e-9 <= P <= 1 (sparse).
    [[nodiscard]] static EntryLaw parse(std::string_view text);

    [[nodiscard]] const std::string& text() const { return text_; }  ///< as written
    [[nodiscard]] bool gaussian() const;                             ///< the only law invariant under rotation
    [[nodiscard]] EntryMoments moments() const;

    struct Kind;

private:
    friend void fill_entries(const EntryLaw& law, const stream::Stream& stream, std::span<double> out);

    const Kind* kind_;
    double parameter_ = 0.0;
    std::string text_;
};

/// Fills `out` with independent entries of variance 1. Gaussian entries are those of stream::fill_normal. Of every
/// other law entry e depends on element e of the stream alone, so filling part of an array or all of it gives the same
/// numbers. `uniform`, `two-point` and `sparse` use 53 bits of the element's first two words, `rademacher` uses one
/// bit; they are bit-equal on every machine. `laplace` and `student` draw from the element's sub-stream by Boost.Random
/// and are equal only within one build. Throws precondition_error beyond 2^32 entries (Gaussian: 2^33). An entry costs
/// about 20 ns, of laplace 40 ns, of student 150 ns.
void fill_entries(const EntryLaw& law, const stream::Stream& stream, std::span<double> out);

[[nodiscard]] const std::vector<RegistryEntry>& entry_laws();

}  // namespace spiked::sim
