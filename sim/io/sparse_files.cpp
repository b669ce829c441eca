#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>

#include "core/files/byte_file.hpp"
#include "core/runtime/error.hpp"
#include "core/text/names.hpp"
#include "core/text/printable.hpp"
#include "sim/io/file_formats.hpp"
#include "sim/io/loaded_tensors.hpp"
#include "sim/io/npz.hpp"
#include "sim/io/text_lines.hpp"
#include "sim/tables/table_cells.hpp"

// Matrix Market files, after "The Matrix Market Exchange Formats: Initial Design" (Boisvert, Pozo and Remington, NIST
// IR 5935, 1996), and the sparse matrices that scipy.sparse.save_npz writes.

namespace spiked::sim {
namespace {

/// The words of a line, separated by blanks.
std::vector<std::string_view> words_of(std::string_view line) {
    std::vector<std::string_view> words;
    for (std::size_t at = 0; (at = line.find_first_not_of(" \t\r", at)) != line.npos;) {
        const std::size_t end = std::min(line.find_first_of(" \t\r", at), line.size());
        words.push_back(line.substr(at, end - at));
        at = end;
        if (words.size() > 5) break;
    }
    return words;
}

/// Reads a Matrix Market file line by line.
class MatrixMarket {
public:
    explicit MatrixMarket(const ByteFile& file) : file_(file) {}

    /// Reads the header and the sizes only, or the whole file.
    void read(bool whole) {
        whole_ = whole;
        each_line(file_, [this](std::string_view text) { line(text); });
        if (!matrix_ && !(sized_ && !whole_)) fail("ends before its sizes");
        if (whole_ && entries_ != stored_)
            throw input_error("{}: it has {} entries (its sizes say {}): fetch or save it again", file_.path(),
                              entries_, stored_);
    }
    [[nodiscard]] std::uint64_t rows() const { return rows_; }
    [[nodiscard]] std::uint64_t columns() const { return columns_; }
    [[nodiscard]] std::vector<double> values() { return matrix_->take(); }
    [[nodiscard]] std::string kind() const { return format_ + " " + field_ + " " + symmetry_; }
    [[nodiscard]] std::vector<std::string> notes() const {
        if (field_ == "pattern") return {"a Matrix Market pattern: its entries are read as 1, all others as 0"};
        if (format_ == "coordinate")
            return {fmt::format("a sparse Matrix Market file of {} entries: all others are read as 0", stored_)};
        return {};
    }

private:
    [[noreturn]] void fail(const std::string& what) const {
        throw input_error(
            "{}:{}: not a Matrix Market file that is read ({}): correct it, or save it with scipy.io.mmwrite",
            file_.path(), number_, what);
    }
    void line(std::string_view text) {
        ++number_;
        if (number_ == 1) return header(text);
        if (sized_ && !whole_) return;
        if (text.find_first_not_of(" \t\r") == text.npos || text.starts_with('%')) return;
        if (!sized_) return sizes(text);
        entry(text);
    }
    void header(std::string_view text) {
        const auto words = words_of(text);
        if (words.size() != 5 || lower_case(words[0]) != "%%matrixmarket" || lower_case(words[1]) != "matrix")
            fail("its first line is not `%%MatrixMarket matrix FORMAT FIELD SYMMETRY`");
        format_ = lower_case(words[2]);
        field_ = lower_case(words[3]);
        symmetry_ = lower_case(words[4]);
        if (field_ == "complex" || symmetry_ == "hermitian")
            throw input_error("{}: holds complex numbers: {}", file_.path(), complex_advice);
        const auto one_of = [](const std::string& word, std::initializer_list<const char*> known) {
            return std::find(known.begin(), known.end(), word) != known.end();
        };
        if (!one_of(format_, {"array", "coordinate"}) ||
            !one_of(symmetry_, {"general", "symmetric", "skew-symmetric"}) ||
            !one_of(field_, {"real", "double", "integer", "unsigned-integer", "pattern"}) ||
            (field_ == "pattern" && (format_ == "array" || symmetry_ == "skew-symmetric")))
            fail("it states " + in_quotes(kind()));
    }
    void sizes(std::string_view text) {
        const auto words = words_of(text);
        const bool array = format_ == "array";
        if (words.size() != (array ? 2 : 3)) fail(array ? "its sizes are not two" : "its sizes are not three");
        rows_ = whole_number(words[0]);
        columns_ = whole_number(words[1]);
        if (symmetry_ != "general" && rows_ != columns_) fail("it is symmetric and not square");
        sized_ = true;
        if (array) {
            if (rows_ > most_size || columns_ > most_size) fail("its sizes are impossible");
            const std::uint64_t diagonal = symmetry_ == "skew-symmetric" ? 0 : rows_;
            stored_ = symmetry_ == "general" ? rows_ * columns_ : (rows_ * rows_ - rows_) / 2 + diagonal;
            row_ = first_row(0);
        } else {
            stored_ = whole_number(words[2]);
        }
        if (!whole_) return;
        // An entry takes at least two bytes of text, so that a full matrix is always within the limit of a sparse one.
        matrix_.emplace(rows_, columns_, file_.size(), file_.path());
    }
    void entry(std::string_view text) {
        const auto words = words_of(text);
        if (++entries_ > stored_) fail("it has more entries than its sizes say");
        if (format_ == "array") {
            if (words.size() != 1) fail("a line of an array has one number");
            add(static_cast<double>(row_), static_cast<double>(column_), number(words[0]));
            if (++row_ == rows_) row_ = first_row(++column_);
            return;
        }
        if (words.size() != (field_ == "pattern" ? 2 : 3)) fail("an entry has another number of words");
        add(static_cast<double>(whole_number(words[0])) - 1.0, static_cast<double>(whole_number(words[1])) - 1.0,
            field_ == "pattern" ? 1.0 : number(words[2]));
    }
    void add(double row, double column, double value) {
        matrix_->add(row, column, value);
        if (symmetry_ != "general" && row != column)
            matrix_->add(column, row, symmetry_ == "symmetric" ? value : -value);
    }
    /// The first row of a column that an array states.
    [[nodiscard]] std::uint64_t first_row(std::uint64_t column) const {
        return symmetry_ == "general" ? 0 : symmetry_ == "symmetric" ? column : column + 1;
    }
    [[nodiscard]] std::uint64_t whole_number(std::string_view word) const {
        std::uint64_t value = 0;
        const auto [end, status] = std::from_chars(word.data(), word.data() + word.size(), value);
        if (status != std::errc{} || end != word.data() + word.size()) fail(in_quotes(word) + " is no whole number");
        return value;
    }
    [[nodiscard]] double number(std::string_view word) const {
        const auto value = number_with_point(word);
        if (!value) fail(in_quotes(word) + " is no number of a double's range");
        return *value;
    }

    static constexpr std::uint64_t most_size = std::uint64_t{1} << 31U;
    const ByteFile& file_;
    bool whole_ = false;
    bool sized_ = false;
    std::size_t number_ = 0;  ///< of the line
    std::string format_;
    std::string field_;
    std::string symmetry_;
    std::uint64_t rows_ = 0;
    std::uint64_t columns_ = 0;
    std::uint64_t stored_ = 0;   ///< entries that the file should have
    std::uint64_t entries_ = 0;  ///< that were read
    std::uint64_t row_ = 0;      ///< of the next entry of an array
    std::uint64_t column_ = 0;
    std::optional<DenseMatrix> matrix_;
};

/// The arrays of a file of scipy.sparse.save_npz.
class ScipySparse {
public:
    explicit ScipySparse(std::shared_ptr<const NpzFile> file) : file_(std::move(file)) {}

    /// Whether the file has the members that save_npz writes, or those of a csr or csc matrix without the format.
    [[nodiscard]] bool found() const {
        return find("shape") && find("data") && (find("format") || (find("indices") && find("indptr")));
    }
    [[nodiscard]] std::string format() const {
        if (find("format")) return text(*find("format"));
        const auto lines = find("indptr")->header.elements;
        return lines == stored().shape[0] + 1 ? "csr" : "csc";
    }
    [[nodiscard]] StoredTensor stored() const {
        const auto shape = numbers("shape");
        if (shape.size() != 2 ||
            !std::all_of(shape.begin(), shape.end(), [](double n) { return n >= 0 && n < 0x1p48; }))
            throw input_error(
                "{}: a sparse array of {} axes (matrices have 2): save it dense, numpy.save('x.npy', x.toarray())",
                file_->path(), shape.size());
        const NpyHeader& data = find("data")->header;
        return {"matrix",   data.dtype,
                data.descr, {static_cast<std::size_t>(shape[0]), static_cast<std::size_t>(shape[1])},
                true,       std::nullopt};
    }
    [[nodiscard]] std::string note() const {
        return fmt::format("a sparse matrix of SciPy ({}{}, {} stored entries): all others are read as 0", format(),
                           find("format") ? "" : " by the length of indptr", find("data")->header.elements);
    }
    [[nodiscard]] std::vector<double> dense() const;

private:
    [[nodiscard]] const NpzMember* find(std::string_view name) const {
        for (const auto& member : file_->members())
            if (member.name == name) return &member;
        return nullptr;
    }
    [[nodiscard]] std::vector<double> numbers(const char* name) const {
        const NpzMember* member = find(name);
        if (member == nullptr)
            throw input_error("{}: a sparse matrix without its member {}: save it again with scipy.sparse.save_npz",
                              file_->path(), in_quotes(name));
        const std::string where = file_->where(*member);
        (void)require_dtype(member->header, where);
        const auto bytes = file_->unpack(*member);
        std::vector<double> values(member->header.elements);
        read_npy_elements(source_of(bytes, where), member->header, 0, values);
        return values;
    }
    /// A member that is a text, of one byte a character or in UTF-32.
    [[nodiscard]] std::string text(const NpzMember& member) const {
        constexpr std::uint64_t most = 256;
        if (member.size - member.header.data_offset > most) return "";
        const auto bytes = file_->unpack(member);
        std::string letters;
        for (std::size_t i = member.header.data_offset; i < bytes.size(); ++i)
            if (bytes[i] != std::byte{0}) letters += static_cast<char>(bytes[i]);
        return letters;
    }
    void add_blocks(DenseMatrix& matrix, std::span<const double> values) const;
    void add_diagonals(DenseMatrix& matrix, std::span<const double> values, std::size_t rows,
                       std::size_t columns) const;

    std::shared_ptr<const NpzFile> file_;
};

std::vector<double> ScipySparse::dense() const {
    const auto shape = stored().shape;
    const auto values = numbers("data");
    const std::uint64_t stored = std::min(2 * values.size() * sizeof(double), 2 * file_->file_bytes());
    DenseMatrix matrix(shape[0], shape[1], stored, file_->path());
    const std::string kind = format();
    if (kind == "csr" || kind == "csc") {
        matrix.add_lines(numbers("indptr"), numbers("indices"), values, kind == "csc");
    } else if (kind == "coo") {
        const auto rows = numbers("row");
        const auto columns = numbers("col");
        if (rows.size() != values.size() || columns.size() != values.size())
            throw input_error("{}: {} rows and {} columns of {} entries: the file is damaged", file_->path(),
                              rows.size(), columns.size(), values.size());
        for (std::size_t i = 0; i < values.size(); ++i) matrix.add(rows[i], columns[i], values[i]);
    } else if (kind == "bsr") {
        add_blocks(matrix, values);
    } else if (kind == "dia") {
        add_diagonals(matrix, values, shape[0], shape[1]);
    } else {
        throw input_error("{}: a sparse matrix of format {} (csr, csc, coo, bsr and dia are read): save x.tocsr()",
                          file_->path(), in_quotes(kind));
    }
    return matrix.take();
}

void ScipySparse::add_blocks(DenseMatrix& matrix, std::span<const double> values) const {
    const NpyHeader& data = find("data")->header;
    const auto starts = numbers("indptr");
    const auto columns = numbers("indices");
    if (data.shape.size() != 3 || data.fortran_order || starts.empty() || columns.size() > data.shape[0])
        throw input_error("{}: the blocks of its bsr matrix do not fit: save x.tocsr()", file_->path());
    const std::size_t height = data.shape[1];
    const std::size_t width = data.shape[2];
    for (std::size_t line = 0; line + 1 < starts.size(); ++line) {
        const auto [begin, end] = line_range(starts, line, columns.size(), file_->path());
        for (std::size_t block = begin; block < end; ++block)
            for (std::size_t i = 0; i < height * width; ++i)
                matrix.add(static_cast<double>(line * height + i / width),
                           columns[block] * static_cast<double>(width) + static_cast<double>(i % width),
                           values[block * height * width + i]);
    }
}

/// Diagonal k has its entry of column j at position j, and lies on row j - offset.
void ScipySparse::add_diagonals(DenseMatrix& matrix, std::span<const double> values, std::size_t rows,
                                std::size_t columns) const {
    const NpyHeader& data = find("data")->header;
    const auto offsets = numbers("offsets");
    if (data.shape.size() != 2 || data.shape[0] != offsets.size())
        throw input_error("{}: the diagonals of its dia matrix do not fit: save x.tocsr()", file_->path());
    const std::size_t length = data.shape[1];
    for (std::size_t k = 0; k < offsets.size(); ++k)
        for (std::size_t j = 0; j < std::min(length, columns); ++j) {
            const double row = static_cast<double>(j) - offsets[k];
            if (row < 0 || row >= static_cast<double>(rows)) continue;
            matrix.add(row, static_cast<double>(j),
                       values[data.fortran_order ? j * offsets.size() + k : k * length + j]);
        }
}

}  // namespace

std::unique_ptr<TensorContainer> open_matrix_market(const std::string& path) {
    const auto file = std::make_shared<const ByteFile>(path);
    reject_other_format(*file, ".mtx");
    MatrixMarket head(*file);
    head.read(false);
    StoredTensor tensor{std::filesystem::path(path).stem().string(),
                        DType::f64,
                        head.kind(),
                        {head.rows(), head.columns()},
                        true,
                        std::nullopt};
    return std::make_unique<LoadedTensors>(
        path, std::vector<StoredTensor>{std::move(tensor)},
        [file](std::size_t) {
            MatrixMarket matrix(*file);
            matrix.read(true);
            return matrix.values();
        },
        head.notes());
}

std::unique_ptr<TensorContainer> open_scipy_sparse(std::shared_ptr<const NpzFile> archive) {
    const std::string path = archive->path();
    const auto file = std::make_shared<const ScipySparse>(std::move(archive));
    if (!file->found()) return nullptr;
    return std::make_unique<LoadedTensors>(
        path, std::vector<StoredTensor>{file->stored()}, [file](std::size_t) { return file->dense(); },
        std::vector<std::string>{file->note()});
}

}  // namespace spiked::sim
