#include "sim/matrix_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include "sim/csv.hpp"
#include "sim/npy.hpp"
#include "sim/npz.hpp"
#include "sim/printable.hpp"
#include "sim/safetensors.hpp"
#include "sim/tensor_layout.hpp"
#include "theory/base/error.hpp"
#include "theory/base/names.hpp"

namespace spiked::sim {
namespace {

constexpr std::array<std::string_view, 4> suffixes{".npy", ".npz", ".csv", ".safetensors"};

struct Spec {
    std::string path;
    std::optional<std::string> selector;
};

std::string_view suffix_of(const std::string& path) {
    std::string lower = path;
    std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
    for (const auto suffix : suffixes)
        if (lower.ends_with(suffix)) return suffix;
    return "";
}

bool exists(const std::string& path) {
    std::error_code none;
    return std::filesystem::exists(path, none);
}

/// The longest beginning that is an existing file is the path; when there is none, the shortest with a known suffix,
/// so that the message names what the user meant.
Spec split_spec(const std::string& spec) {
    if (exists(spec)) return {spec, std::nullopt};
    for (std::size_t at = spec.rfind(':'); at != std::string::npos && at > 0; at = spec.rfind(':', at - 1))
        if (exists(spec.substr(0, at))) return {spec.substr(0, at), spec.substr(at + 1)};
    for (std::size_t at = spec.find(':'); at != std::string::npos; at = spec.find(':', at + 1))
        if (!suffix_of(spec.substr(0, at)).empty()) return {spec.substr(0, at), spec.substr(at + 1)};
    return {spec, std::nullopt};
}

void refuse_selector(const Spec& spec) {
    if (spec.selector)
        throw input_error("{}: holds one matrix (nothing can be selected with :{}): leave that out", spec.path,
                          *spec.selector);
}

struct Selected {
    const TensorInfo* tensor;
    std::optional<std::size_t> head;
};

Selected select(const SafetensorsFile& file, const std::optional<std::string>& selector) {
    const auto& tensors = file.tensors();
    if (!selector) {
        if (tensors.size() == 1) return {&tensors.front(), std::nullopt};
        std::vector<std::string> names;
        for (const auto& tensor : tensors) names.push_back(tensor.name);
        throw input_error("{}: {} tensors in it ({}): name one as FILE.safetensors:TENSOR", file.path(), tensors.size(),
                          names.empty() ? "nothing can be read" : list_text(names));
    }
    for (const auto& tensor : tensors)
        if (tensor.name == *selector) return {&tensor, std::nullopt};
    const std::size_t colon = selector->rfind(':');
    if (colon == std::string::npos) return {&file.tensor(*selector), std::nullopt};
    const auto& tensor = file.tensor(selector->substr(0, colon));
    const auto head = to_integer(selector->substr(colon + 1));
    if (!head || *head < 0)
        throw input_error("{}: head {} of tensor {} is not a number (counted from 0): write TENSOR:0", file.path(),
                          in_quotes(selector->substr(colon + 1)), in_quotes(tensor.name));
    return {&tensor, static_cast<std::size_t>(*head)};
}

arma::mat read_plain(const SafetensorsFile& file, const TensorInfo& tensor) {
    const std::size_t rows = tensor.shape[0];
    const std::size_t columns = tensor.shape.size() == 2 ? tensor.shape[1] : 1;
    arma::mat transposed(columns, rows, arma::fill::none);
    file.read(tensor, 0, {transposed.memptr(), transposed.n_elem});
    return transposed.t();
}

TensorLayout layout_for(const SafetensorsFile& file, const TensorInfo& tensor, const std::string& option) {
    const auto* stated = find_metadata(file.metadata(), "layout");
    const std::string text = !option.empty() ? option : stated != nullptr ? *stated : "";
    const std::string where = fmt::format("{}: tensor {}", file.path(), in_quotes(tensor.name));
    const auto legal = legal_layouts(tensor.shape);
    if (legal.empty())
        throw input_error("{} has shape {} (a matrix has 2 axes, a cache tensor 3: head, token and dim): reshape it",
                          where, shape_text(tensor.shape));
    if (text.empty())
        throw input_error(
            "{} has an unknown layout (shape {} can be {}; the file names none): put a layout into its "
            "metadata, or save one head as a matrix",
            where, shape_text(tensor.shape), fmt::join(legal, " or "));
    const auto layout = parse_layout(text);
    if (!layout || !layout->fits(tensor.shape))
        throw input_error("{} of shape {} does not fit layout {} (it can be {}): correct the layout", where,
                          shape_text(tensor.shape), in_quotes(text), fmt::join(legal, " or "));
    return *layout;
}

arma::mat read_tensor(const SafetensorsFile& file, const Selected& selected, const std::string& option) {
    const auto& tensor = *selected.tensor;
    const std::string where = fmt::format("{}: tensor {}", file.path(), in_quotes(tensor.name));
    if (tensor.elements() == 0)
        throw input_error("{} is empty (shape {}): nothing can be computed from it", where, shape_text(tensor.shape));
    if (tensor.shape.size() == 1 || tensor.shape.size() == 2) {
        if (selected.head)
            throw input_error("{} has shape {} (a matrix, without heads): leave :{} out", where,
                              shape_text(tensor.shape), *selected.head);
        return read_plain(file, tensor);
    }
    const TensorAxes axes = axes_of(layout_for(file, tensor, option), tensor.shape);
    if (!selected.head)
        throw input_error("{} of shape {} has {} heads (a matrix is one of them): name it as {}:0", where,
                          shape_text(tensor.shape), axes.heads, tensor.name);
    if (*selected.head >= axes.heads)
        throw input_error("{} of shape {} has no head {} (it has {}, counted from 0): name one of 0 to {}", where,
                          shape_text(tensor.shape), *selected.head, axes.heads, axes.heads - 1);
    return gather_block(axes, *selected.head, 0, axes.tokens,
                        [&](std::uint64_t first, std::span<double> out) { file.read(tensor, first, out); });
}

arma::mat read_any(const Spec& spec, const std::string& layout) {
    const auto suffix = suffix_of(spec.path);
    if (suffix == ".npz") return read_npz(spec.path, spec.selector);
    if (suffix == ".safetensors") {
        const SafetensorsFile file(spec.path);
        return read_tensor(file, select(file, spec.selector), layout);
    }
    if (suffix == ".npy" || suffix == ".csv") {
        refuse_selector(spec);
        return suffix == ".npy" ? read_npy(spec.path) : read_csv(spec.path);
    }
    const ByteFile file(spec.path);
    throw input_error("{}: unknown kind of file (its suffix is none of {}): rename or convert it", spec.path,
                      fmt::join(suffixes, ", "));
}

}  // namespace

std::optional<Nonfinite> find_nonfinite(const arma::mat& matrix) {
    if (matrix.is_finite()) return std::nullopt;
    Nonfinite found;
    for (std::size_t i = 0; i < matrix.n_rows; ++i)
        for (std::size_t j = 0; j < matrix.n_cols; ++j)
            if (!std::isfinite(matrix(i, j)) && found.count++ == 0) {
                found.row = i;
                found.column = j;
            }
    return found;
}

void refuse_nonfinite(const arma::mat& matrix, const std::string& where) {
    if (const auto found = find_nonfinite(matrix))
        throw input_error(
            "{}: {} NaN or infinite {} (first at row {}, column {}, counted from 0): remove or replace them", where,
            found->count, found->count == 1 ? "value" : "values", found->row, found->column);
}

arma::mat read_matrix(const std::string& spec, const std::string& layout) {
    arma::mat matrix = read_any(split_spec(spec), layout);
    refuse_nonfinite(matrix, spec);
    return matrix;
}

}  // namespace spiked::sim
