#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "core/files/byte_file.hpp"
#include "core/runtime/error.hpp"
#include "core/text/names.hpp"
#include "core/text/printable.hpp"
#include "sim/io/loaded_tensors.hpp"
#include "sim/io/text_lines.hpp"

// Octave's text format (save -text, its default): for each variable lines `# name: x`, `# type: matrix`, its size, then
// numbers. Matrices are written row by row, arrays of other types or more axes one number a line, by columns.

namespace spiked::sim {
namespace {

struct OctaveVariable {
    StoredTensor stored;
    bool by_rows = false;
    bool sparse = false;
    std::uint64_t entries = 0;  ///< of a sparse matrix
    std::uint64_t bytes = 0;    ///< of the lines with its numbers
    std::vector<double> numbers;
};

/// Reads the file line by line: all headers, and the numbers of all variables or none. They are read at once because
/// the lines of a variable are found only by reading all lines before them.
class OctaveText {
public:
    OctaveText(const ByteFile& file, bool with_numbers) : path_(file.path()), with_numbers_(with_numbers) {
        each_line(file, [this](std::string_view text) { line(text); });
    }
    [[nodiscard]] const std::vector<OctaveVariable>& variables() const { return variables_; }
    [[noreturn]] void damaged(std::string_view found) const {
        throw input_error("{}: line {}: damaged Octave text ({}): save it again", path_, line_, found);
    }

private:
    void line(std::string_view text) {
        ++line_;
        if (text.empty()) return;
        if (text.front() == '#' || text.front() == '%') return header(text.substr(1));
        if (variables_.empty()) damaged("numbers before the first name");
        auto& variable = variables_.back();
        if (axes_ > 0) return sizes(variable, text);
        if (!variable.stored.dtype) return;
        variable.bytes += text.size() + 1;
        if (with_numbers_) numbers(text, variable.numbers);
    }
    void header(std::string_view text) {
        const std::size_t colon = text.find(':');
        if (colon == text.npos) return;
        const auto trimmed = [](std::string_view part) {
            const std::size_t first = part.find_first_not_of(" \t");
            if (first == part.npos) return std::string_view();
            return part.substr(first, part.find_last_not_of(" \t\r") + 1 - first);
        };
        const std::string_view key = trimmed(text.substr(0, colon)), value = trimmed(text.substr(colon + 1));
        if (key == "name") {
            constexpr std::size_t most_variables = 4096;
            if (variables_.size() == most_variables) damaged("more than 4096 variables");
            variables_.emplace_back();
            variables_.back().stored.name = value;
            variables_.back().stored.fortran_order = true;
            axes_ = 0;
        } else if (!variables_.empty()) {
            describe(variables_.back(), key, value);
        }
    }
    void describe(OctaveVariable& variable, std::string_view key, std::string_view value) {
        const auto ends = [&](std::string_view word) {
            return value == word || value.ends_with(fmt::format(" {}", word));
        };
        if (key == "type") {
            if (ends("struct") || ends("cell") || ends("object"))
                throw input_error(
                    "{}: variable {} is a {} (its parts are written like variables): save the matrices alone, in "
                    "Octave: save -text x.mat NAME",
                    path_, in_quotes(variable.stored.name), printable(value));
            variable.stored.dtype_text = printable(value);
            const bool real = value.find("complex") == value.npos && value.find("diagonal") == value.npos &&
                              value.find("permutation") == value.npos;
            const bool scalar = ends("scalar") || value == "bool";
            if (!real || !(ends("matrix") || scalar)) return;
            variable.stored.dtype = value.starts_with("bool") ? DType::boolean : DType::f64;
            variable.sparse = value.starts_with("sparse");
            if (scalar) variable.stored.shape = {1, 1};
            return;
        }
        if (!variable.stored.dtype) return;
        const auto number = to_integer(value);
        if (key != "rows" && key != "columns" && key != "ndims" && key != "nnz") return;
        if (!number || *number < 0 || *number > (std::int64_t{1} << 31U)) damaged("an impossible size");
        const auto size = static_cast<std::size_t>(*number);
        if (key == "nnz")
            variable.entries = size;
        else if (key == "ndims")
            axes_ = size;
        else
            variable.stored.shape.push_back(size);
        variable.by_rows = key != "ndims";
    }
    /// The line behind `# ndims: 3`.
    void sizes(OctaveVariable& variable, std::string_view text) {
        each_word(text, [&](std::string_view word) {
            const auto size = to_integer(word);
            if (!size || *size < 0 || *size > (std::int64_t{1} << 31U)) damaged("an impossible size");
            variable.stored.shape.push_back(static_cast<std::size_t>(*size));
        });
        if (variable.stored.shape.size() != axes_) damaged("other axes than it says");
        axes_ = 0;
    }
    void numbers(std::string_view text, std::vector<double>& values) const {
        each_word(text, [&](std::string_view word) {
            if (word == "NaN" || word == "NA")
                values.push_back(std::numeric_limits<double>::quiet_NaN());
            else if (word == "Inf" || word == "-Inf")
                values.push_back(word == "Inf" ? HUGE_VAL : -HUGE_VAL);
            else if (const auto number = to_number(word))
                values.push_back(*number);
            else
                damaged(fmt::format("{} is no number", in_quotes(word)));
        });
    }
    template <class Use>
    static void each_word(std::string_view line, Use use) {
        for (std::size_t at = 0; (at = line.find_first_not_of(" \t\r", at)) != line.npos;) {
            const std::size_t end = std::min(line.find_first_of(" \t\r", at), line.size());
            use(line.substr(at, end - at));
            at = end;
        }
    }

    std::string path_;
    bool with_numbers_;
    std::vector<OctaveVariable> variables_;
    std::size_t axes_ = 0;  ///< that the next line has
    std::size_t line_ = 0;
};

std::vector<double> load_octave(const std::string& path, const OctaveText& text, std::size_t index) {
    if (index >= text.variables().size()) text.damaged("it changed while it was read");
    const OctaveVariable& variable = text.variables()[index];
    const auto& shape = variable.stored.shape;
    const std::string where = fmt::format("{}: variable {}", path, in_quotes(variable.stored.name));
    if (!variable.stored.dtype)
        throw input_error("{} is of type {} (matrices and arrays of real numbers are read): save its numbers", where,
                          in_quotes(variable.stored.dtype_text));
    const std::vector<double>& found = variable.numbers;
    std::uint64_t needed = variable.sparse ? 3 * variable.entries : 1;
    if (!variable.sparse)
        for (const std::uint64_t size : shape)
            if (__builtin_mul_overflow(needed, size, &needed)) needed = found.size() + 1;
    if (found.size() != needed || ((variable.by_rows || variable.sparse) && shape.size() != 2))
        throw input_error("{}: damaged ({} numbers, where shape {} needs another number): save it again", where,
                          found.size(), shape_text(shape));
    if (variable.sparse) {
        DenseMatrix matrix(shape[0], shape[1], variable.bytes, where);
        for (std::size_t i = 0; i < found.size(); i += 3) matrix.add(found[i] - 1, found[i + 1] - 1, found[i + 2]);
        return matrix.take();
    }
    if (!variable.by_rows) return found;
    std::vector<double> values(found.size());
    for (std::size_t i = 0; i < found.size(); ++i) values[i % shape[1] * shape[0] + i / shape[1]] = found[i];
    return values;
}

}  // namespace

std::unique_ptr<TensorContainer> open_octave_text(const std::string& path) {
    const auto file = std::make_shared<const ByteFile>(path);
    std::vector<StoredTensor> tensors;
    const OctaveText text(*file, false);
    for (const auto& variable : text.variables()) tensors.push_back(variable.stored);
    return std::make_unique<LoadedTensors>(path, std::move(tensors),
                                           [file, all = std::optional<OctaveText>()](std::size_t index) mutable {
                                               if (!all) all.emplace(*file, true);
                                               return load_octave(file->path(), *all, index);
                                           });
}

}  // namespace spiked::sim
