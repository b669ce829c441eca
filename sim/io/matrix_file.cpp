#include "sim/io/matrix_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "core/runtime/error.hpp"
#include "core/runtime/memory.hpp"
#include "core/text/names.hpp"
#include "core/text/printable.hpp"
#include "sim/io/file_formats.hpp"
#include "sim/io/foreign_formats.hpp"
#include "sim/io/npy.hpp"
#include "sim/io/npz.hpp"
#include "sim/io/table.hpp"
#include "sim/io/tensor_layout.hpp"
#include "sim/tables/table_cells.hpp"

namespace spiked::sim {
namespace {

struct Spec {
    std::string path;
    std::optional<std::string> selector;
};

bool exists(const std::string& path) {
    std::error_code none;
    return std::filesystem::exists(path, none);
}

/// The path is the longest prefix that is an existing file. If there is none, it is the shortest prefix with a known
/// suffix, so that the error message names the file that the user meant.
Spec split_spec(const std::string& spec) {
    if (exists(spec)) return {spec, std::nullopt};
    for (std::size_t at = spec.rfind(':'); at != std::string::npos && at > 0; at = spec.rfind(':', at - 1))
        if (exists(spec.substr(0, at))) return {spec.substr(0, at), spec.substr(at + 1)};
    for (std::size_t at = spec.find(':'); at != std::string::npos; at = spec.find(':', at + 1))
        if (format_of(spec.substr(0, at)) != nullptr) return {spec.substr(0, at), spec.substr(at + 1)};
    return {spec, std::nullopt};
}

struct Selected {
    std::size_t tensor;  ///< index
    std::optional<std::size_t> head;
};

Selected select(const TensorContainer& file, const std::optional<std::string>& selector) {
    std::vector<std::string> names;
    for (const auto& tensor : file.tensors()) names.push_back(tensor.name);
    const auto found = [&](const std::string& name) -> std::optional<std::size_t> {
        const auto at = std::find(names.begin(), names.end(), name);
        if (at == names.end()) return std::nullopt;
        return static_cast<std::size_t>(at - names.begin());
    };
    if (!selector) {
        if (names.size() == 1) return {0, std::nullopt};
        throw input_error("{}: it holds {} tensors ({}): name one as {}:NAME", file.path(), names.size(),
                          names.empty() ? "nothing can be read" : list_text(names), file.path());
    }
    if (const auto whole = found(*selector)) return {*whole, std::nullopt};
    const std::size_t colon = selector->rfind(':');
    const std::string name = selector->substr(0, colon);
    const auto tensor = found(name);
    if (!tensor) throw input_error("{}: no tensor {} in it{}", file.path(), in_quotes(name), name_hint(name, names));
    const auto head = to_integer(selector->substr(colon + 1));
    if (!head || *head < 0)
        throw input_error("{}: head {} of tensor {} is not a number (counted from 0): write {}:0", file.path(),
                          in_quotes(selector->substr(colon + 1)), in_quotes(name), name);
    return {*tensor, static_cast<std::size_t>(*head)};
}

TensorLayout layout_for(const TensorContainer& file, const StoredTensor& tensor, const std::string& option) {
    const auto* stated = find_metadata(file.metadata(), "layout");
    const std::string text = !option.empty() ? option : stated != nullptr ? *stated : "";
    const std::string where = fmt::format("{}: tensor {}", file.path(), in_quotes(tensor.name));
    const auto legal = legal_layouts(tensor.shape);
    if (legal.empty())
        throw input_error("{} has shape {} (a matrix has 2 axes, a cache tensor 3: head, token and dim): reshape it",
                          where, shape_text(tensor.shape));
    if (text.empty())
        throw input_error(
            "{} has an unknown layout (shape {} can be {}; the file names none): name it with --layout, or save one "
            "head as a matrix",
            where, shape_text(tensor.shape), fmt::join(legal, " or "));
    const auto layout = parse_layout(text);
    if (!layout || !layout->fits(tensor.shape))
        throw input_error("{} of shape {} does not fit layout {} (it can be {}): correct the layout", where,
                          shape_text(tensor.shape), in_quotes(text), fmt::join(legal, " or "));
    return *layout;
}

/// The axes of a matrix or a column, regarded as a tensor with one head.
TensorAxes axes_of_matrix(const StoredTensor& tensor) {
    const std::size_t rows = tensor.shape[0];
    const std::size_t columns = tensor.shape.size() == 2 ? tensor.shape[1] : 1;
    return {.heads = 1,
            .tokens = rows,
            .dim = columns,
            .token_step = tensor.fortran_order ? 1 : columns,
            .dim_step = tensor.fortran_order ? rows : 1};
}

void reject_beyond_memory(std::size_t rows, std::size_t columns, double copies, const std::string& where) {
    const double needed =
        copies * static_cast<double>(sizeof(double)) * static_cast<double>(rows) * static_cast<double>(columns);
    const auto allowed = static_cast<double>(allowed_memory());
    if (needed <= allowed) return;
    throw Error(ErrorKind::memory,
                fmt::format("{} of {} x {} takes at least {:.3g} GB to work with ({:.3g} GB are allowed): raise the "
                            "limit or give a part of it",
                            where, rows, columns, needed / 1e9, allowed / 1e9));
}

/// The limit is stricter than for dumps, because some computations with a matrix take 20 copies of it.
void reject_packed(const StoredTensor& tensor, const TensorAxes& axes, const std::string& where) {
    constexpr std::uint64_t always = 12 << 20;
    if (tensor.packed)
        reject_expansion(std::uint64_t{axes.tokens} * axes.dim * sizeof(double), *tensor.packed,
                         {.always = always, .times = 12}, where);
}

arma::mat read_tensor(const TensorContainer& file, const Selected& selected, const std::string& option,
                      double copies = 1.0) {
    const auto& tensor = file.tensors()[selected.tensor];
    const std::string where = fmt::format("{}: tensor {}", file.path(), in_quotes(tensor.name));
    const auto read = [&](std::uint64_t first, std::span<double> out) { file.read(selected.tensor, first, out); };
    read(0, {});  // throws for types that are not numbers
    // In safetensors, 8 bits are the codes of a quantizer; an array of NumPy holds the integers themselves.
    if (is_code_dtype(*tensor.dtype) && tensor.dtype_text == dtype_name(*tensor.dtype))
        throw input_error(
            "{} has dtype {} (codes, which are numbers only with their scale): save the numbers as F32, or read a "
            "cache with spiked kv and --scale",
            where, in_quotes(tensor.dtype_text));
    if (std::find(tensor.shape.begin(), tensor.shape.end(), 0) != tensor.shape.end())
        throw input_error("{} is empty (shape {}): give at least one row and one column", where,
                          shape_text(tensor.shape));
    if (tensor.shape.size() == 1 || tensor.shape.size() == 2) {
        if (selected.head)
            throw input_error("{} has shape {} (a matrix, without heads): leave :{} out", where,
                              shape_text(tensor.shape), *selected.head);
        const TensorAxes axes = axes_of_matrix(tensor);
        reject_packed(tensor, axes, where);
        reject_beyond_memory(axes.tokens, axes.dim, copies, where);
        return gather_block(axes, 0, 0, axes.tokens, read);
    }
    const TensorAxes axes = axes_of(layout_for(file, tensor, option), tensor.shape, tensor.fortran_order);
    if (!selected.head)
        throw input_error("{} of shape {} has {} heads (one of them is read as a matrix): name it as {}:{}:0", where,
                          shape_text(tensor.shape), axes.heads, file.path(), tensor.name);
    if (*selected.head >= axes.heads)
        throw input_error("{} of shape {} has no head {} (it has {}, counted from 0): name one of 0 to {}", where,
                          shape_text(tensor.shape), *selected.head, axes.heads, axes.heads - 1);
    reject_packed(tensor, axes, where);
    reject_beyond_memory(axes.tokens, axes.dim, copies, where);
    return gather_block(axes, *selected.head, 0, axes.tokens, read);
}

/// A .npy file of complex numbers in real form; nothing for another file.
std::optional<NotedMatrix> read_real_form(const std::string& path, double copies) {
    const ByteFile bytes(path);
    const ByteSource source = source_of(bytes);
    const NpyHeader header = read_npy_header(source);
    if (!is_complex(header)) return std::nullopt;
    if (header.shape.size() == 2) reject_beyond_memory(2 * header.shape[0], 2 * header.shape[1], copies, path);
    const arma::cx_mat matrix = read_complex_npy(source, header);
    const arma::mat real = arma::real(matrix), imaginary = arma::imag(matrix);
    const bool complex = imaginary.has_nan() || arma::any(arma::vectorise(imaginary));
    NotedMatrix found{.matrix = real, .complex = complex};
    found.notes.push_back(path + (complex
                                      ? ": complex numbers A + iB, read as the real matrix [[A, -B], [B, A]]; files "
                                        "written have that form too"
                                      : ": complex numbers whose imaginary parts are 0, read as real ones"));
    if (complex) found.matrix = arma::join_cols(arma::join_rows(real, -imaginary), arma::join_rows(imaginary, real));
    reject_nonfinite(found.matrix, path);
    return found;
}

/// The matrix in a file, its notes, and whether numbers were taken for a header or an index.
Table read_any(const Spec& spec, const MatrixReading& reading) {
    const FileFormat* format = format_of(spec.path);
    std::vector<std::string> notes;
    if (format == nullptr) {
        format = format_of_content(ByteFile(spec.path));
        if (format == nullptr)
            throw input_error(
                "{}: unknown kind of file (neither its suffix nor its first bytes are those of one of {}): convert it "
                "to one of them; numbers without a header: {}",
                spec.path, fmt::join(matrix_suffixes(), ", "), from_raw_numbers);
        notes.push_back(
            fmt::format("{}: read as {}, which its first bytes say and its suffix does not", spec.path, format->found));
    }
    if (format->open == nullptr) {
        if (spec.selector)
            throw input_error("{}: holds one matrix (no part can be selected with :{}): leave that out", spec.path,
                              *spec.selector);
        if (!reading.layout.empty())
            throw usage_error(
                "{}: --layout has no effect on a table of text (it orders the axes of a tensor): leave it out",
                spec.path);
        Table found = read_table(
            spec.path,
            {.dialect = reading.table, .keep_missing = reading.keep_missing, .missing_option = reading.missing_option});
        found.notes.insert(found.notes.end(), notes.begin(), notes.end());
        found.of_text = true;
        reject_beyond_memory(found.matrix.n_rows, found.matrix.n_cols, reading.copies, spec.path + ": matrix");
        return found;
    }
    const TableDialect& table = reading.table;
    if (table.delimiter || table.decimal || table.header || table.index)
        throw usage_error(
            "{}: --delimiter, --decimal, --header and --index have no effect on a {} file (they are for tables of "
            "text): leave them out",
            spec.path, format->name);
    const auto file = format->open(spec.path);
    for (const auto& note : file->notes()) notes.push_back(fmt::format("{}: {}", spec.path, note));
    const Selected selected = select(*file, spec.selector);
    const StoredTensor& tensor = file->tensors()[selected.tensor];
    for (const auto& other : file->tensors())
        if (&other != &tensor && lower_case(other.name).ends_with("mask") && other.shape == tensor.shape)
            notes.push_back(
                fmt::format("{}: its array {} has the same shape and is not applied: if it marks missing values, save "
                            "numpy.where(mask, numpy.nan, data) of the two",
                            spec.path, in_quotes(other.name)));
    if (tensor.dtype_text.starts_with("sparse"))
        notes.push_back(fmt::format("{}: a sparse matrix: entries that are not stored are read as 0", spec.path));
    if (tensor.shape.size() == 1)
        notes.push_back(fmt::format("{}: its array has one axis and is read as one column", spec.path));
    return {.matrix = read_tensor(*file, selected, reading.layout, reading.copies), .notes = std::move(notes)};
}

}  // namespace

const CharacterNames& delimiter_names() {
    static const CharacterNames names = {
        {"comma", ','}, {"semicolon", ';'}, {"tab", '\t'}, {"blank", ' '}, {"bar", '|'}};
    return names;
}

const CharacterNames& decimal_names() {
    static const CharacterNames names = {{"point", '.'}, {"comma", ','}};
    return names;
}

char named_character(const std::string& key, const std::string& text, const CharacterNames& names) {
    std::vector<std::string> words;
    for (const auto& [word, character] : names) {
        if (text == word || text == std::string(1, character) || (text == "\\t" && character == '\t')) return character;
        words.push_back(word);
    }
    throw usage_error("{} \"{}\" is not possible{}", key, text, suggestion(text, words));
}

arma::mat read_matrix(const TensorContainer& file) { return read_tensor(file, select(file, std::nullopt), ""); }

std::optional<Nonfinite> find_nonfinite(const arma::mat& matrix) {
    if (matrix.is_finite()) return std::nullopt;
    Nonfinite found;
    for (std::size_t i = 0; i < matrix.n_rows; ++i)
        for (std::size_t j = 0; j < matrix.n_cols; ++j)
            if (!std::isfinite(matrix(i, j))) {
                found.infinite += std::isinf(matrix(i, j));
                if (found.count++ > 0) continue;
                found.row = i;
                found.column = j;
            }
    return found;
}

void reject_nonfinite(const arma::mat& matrix, const std::string& where, const std::string& option) {
    if (const auto found = find_nonfinite(matrix))
        throw input_error(
            "{}: {} NaN or infinite {} (first at row {}, column {}, counted from 0): {}remove or replace them", where,
            found->count, found->count == 1 ? "value" : "values", found->row, found->column,
            found->infinite == 0 ? missing_advice(option) : "");
}

namespace {

/// Whether programs write the number where nothing was measured: nines (-99, -999.9, 99999), the ends of integer types,
/// and sizes from 1e20 on (9.96921e36 in netCDF).
bool stands_for_nothing(double value) {
    constexpr double rounding = 1e-7;  // of float
    const double size = std::abs(value);
    if (value == 32767.0 || value == -32768.0 || value == 2147483647.0 || value == -2147483648.0) return true;
    for (double next = value < 0.0 ? 100.0 : 1000.0; next <= 1e6; next *= 10.0)
        for (const double unit : {1.0, 0.1, 0.01})
            if (std::abs(size - (next - unit)) <= rounding * size) return true;
    return size >= 1e20;
}

/// The smallest or largest of the numbers, where it is such a number and lies apart from the others (of which there are
/// at least 3): by more than half of their range, or below 0 and they are not; large sizes by 1000 times their range.
std::optional<double> number_apart(const double* numbers, std::size_t count) {
    const auto range = [&](double without) {
        std::pair found(arma::datum::inf, -arma::datum::inf);
        for (const double* at = numbers; at != numbers + count; ++at)
            if (std::isfinite(*at) && *at != without) found = {std::min(found.first, *at), std::max(found.second, *at)};
        return found;
    };
    const auto [least, most] = range(arma::datum::nan);
    for (const double value : {least, most}) {
        if (!std::isfinite(value) || !stands_for_nothing(value)) continue;
        const auto others = std::count_if(numbers, numbers + count,
                                          [&](double number) { return std::isfinite(number) && number != value; });
        const auto [from, to] = range(value);
        const double gap = value < from ? from - value : value - to;
        const double needed = (std::abs(value) >= 1e20 ? 1e3 : 0.5) * (to - from);
        if (others >= 3 && (gap > needed || (value < 0.0 && from >= 0.0))) return value;
    }
    return std::nullopt;
}

/// A note on a number that occurs at least twice, apart from the others of the matrix or of its columns, and may stand
/// for missing values; empty without one.
std::string stand_in_note(const arma::mat& matrix, const std::string& option) {
    std::optional<double> value = number_apart(matrix.memptr(), matrix.n_elem);
    const bool of_all = value.has_value();
    std::size_t count = 0, row = 0, column = 0;
    for (std::size_t j = 0; j < matrix.n_cols; ++j) {
        const auto in_column = of_all ? value : number_apart(matrix.colptr(j), matrix.n_rows);
        if (!in_column || (value && *in_column != *value)) continue;
        value = in_column;
        for (std::size_t i = 0; i < matrix.n_rows; ++i)
            if (matrix(i, j) == *value && (count++ == 0 || i < row)) row = i, column = j;
    }
    if (count < 2) return "";
    return fmt::format(
        "{} of its numbers are {:.6g} (the first at row {}, column {}, counted from 0), far from the others, and are "
        "read as data (where they stand for missing values, write NaN in their place{})",
        count, *value, row, column, option.empty() ? "" : ", which " + option + " accepts");
}

/// Rejects infinite values, the only ones that are errors where missing values are kept.
void reject_infinite(const arma::mat& matrix, const std::string& where) {
    const auto found = find_nonfinite(matrix);
    if (!found || found->infinite == 0) return;
    const arma::uvec places = arma::find(arma::abs(matrix.t()) == arma::datum::inf, 1);  // in row order
    throw input_error("{}: {} infinite {} (first at row {}, column {}, counted from 0): remove or replace {}", where,
                      found->infinite, found->infinite == 1 ? "value" : "values", places[0] / matrix.n_cols,
                      places[0] % matrix.n_cols, found->infinite == 1 ? "it" : "them");
}

}  // namespace

NotedMatrix read_noted_matrix(const std::string& spec, const MatrixReading& reading) {
    if (reading.real_form && spec.ends_with(".npy"))
        if (auto found = read_real_form(spec, reading.copies)) return std::move(*found);
    Table table = read_any(split_spec(spec), reading);
    if (reading.keep_missing)
        reject_infinite(table.matrix, spec);
    else
        reject_nonfinite(table.matrix, spec, reading.missing_option);
    if (const auto note = stand_in_note(table.matrix, reading.missing_option); !note.empty())
        table.notes.push_back(spec + ": " + note);
    return {std::move(table.matrix), std::move(table.notes), table.of_text};
}

arma::mat read_matrix(const std::string& spec, const std::string& layout) {
    Table table = read_any(split_spec(spec), {.layout = layout, .table = {}});
    if (table.guessed)
        throw input_error(
            "{} (a guess, which cannot be confirmed here): name the columns in the first line, with an empty cell "
            "above an index, or save the numbers as .npy",
            table.notes.front());
    reject_nonfinite(table.matrix, spec);
    return std::move(table.matrix);
}

}  // namespace spiked::sim
