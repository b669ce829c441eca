#include "validation/kv/spectrum_references.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "codec/cache/cache_rows.hpp"
#include "core/runtime/error.hpp"
#include "core/runtime/parallel.hpp"
#include "theory/quantization/rate_distortion.hpp"

namespace spiked::validation {
namespace {

constexpr std::array reference_names = {"water-filling", "water-filling+ar"};
/// Slopes of 1 or more have no stationary process.
constexpr double largest_slope = 0.999;

}  // namespace

std::vector<std::vector<double>> water_filled_errors(const arma::mat& rows, const std::vector<double>& bits) {
    if (!rows.is_finite()) throw input_error("a head holds NaN or infinity (it has no covariance): remove its tokens");
    const double norm = arma::norm(rows, "fro");
    if (rows.n_rows < 2 || norm == 0.0) return {};
    const double mean_square = norm * norm / static_cast<double>(rows.n_elem);
    const arma::mat centred = rows.each_row() - arma::mean(rows, 0);
    arma::vec variances;
    arma::mat components;
    if (!arma::eig_sym(variances, components, arma::mat(centred.t() * centred / static_cast<double>(rows.n_rows))))
        throw input_error(
            "the covariance of a head has no eigenvalues (its entries differ too much in size): leave the head out "
            "with --heads");
    const arma::mat coordinates = centred * components;
    const arma::mat before = coordinates.head_rows(rows.n_rows - 1);
    const arma::rowvec products = arma::sum(coordinates.tail_rows(rows.n_rows - 1) % before, 0);
    const arma::rowvec squares = arma::sum(arma::square(before), 0);
    std::vector<theory::NormalChannel> white;
    std::vector<theory::NormalChannel> predicted;
    for (arma::uword k = 0; k < variances.n_elem; ++k) {
        const double variance = std::max(0.0, variances(k));
        const double slope = squares(k) > 0.0 ? products(k) / squares(k) : 0.0;
        white.push_back({variance});
        predicted.push_back({variance, std::clamp(slope, -largest_slope, largest_slope)});
    }
    std::vector<std::vector<double>> errors(reference_names.size());
    for (const double rate : bits) {
        errors[0].push_back(std::sqrt(theory::water_filled_distortion(white, rate) / mean_square));
        errors[1].push_back(std::sqrt(theory::water_filled_distortion(predicted, rate) / mean_square));
    }
    return errors;
}

std::vector<SpectrumReference> spectrum_references(const KvPlan& plan, const std::vector<double>& bits,
                                                   std::size_t threads) {
    const OpenDumps open = open_dumps(plan);
    std::vector<std::vector<std::vector<double>>> of_heads(open.heads.size());
    for_each_parallel(open.heads.size(), threads, [&](std::size_t i) {
        const DumpHeadPlace& at = open.heads[i];
        const sim::KvDump& dump = *open.dumps[at.dump];
        const auto rotary = at.tensor->side == sim::Side::key && sim::has_rotary(dump)
                                ? std::optional(sim::dump_rotary(dump))
                                : std::nullopt;
        const arma::mat rows = codec::joined_rows(dump, {at.tensor}, at.head, 1, rotary);
        if (rows.n_rows > 1)
            of_heads[i] = spiked::located(
                [&] { return fmt::format("{}: tensor {}, head {}", dump.path(), at.tensor->name, at.head); },
                [&] { return water_filled_errors(rows.tail_rows(rows.n_rows - 1), bits); });
    });
    std::vector<SpectrumReference> references;
    for (const sim::Side side : {sim::Side::key, sim::Side::value})
        for (std::size_t name = 0; name < reference_names.size(); ++name) {
            SpectrumReference reference{std::string(sim::side_name(side)), reference_names[name], {}};
            for (std::size_t b = 0; b < bits.size(); ++b) {
                double sum = 0.0;
                double weights = 0.0;
                for (std::size_t i = 0; i < open.heads.size(); ++i) {
                    if (open.heads[i].tensor->side != side || of_heads[i].empty()) continue;
                    const auto blocks = static_cast<double>(open.heads[i].tensor->tokens / plan.block_tokens);
                    sum += blocks * of_heads[i][name][b];
                    weights += blocks;
                }
                if (weights > 0.0) reference.points.push_back({bits[b], sum / weights});
            }
            if (!reference.points.empty()) references.push_back(std::move(reference));
        }
    return references;
}

}  // namespace spiked::validation
