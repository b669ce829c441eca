#include "estimators/symmetric/symmetric_components.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <cmath>
#include <numeric>

#include "core/runtime/error.hpp"

namespace spiked::estimators {
namespace {

using theory::Field;
using theory::SpikedWigner;

constexpr double rounding_of_symmetry = 1e-8;  ///< of the largest entry
constexpr std::size_t least_size = 3;
constexpr double separation = 3.0;     ///< of components, in standard errors of the strength
constexpr double largest_shift = 1.0;  ///< of the edge by the fourth cumulant, sigma k / n, in units of sigma

/// Positions by modulus, largest first.
std::vector<std::size_t> by_modulus(std::span<const double> eigenvalues) {
    std::vector<std::size_t> order(eigenvalues.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return std::abs(eigenvalues[a]) > std::abs(eigenvalues[b]); });
    return order;
}

/// sigma from the median modulus of the eigenvalues behind r components, those of noise of n - r rows. The mean square
/// of Gaussian noise of that size is 1 + 1/n of sigma^2 for real entries, by their larger diagonal.
double level_by_median(const std::vector<double>& moduli, std::size_t components, double diagonal) {
    const std::size_t rest = moduli.size() - components;
    const double upper = moduli[components + (rest - 1) / 2], lower = moduli[components + rest / 2];
    const double share = (static_cast<double>(rest) + diagonal - 1.0) / static_cast<double>(moduli.size());
    return 0.5 * (upper + lower) / theory::semicircle_median_modulus / std::sqrt(share);
}

/// sigma from the mean square of all entries: E tr W^2 = sigma^2 (n + w - 1) with a diagonal of w times the variance,
/// and a component of strength s adds s^2 + 2 s v^T W v, which is the square of the strength estimated from the
/// eigenvalue but for terms of mean 0. Solved for itself as in Kritchman and Nadler 2008.
double level_by_mean(const std::vector<double>& moduli, std::size_t components, double diagonal) {
    const double rows = static_cast<double>(moduli.size()) + diagonal - 1.0;
    double sum = 0.0;
    for (const double modulus : moduli) sum += modulus * modulus;
    double behind = 0.0;
    for (std::size_t i = components; i < moduli.size(); ++i) behind += moduli[i] * moduli[i];
    if (behind == 0.0) return 0.0;
    double level = std::sqrt(behind / rows);
    for (int round = 0; round < 200; ++round) {
        const SpikedWigner model(level);
        double rest = sum;
        for (std::size_t i = 0; i < components; ++i) rest -= std::pow(model.strength_of(moduli[i]).value_or(level), 2);
        const double next = std::sqrt(std::max(rest, behind) / rows);
        if (std::abs(next - level) <= 1e-14 * level) return next;
        level = next;
    }
    return level;
}

void require_usable(const SymmetricOptions& options) {
    const auto share = [](double value) { return value > 0.0 && value < 1.0; };
    if (!share(options.level) || !share(options.confidence))
        throw usage_error("a level of {} and a confidence of {} are not usable (between 0 and 1): correct them",
                          options.level, options.confidence);
    if (options.entry_deviation && !(*options.entry_deviation > 0.0 && std::isfinite(*options.entry_deviation)))
        throw usage_error("a standard deviation of {} is not usable (positive and finite): leave it out to estimate it",
                          *options.entry_deviation);
}

/// A matrix over its largest entry, decomposed.
template <class Matrix>
struct Decomposed {
    Matrix matrix;
    double unit = 0.0;
    std::vector<double> values;  ///< descending
    Matrix vectors;
};

template <class Matrix>
Decomposed<Matrix> decomposed(Matrix matrix, double unit) {
    Decomposed<Matrix> found{std::move(matrix), unit, {}, {}};
    arma::vec ascending;
    if (!arma::eig_sym(ascending, found.vectors, found.matrix))
        throw postcondition_error("the eigendecomposition of a {0} x {0} matrix failed", found.matrix.n_rows);
    found.values.assign(ascending.begin(), ascending.end());
    std::reverse(found.values.begin(), found.values.end());
    found.vectors = arma::fliplr(found.vectors);
    return found;
}

/// Fourth cumulant and diagonal of what the estimated signal leaves.
template <class Matrix>
theory::WignerEntries entries_of(const Matrix& rest, Field field) {
    const double n = static_cast<double>(rest.n_rows);
    double square = 0.0, fourth = 0.0, diagonal = 0.0;
    for (arma::uword j = 0; j < rest.n_cols; ++j) {
        diagonal += std::norm(rest(j, j)) / n;
        for (arma::uword i = 0; i < j; ++i) {
            const double power = std::norm(rest(i, j));
            square += power;
            fourth += power * power;
        }
    }
    const double count = 0.5 * n * (n - 1.0);
    if (square == 0.0) return {};
    const double variance = square / count;
    return {.excess_kurtosis = fourth / count / (variance * variance) - (field == Field::real ? 3.0 : 2.0),
            .diagonal_variance = diagonal / variance};
}

/// sum |v_i|^4 of the true vector from the observed one, u = sqrt(a) v + sqrt(1 - a) g / sqrt(n) with Gaussian g.
template <class Column>
double fourth_powers(const Column& observed, double overlap, Field field) {
    double sum = 0.0;
    for (const auto& entry : observed) sum += std::norm(entry) * std::norm(entry);
    const double n = static_cast<double>(observed.n_elem);
    const double cross = field == Field::real ? 6.0 : 4.0, own = field == Field::real ? 3.0 : 2.0;
    const double noise = 1.0 - overlap;
    const double left = sum - (cross * overlap * noise + own * noise * noise) / n;
    return std::clamp(left / (overlap * overlap), 1.0 / n, 1.0);
}

Interval on_logistic_scale(double overlap, double deviation) {
    const double spread = deviation / (overlap * (1.0 - overlap));
    const double middle = std::log(overlap / (1.0 - overlap));
    const auto logistic = [](double x) { return 1.0 / (1.0 + std::exp(-x)); };
    return {logistic(middle - spread), logistic(middle + spread)};
}

/// Fills in strength, overlap and intervals; all numbers are in the unit of the model.
void estimate(SymmetricComponent& component, const SpikedWigner& model, const theory::WignerEntries& entries,
              double size, const SymmetricOptions& options) {
    const auto strength = model.strength_of(component.eigenvalue);
    if (!strength) {  // the test counts an eigenvalue below the edge at a high level
        component.strength = std::copysign(model.detection_threshold(), component.eigenvalue);
        component.strength_interval = {component.strength, component.strength};
        return;
    }
    component.strength = *strength;
    component.overlap = model.squared_overlap(*strength).value;
    component.shrunk = model.shrunk(component.eigenvalue, options.loss);
    const auto spread = model.spread(*strength, entries);
    const double quantile =
        boost::math::quantile(boost::math::complement(boost::math::normal(), 0.5 * (1.0 - options.confidence)));
    const double half = quantile * spread->strength / std::sqrt(size);
    const double least = std::max(model.detection_threshold(), std::abs(*strength) - half);
    const double most = std::abs(*strength) + half;
    component.strength_interval = *strength > 0.0 ? Interval{least, most} : Interval{-most, -least};
    component.overlap_interval =
        on_logistic_scale(component.overlap, quantile * spread->estimated_overlap / std::sqrt(size));
}

void scale(SymmetricComponent& component, double unit) {
    for (double* number : {&component.eigenvalue, &component.strength, &component.strength_interval.low,
                           &component.strength_interval.high, &component.shrunk})
        *number *= unit;
}

/// Numbers, from 1, of components for which this holds.
template <class Holds>
std::vector<std::size_t> numbers_of(std::size_t count, Holds holds) {
    std::vector<std::size_t> numbers;
    for (std::size_t i = 0; i < count; ++i)
        if (holds(i)) numbers.push_back(i + 1);
    return numbers;
}

void add_note(std::string& notes, const std::string& note) { notes += (notes.empty() ? "" : "; ") + note; }

/// Notes on close components and on those that heavy tails of the entries explain; `kurtosis` is that of the test.
void add_notes(SymmetricComponents& result, const SpikedWigner& model, double level, double kurtosis) {
    const auto& all = result.components;
    const double root = std::sqrt(static_cast<double>(result.size));
    const auto near = numbers_of(all.size(), [&](std::size_t i) {
        return std::any_of(all.begin(), all.end(), [&](const SymmetricComponent& other) {
            const auto spread = model.spread(all[i].strength);
            return &other != &all[i] && other.strength * all[i].strength > 0.0 && spread &&
                   std::abs(other.strength - all[i].strength) < separation * spread->strength / root;
        });
    });
    if (!near.empty())
        add_note(result.note, fmt::format("components {} have a neighbour nearer than {:g} standard errors: their "
                                          "vectors mix, so that the overlap of each is too high",
                                          fmt::join(near, ", "), separation));
    const double size = static_cast<double>(result.size);
    if (kurtosis <= largest_shift * size) return;
    const double bound = model.critical_modulus(level, result.size, {.excess_kurtosis = kurtosis});
    const auto inside = numbers_of(all.size(), [&](std::size_t i) { return std::abs(all[i].eigenvalue) <= bound; });
    if (!inside.empty())
        add_note(
            result.note,
            fmt::format("entries have an excess kurtosis of {:.3g}, above {:g} times the number of rows, where its "
                        "effect on the edge of noise is not known and left out: components {} may be noise",
                        kurtosis, largest_shift, fmt::join(inside, ", ")));
}

/// The matrix sum_i shrunk_i v_i v_i^*.
template <class Matrix>
Matrix signal_of(const std::vector<SymmetricComponent>& components, const std::vector<std::size_t>& at,
                 const Matrix& vectors) {
    Matrix signal(vectors.n_rows, vectors.n_rows, arma::fill::zeros);
    for (std::size_t i = 0; i < components.size(); ++i)
        signal += components[i].shrunk * vectors.col(at[i]) * vectors.col(at[i]).t();
    return signal;
}

template <class Matrix>
SymmetricComponents components_of(Decomposed<Matrix> from, Field field, SymmetricOptions options, Matrix& signal) {
    const std::size_t n = from.values.size();
    const double size = static_cast<double>(n);
    if (options.entry_deviation) *options.entry_deviation /= from.unit;
    Matrix rest = from.matrix;
    const SymmetricRank rank =
        symmetric_rank(from.values, field, options, [&](std::size_t next, const SpikedWigner& model) {
            rest -= model.shrunk(from.values[next]) * from.vectors.col(next) * from.vectors.col(next).t();
            return entries_of(rest, field).excess_kurtosis;
        });
    SymmetricComponents result{.field = field, .size = n, .eigenvalues = from.values};
    result.next_p_value = rank.next_p_value;
    for (std::size_t i = 0; i < rank.found.size(); ++i) {
        SymmetricComponent component{.eigenvalue = from.values[rank.found[i]], .p_value = rank.p_values[i]};
        if (rank.noise_level == 0.0) {
            component.strength = component.shrunk = component.eigenvalue;
            component.strength_interval = {component.strength, component.strength};
            component.overlap = 1.0;
            component.overlap_interval = {1.0, 1.0};
        }
        result.components.push_back(component);
    }
    if (rank.noise_level == 0.0) {
        result.note = "at least half of the eigenvalues are 0: low rank, no noise level to estimate";
    } else {
        const SpikedWigner model(rank.noise_level, field);
        for (auto& component : result.components) component.shrunk = model.shrunk(component.eigenvalue);
        result.entries =
            entries_of(Matrix(from.matrix - signal_of(result.components, rank.found, from.vectors)), field);
        for (std::size_t i = 0; i < rank.found.size(); ++i) {
            theory::WignerEntries entries = result.entries;
            const double modulus = std::abs(result.components[i].eigenvalue);
            if (const auto strength = model.strength_of(modulus))
                entries.fourth_powers =
                    fourth_powers(from.vectors.col(rank.found[i]), model.squared_overlap(*strength).value, field);
            estimate(result.components[i], model, entries, size, options);
        }
        add_notes(result, model, options.level, rank.excess_kurtosis);
    }
    signal = from.unit * signal_of(result.components, rank.found, from.vectors);
    for (auto& component : result.components) scale(component, from.unit);
    for (double& value : result.eigenvalues) value *= from.unit;
    result.entry_deviation = rank.noise_level / std::sqrt(size) * from.unit;
    result.edge = 2.0 * rank.noise_level * from.unit;
    return result;
}

/// The largest entry of a square matrix; throws input_error for what no analysis takes.
double unit_of(const arma::mat& matrix, std::size_t size) {
    if (matrix.n_rows != matrix.n_cols || size < least_size)
        throw input_error(
            "a {} x {} matrix is not square, or too small: give one of at least {} rows and as many columns",
            matrix.n_rows, matrix.n_cols, least_size);
    if (!matrix.is_finite()) throw input_error("the matrix holds NaN or infinities: correct it");
    return arma::abs(matrix).max();
}

bool mirrored(const arma::mat& one, const arma::mat& other, double sign, double within) {
    for (arma::uword j = 0; j < one.n_cols; ++j)
        for (arma::uword i = 0; i <= j; ++i)
            if (!(std::abs(one(i, j) - sign * other(j, i)) <= within)) return false;
    return true;
}

SymmetricComponents of_zero(Field field, std::size_t size) {
    SymmetricComponents result{.field = field, .size = size};
    result.eigenvalues.assign(size, 0.0);
    result.note = "the matrix is zero: there is nothing to analyse";
    return result;
}

}  // namespace

SymmetricRank symmetric_rank(std::span<const double> eigenvalues, Field field, const SymmetricOptions& options,
                             const KurtosisBehind& kurtosis_behind) {
    require_usable(options);
    const std::size_t n = eigenvalues.size();
    const double size = static_cast<double>(n);
    const double diagonal = field == Field::real ? 2.0 : 1.0;
    const auto order = by_modulus(eigenvalues);
    std::vector<double> moduli;
    for (const std::size_t at : order) moduli.push_back(std::abs(eigenvalues[at]));
    SymmetricRank result;
    const double rounding = 1e-13 * size * (moduli.empty() ? 0.0 : moduli.front());
    const auto above = static_cast<std::size_t>(
        std::count_if(moduli.begin(), moduli.end(), [&](double modulus) { return modulus > rounding; }));
    if (above <= n / 2 && !options.entry_deviation) {
        result.found.assign(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(above));
        result.p_values.assign(above, 0.0);
        return result;
    }
    const auto level_behind = [&](std::size_t components) {
        if (options.entry_deviation) return *options.entry_deviation * std::sqrt(size);
        return options.rule == VarianceRule::mean ? level_by_mean(moduli, components, diagonal)
                                                  : level_by_median(moduli, components, diagonal);
    };
    const auto p_value = [&](std::size_t at) {
        const double share = static_cast<double>(n - at) / size;
        const bool known = result.excess_kurtosis <= largest_shift * size;
        return SpikedWigner(result.noise_level * std::sqrt(share), field)
            .p_value(moduli[at], n - at, {.excess_kurtosis = known ? result.excess_kurtosis : 0.0});
    };
    for (std::size_t found = 0;; ++found) {
        result.noise_level = level_behind(found);
        if (result.noise_level == 0.0) {  // nothing is left but zeros
            result.found.assign(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(found));
            result.p_values.assign(found, 0.0);
            return result;
        }
        if (kurtosis_behind)
            result.excess_kurtosis = kurtosis_behind(order[found], SpikedWigner(result.noise_level, field));
        const double next = p_value(found);
        if (next >= options.level || found + least_size >= n) {
            result.next_p_value = next;
            result.found.assign(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(found));
            for (std::size_t i = 0; i < found; ++i) result.p_values.push_back(p_value(i));
            return result;
        }
    }
}

SymmetricComponents symmetric_components(const arma::mat& matrix, const SymmetricOptions& options) {
    require_usable(options);
    const double unit = unit_of(matrix, matrix.n_rows);
    if (unit == 0.0) {
        SymmetricComponents zero = of_zero(Field::real, matrix.n_rows);
        zero.signal.zeros(matrix.n_rows, matrix.n_cols);
        return zero;
    }
    if (!mirrored(matrix, matrix, 1.0, rounding_of_symmetry * unit))
        throw input_error("the matrix is not symmetric (entries differ from their mirrors): leave --symmetric out");
    arma::mat signal;
    auto result =
        components_of(decomposed<arma::mat>(arma::symmatu(matrix / unit), unit), Field::real, options, signal);
    result.signal = std::move(signal);
    return result;
}

bool is_hermitian_form(const arma::mat& matrix) {
    const arma::uword n = matrix.n_rows / 2;
    if (matrix.n_rows != matrix.n_cols || matrix.n_rows % 2 != 0 || n < least_size || !matrix.is_finite()) return false;
    const double within = rounding_of_symmetry * arma::abs(matrix).max();
    const arma::mat real = matrix.submat(0, 0, n - 1, n - 1), imaginary = matrix.submat(n, 0, 2 * n - 1, n - 1);
    const arma::mat above = matrix.submat(0, n, n - 1, 2 * n - 1), below = matrix.submat(n, n, 2 * n - 1, 2 * n - 1);
    return arma::abs(imaginary).max() > within && arma::abs(imaginary + above).max() <= within &&
           arma::abs(real - below).max() <= within && mirrored(real, real, 1.0, within) &&
           mirrored(imaginary, imaginary, -1.0, within);
}

SymmetricComponents hermitian_components(const arma::mat& real_form, const SymmetricOptions& options) {
    require_usable(options);
    const arma::uword n = real_form.n_rows / 2;
    const double unit = unit_of(real_form, n);
    if (!is_hermitian_form(real_form))
        throw input_error(
            "the matrix is not Hermitian (in its real form [[A, -B], [B, A]] A is symmetric, B antisymmetric and not "
            "0): correct it or leave --symmetric out");
    const arma::cx_mat matrix(real_form.submat(0, 0, n - 1, n - 1) / unit,
                              real_form.submat(n, 0, 2 * n - 1, n - 1) / unit);
    arma::cx_mat signal;
    auto result =
        components_of(decomposed<arma::cx_mat>(0.5 * (matrix + matrix.t()), unit), Field::complex, options, signal);
    const arma::mat real = arma::real(signal), imaginary = arma::imag(signal);
    result.signal = arma::join_cols(arma::join_rows(real, -imaginary), arma::join_rows(imaginary, real));
    return result;
}

}  // namespace spiked::estimators
