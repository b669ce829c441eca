#include "sim/spiked/signal.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <utility>

#include "core/runtime/error.hpp"
#include "core/text/name_options.hpp"
#include "sim/random/haar.hpp"
#include "sim/random/normal.hpp"

namespace spiked::sim {
namespace {

using stream::Stream;

enum class Sides { both, row, column };

/// The arguments of the functions that draw.
struct Request {
    const Stream& stream;
    const Covariance& covariance;
    std::size_t rank;
    std::size_t number;
    const EntryLaw& entries;
    const std::string& text;

    [[nodiscard]] std::size_t size() const { return covariance.size(); }
};

/// Replaces the columns by Q of their QR decomposition (diagonal of R positive); returns whether they were independent.
bool orthonormalise(arma::mat& columns) {
    arma::mat frame;
    arma::mat triangle;
    if (!arma::qr_econ(frame, triangle, columns))
        throw postcondition_error("QR of a {} x {} matrix failed", columns.n_rows, columns.n_cols);
    const arma::vec diagonal = triangle.diag();
    for (arma::uword j = 0; j < diagonal.n_elem; ++j)
        if (diagonal(j) < 0.0) frame.col(j) *= -1.0;
    columns = std::move(frame);
    return arma::abs(diagonal).min() > 1e-10 * arma::abs(diagonal).max();
}

arma::mat draw_haar(const Request& request) { return stream::haar_frame(request.stream, request.size(), request.rank); }

arma::mat draw_qr(const Request& request) {
    constexpr std::size_t most_draws = 64;
    const std::size_t count = request.size() * request.rank;
    std::vector<double> entries;
    for (std::size_t draw = 0; draw < most_draws; ++draw) {
        entries.resize((draw + 1) * count);
        fill_entries(request.entries, request.stream, entries);
        arma::mat columns(entries.data() + draw * count, request.size(), request.rank);
        if (orthonormalise(columns)) return columns;
    }
    // Not a usage error: the text is legal, and draws of another replicate may be independent.
    throw input_error(
        "signal vectors \"{}\": {} draws of {} vectors of length {} were linearly dependent each time (too few "
        "distinct entries): choose another entry law or a lower rank",
        request.text, most_draws, request.rank, request.size());
}

arma::mat draw_scores(const Request& request) {
    arma::mat vectors(request.size(), request.rank);
    fill_entries(request.entries, request.stream, {vectors.memptr(), vectors.n_elem});
    return vectors / std::sqrt(static_cast<double>(request.size()));
}

arma::mat draw_localised(const Request& request) {
    const std::size_t width = request.number;
    arma::mat vectors(request.size(), request.rank, arma::fill::zeros);
    for (std::size_t i = 0; i < request.rank; ++i)
        for (std::size_t at = i * width; at < (i + 1) * width; ++at) {
            const bool negative = width > 1 && request.stream.words(static_cast<std::uint32_t>(at))[0] >> 31 != 0;
            vectors(at, i) = (negative ? -1.0 : 1.0) / std::sqrt(static_cast<double>(width));
        }
    return vectors;
}

arma::mat draw_sparse(const Request& request) {
    const std::size_t width = request.number;
    // The coordinates are put in random order by 64-bit keys. These come from the second draw of each element, because
    // the values on the supports use the first.
    std::vector<std::pair<std::uint64_t, std::size_t>> order(request.size());
    for (std::size_t t = 0; t < order.size(); ++t) {
        const auto words = request.stream.words(static_cast<std::uint32_t>(t), 1);
        order[t] = {std::uint64_t{words[1]} << 32 | words[0], t};
    }
    std::sort(order.begin(), order.end());
    arma::mat values(width, request.rank);
    stream::fill_normal(request.stream, {values.memptr(), values.n_elem});
    arma::mat vectors(request.size(), request.rank, arma::fill::zeros);
    for (std::size_t i = 0; i < request.rank; ++i) {
        const double length = arma::norm(values.col(i));
        for (std::size_t k = 0; k < width; ++k) vectors(order[i * width + k].second, i) = values(k, i) / length;
    }
    return vectors;
}

arma::mat draw_eigen(const Request& request) { return request.covariance.eigenvectors(request.number, request.rank); }

arma::mat draw_smooth(const Request& request) {
    constexpr double rotary_base = 10000.0;
    const double full_turn = 2.0 * std::numbers::pi;
    const double size = static_cast<double>(request.size());
    arma::mat vectors(request.size(), request.rank);
    for (std::size_t i = 0; i < request.rank; ++i) {
        const auto words = request.stream.words(static_cast<std::uint32_t>(i));
        double uniform[4];
        for (std::size_t k = 0; k < 4; ++k) uniform[k] = (static_cast<double>(words[k]) + 0.5) * 0x1p-32;
        const double slow = std::numbers::pi * (static_cast<double>(i) + uniform[0]) / size;
        const double rotary = std::pow(rotary_base, -uniform[2]);
        for (std::size_t t = 0; t < request.size(); ++t)
            vectors(t, i) = std::cos(slow * (static_cast<double>(t) + 0.5) + full_turn * uniform[1]) *
                            std::cos(rotary * static_cast<double>(t + 1) + full_turn * uniform[3]);
    }
    (void)orthonormalise(vectors);
    return vectors;
}

}  // namespace

struct VectorLaw::Kind {
    RegistryEntry entry;  ///< its option is what follows the name: an entry law (a text) or a number
    Sides sides;
    std::size_t (*needs)(std::size_t rank, std::size_t number);  ///< coordinates
    arma::mat (*draw)(const Request& request);
    bool spread_evenly = false;
    bool orthonormal = true;

    [[nodiscard]] bool takes(ValueSpec::Kind value) const {
        return !entry.options.empty() && entry.options.front().value.kind == value;
    }
    [[nodiscard]] const std::string& argument() const { return entry.options.front().value.shown; }
};

namespace {

std::size_t rank_alone(std::size_t rank, std::size_t /*number*/) { return rank; }
/// rank * number, saturated because numbers from a study file reach 2^63.
std::size_t rank_blocks(std::size_t rank, std::size_t number) {
    return rank > 0 && number > SIZE_MAX / rank ? SIZE_MAX : rank * number;
}
std::size_t rank_from(std::size_t rank, std::size_t number) { return rank == 0 ? 0 : number - 1 + rank; }

const Registry<VectorLaw::Kind>& vector_law_kinds() {
    static const Registry<VectorLaw::Kind> table(
        "signal vectors", {{{"haar", "uniform under rotation", {}, "Stewart 1980", {"orthogonal"}},
                            Sides::both,
                            rank_alone,
                            draw_haar,
                            true},
                           {{"qr",
                             "QR of a matrix with independent entries of that law",
                             {{"", any_text("ENTRY"), "an entry law, e.g. qr:rademacher or qr:student:5"}},
                             "paper assumption (v)"},
                            Sides::both,
                            rank_alone,
                            draw_qr,
                            true},
                           {{"localised",
                             "vector i on coordinates (i-1) J + 1 .. i J, entries of equal size with random signs",
                             {{"", whole("J", 1), "coordinates of each vector; 1: unit vectors"}}},
                            Sides::both,
                            rank_blocks,
                            draw_localised},
                           {{"sparse",
                             "each uniform on the sphere over K random coordinates, disjoint from those of the others",
                             {{"", whole("K", 1), "coordinates of each vector"}}},
                            Sides::both,
                            rank_blocks,
                            draw_sparse},
                           {{"eigen:row",
                             "left vectors are eigenvectors INDEX, INDEX + 1, .. of the row covariance",
                             {{"", whole("INDEX", 1), "1 is the largest eigenvalue"}}},
                            Sides::row,
                            rank_from,
                            draw_eigen},
                           {{"eigen:col",
                             "right vectors are eigenvectors INDEX, INDEX + 1, .. of the column covariance",
                             {{"", whole("INDEX", 1), "1 is the largest eigenvalue"}}},
                            Sides::column,
                            rank_from,
                            draw_eigen},
                           {{"smooth",
                             "left vectors are slow waves over the tokens times rotary (RoPE) ones, orthonormalised",
                             {},
                             "Su et al. 2021 (rotary embedding)"},
                            Sides::row,
                            rank_alone,
                            draw_smooth},
                           {{"scores",
                             "left vectors have independent entries of that law, of variance 1/n, as the scores of "
                             "samples of a spiked covariance; not orthonormal",
                             {{"", any_text("ENTRY"), "an entry law, e.g. scores:gaussian"}},
                             "Johnstone 2001"},
                            Sides::row,
                            rank_alone,
                            draw_scores,
                            true,
                            false}});
    return table;
}

/// The laws whose names begin with the same word: one, or several where a side follows, eigen:row and eigen:col.
struct VectorLawWord {
    RegistryEntry entry;
    std::vector<const VectorLaw::Kind*> kinds;
};

const Registry<VectorLawWord>& vector_law_words() {
    static const Registry<VectorLawWord> table("signal vectors", [] {
        std::vector<VectorLawWord> words;
        for (const auto& kind : vector_law_kinds()) {
            const std::string word = parse_name(kind.entry.name).name;
            if (words.empty() || words.back().entry.name != word)
                words.push_back({{.name = word, .aliases = kind.entry.aliases}, {}});
            words.back().kinds.push_back(&kind);
        }
        return words;
    }());
    return table;
}

bool applies_to(Sides sides, MatrixSide side) {
    return sides == Sides::both || (sides == Sides::row) == (side == MatrixSide::row);
}

}  // namespace

SignalStrength absolute_strength(double value, StrengthUnit unit, SignalStrength detection_threshold,
                                 std::size_t rows) {
    if (!(value >= 0.0) || !std::isfinite(value))
        throw usage_error("strength {} is not usable (a singular value is finite and not negative): correct it", value);
    switch (unit) {
        case StrengthUnit::absolute:
            return {value};
        case StrengthUnit::threshold:
            return {value * detection_threshold.value};
        case StrengthUnit::sqrt_n:
            return {value * std::sqrt(static_cast<double>(rows))};
    }
    throw precondition_error("unknown unit of strengths");
}

VectorLaw::VectorLaw() : kind_(&vector_law_kinds().named("haar")), text_(kind_->entry.name) {}

VectorLaw VectorLaw::of_any_side(std::string_view text) {
    const ParsedName parsed = parse_name(text);
    const auto& candidates = vector_law_words().named(parsed.name).kinds;
    const auto malformed = [&](std::string_view why) {
        std::string forms;
        for (const Kind* kind : candidates) forms += (forms.empty() ? "" : " or ") + written_form(kind->entry);
        return usage_error("signal vectors \"{}\": {}: write {}", text, why, forms);
    };
    const auto meant = std::find_if(candidates.begin(), candidates.end(), [&](const Kind* kind) {
        return (std::string(text) + ":").starts_with(kind->entry.name + ":");
    });
    if (meant == candidates.end()) throw malformed("the side is missing or unknown");

    VectorLaw law;
    law.kind_ = *meant;
    law.text_ = text;
    const std::string& name = law.kind_->entry.name;
    const std::string_view argument = text.substr(std::min(text.size(), name.size() + 1));
    if (law.kind_->takes(ValueSpec::Kind::text)) {
        if (argument.empty()) throw malformed("the entry law is missing");
        law.entries_ = EntryLaw::parse(argument);
        return law;
    }
    // A name may contain a colon, eigen:row, so what follows is read by itself.
    ParsedName rest = parsed;
    rest.name = name;
    rest.values.erase(rest.values.begin(), rest.values.begin() + std::count(name.begin(), name.end(), ':'));
    const NameOptions named(rest, law.kind_->entry.options);
    if (!law.kind_->takes(ValueSpec::Kind::whole)) return law;
    if (named.words().size() != 1) throw malformed("it needs one " + law.kind_->argument());
    law.number_ = static_cast<std::size_t>(to_integer(named.words().front()).value());
    return law;
}

VectorLaw VectorLaw::parse(std::string_view text, MatrixSide side) {
    VectorLaw law = of_any_side(text);
    if (!applies_to(law.kind_->sides, side))
        throw usage_error("signal vectors \"{}\" are {} vectors, not {} vectors: give them for the other side", text,
                          side == MatrixSide::row ? "right" : "left", side == MatrixSide::row ? "left" : "right");
    return law;
}

bool VectorLaw::spread_evenly() const { return kind_->spread_evenly; }
bool VectorLaw::orthonormal() const { return kind_->orthonormal; }

void VectorLaw::require_room(std::size_t size, std::size_t rank) const {
    if (kind_->needs(rank, number_) > size)
        throw usage_error("{} signal vectors \"{}\" do not fit into {} coordinates: lower the rank{}", rank, text_,
                          size, kind_->takes(ValueSpec::Kind::whole) ? " or " + kind_->argument() : "");
}

arma::mat VectorLaw::draw(const stream::Stream& stream, const Covariance& covariance, std::size_t rank) const {
    require_room(covariance.size(), rank);
    if (rank == 0) return arma::mat(covariance.size(), 0);
    return kind_->draw({stream, covariance, rank, number_, entries_, text_});
}

SignalVectors parse_signal_vectors(std::string_view text) {
    const VectorLaw law = VectorLaw::of_any_side(text);
    SignalVectors vectors;
    if (applies_to(law.kind_->sides, MatrixSide::row)) vectors.left = law;
    if (applies_to(law.kind_->sides, MatrixSide::column)) vectors.right = law;
    return vectors;
}

const std::vector<RegistryEntry>& vector_laws() {
    static const auto entries = vector_law_kinds().entries();
    return entries;
}

}  // namespace spiked::sim
