#pragma once
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/catalogue.hpp"
#include "sim/random/address.hpp"

namespace spiked::sim {

/// Of a law with mean 0 and variance 1: what a claim may assume about the entries of X.
struct EntryMoments {
    std::optional<double> skewness;                          ///< E x^3; nothing where it does not exist
    double kurtosis = 3.0;                                   ///< E x^4, 3 for a Gaussian; may be infinite
    double order = std::numeric_limits<double>::infinity();  ///< E |x|^k is finite for every k below this
    bool sub_gaussian = true;                                ///< bounded laws are, whatever the constant
};

/// How the entries of X are distributed before the division by sqrt(d): mean 0, variance 1.
/// Written `gaussian`, `rademacher`, `uniform`, `laplace`, `student:NU`, `two-point:P` or `sparse:P`.
class EntryLaw {
public:
    EntryLaw();  ///< gaussian

    /// Throws usage_error on an unknown name (the nearest is suggested), on a missing, superfluous or malformed
    /// parameter, and on one outside its range: NU > 2, 0 < P < 1 (two-point), 0 < P <= 1 (sparse), P >= 1e-9 where a
    /// probability is drawn.
    [[nodiscard]] static EntryLaw parse(std::string_view text);

    [[nodiscard]] const std::string& text() const { return text_; }  ///< as typed
    [[nodiscard]] bool gaussian() const;                             ///< the one law invariant under rotation
    [[nodiscard]] EntryMoments moments() const;

    struct Kind;

private:
    friend void fill_entries(const EntryLaw& law, const stream::Stream& stream, std::span<double> out);

    const Kind* kind_;
    double parameter_ = 0.0;
    std::string text_;
};

/// Independent entries of variance 1. Gaussian: stream::fill_normal. Every other law: entry e is a function of element
/// e of the stream alone, so filling part of an array or all of it gives the same numbers. `uniform`, `two-point` and
/// `sparse` take 53 bits of its first words, `rademacher` one: bit-equal everywhere. `laplace` and `student` come from
/// its own sub-stream by Boost.Random: equal on one build. Throws bug beyond 2^32 entries (Gaussian: 2^33).
/// Cost of an entry: about 20 ns, laplace 40 ns, student 150 ns.
void fill_entries(const EntryLaw& law, const stream::Stream& stream, std::span<double> out);

[[nodiscard]] const std::vector<CatalogueLine>& entry_laws();

}  // namespace spiked::sim
