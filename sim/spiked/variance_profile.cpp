#include "sim/spiked/variance_profile.hpp"

#include <cmath>
#include <numeric>
#include <vector>

#include "core/runtime/error.hpp"
#include "core/text/names.hpp"
#include "sim/io/matrix_file.hpp"

namespace spiked::sim {
namespace {

constexpr const char* profile_forms = "blocks:1,4/9,0.3[:rows=W,W][:columns=W,W] or file:PATH";

std::vector<double> numbers_of(const std::string& spec, const std::string& list) {
    std::vector<double> numbers;
    for (const auto& part : split(list, ',')) {
        const auto number = to_number(part);
        if (!number) throw usage_error("variances \"{}\": \"{}\" is not a number: write {}", spec, part, profile_forms);
        numbers.push_back(*number);
    }
    return numbers;
}

theory::VarianceProfile blocks_of(const std::string& spec, const ParsedName& name) {
    theory::VarianceProfile profile;
    if (name.values.size() != 1)
        throw usage_error("variances \"{}\" have {} lists of variances (one is needed): write {}", spec,
                          name.values.size(), profile_forms);
    for (const auto& line : split(name.values.front(), '/')) {
        const std::vector<double> row = numbers_of(spec, line);
        if (profile.rows > 0 && row.size() != profile.columns)
            throw usage_error(
                "variances \"{}\": the classes of rows have {} and {} variances: give one for each class of columns",
                spec, profile.columns, row.size());
        profile.columns = row.size();
        ++profile.rows;
        profile.variances.insert(profile.variances.end(), row.begin(), row.end());
    }
    for (const auto& [key, list] : name.options) {
        if (key != "rows" && key != "columns")
            throw usage_error("variances \"{}\" have no option \"{}\": write {}", spec, key, profile_forms);
        (key == "rows" ? profile.row_weights : profile.column_weights) = numbers_of(spec, list);
    }
    return profile;
}

theory::VarianceProfile profile_in_file(const std::string& path) {
    const arma::mat matrix = read_matrix(path);
    const arma::mat by_rows = matrix.t();
    return {matrix.n_rows, matrix.n_cols, {by_rows.begin(), by_rows.end()}, {}, {}};
}

/// How many of `size` lines belong to each class; the counts down to a class differ from the weights by at most 1/2.
std::vector<std::size_t> class_sizes(const std::string& spec, std::vector<double> weights, std::size_t classes,
                                     std::size_t size, const char* what) {
    if (weights.empty()) weights.assign(classes, 1.0 / static_cast<double>(classes));
    const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    if (weights.size() != classes || !(std::abs(sum - 1.0) <= 1e-9))
        throw usage_error(
            "variances \"{}\": the {} weights of {} sum to {} (there are {} classes): give one for each, with the sum "
            "1",
            spec, weights.size(), what, sum, classes);
    std::vector<std::size_t> sizes;
    double cumulative = 0.0;
    std::size_t taken = 0;
    for (const double weight : weights) {
        cumulative += weight / sum;
        const double end = std::round(cumulative * static_cast<double>(size));
        if (!(end > static_cast<double>(taken) && end <= static_cast<double>(size)))
            throw usage_error("variances \"{}\": a class of weight {} has none of {} {}: give it more weight", spec,
                              weight, size, what);
        sizes.push_back(static_cast<std::size_t>(end) - taken);
        taken = static_cast<std::size_t>(end);
    }
    return sizes;
}

std::vector<double> fractions(const std::vector<std::size_t>& sizes, std::size_t size) {
    std::vector<double> weights;
    for (const std::size_t one : sizes) weights.push_back(static_cast<double>(one) / static_cast<double>(size));
    return weights;
}

/// The class of every row or column, from the fractions of them in the classes.
std::vector<std::size_t> classes_of_side(const std::vector<double>& weights, std::size_t size) {
    std::vector<std::size_t> result;
    for (std::size_t a = 0; a < weights.size(); ++a)
        result.insert(result.end(), static_cast<std::size_t>(std::lround(weights[a] * static_cast<double>(size))), a);
    if (result.size() != size)
        throw precondition_error("a variance profile has {} lines where the block has {}", result.size(), size);
    return result;
}

}  // namespace

ProfileSpec parse_profile(const std::string& spec) {
    const std::string of_file = "file:";
    if (spec.starts_with(of_file)) {
        const std::string path = spec.substr(of_file.size());
        if (path.empty()) throw usage_error("variances \"{}\" name no file: write {}", spec, profile_forms);
        return {spec, path, profile_in_file(path)};
    }
    const ParsedName name = parse_name(spec);
    if (name.name != "blocks")
        throw usage_error("variances \"{}\" are not of a known kind: write {}", spec, profile_forms);
    return {spec, "", blocks_of(spec, name)};
}

theory::VarianceProfile profile_of_size(const ProfileSpec& spec, std::size_t rows, std::size_t columns) {
    theory::VarianceProfile profile = spec.classes;
    if (!spec.path.empty() && (profile.rows != rows || profile.columns != columns))
        throw usage_error("{} holds {} x {} variances (the block is {} x {}): give one for each entry", spec.path,
                          profile.rows, profile.columns, rows, columns);
    profile.row_weights = fractions(class_sizes(spec.text, profile.row_weights, profile.rows, rows, "rows"), rows);
    profile.column_weights =
        fractions(class_sizes(spec.text, profile.column_weights, profile.columns, columns, "columns"), columns);
    return profile;
}

arma::mat entry_variances(const theory::VarianceProfile& profile, std::size_t rows, std::size_t columns) {
    const std::vector<std::size_t> row_class = classes_of_side(profile.row_weights, rows);
    const std::vector<std::size_t> column_class = classes_of_side(profile.column_weights, columns);
    arma::mat variances(rows, columns);
    for (std::size_t j = 0; j < columns; ++j)
        for (std::size_t i = 0; i < rows; ++i)
            variances(i, j) = profile.variances[row_class[i] * profile.columns + column_class[j]];
    return variances;
}

}  // namespace spiked::sim
