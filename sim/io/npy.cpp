#include "sim/io/npy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/files/output_file.hpp"
#include "core/runtime/error.hpp"
#include "core/text/printable.hpp"

namespace spiked::sim {
namespace {

constexpr std::string_view magic = "\x93NUMPY";
constexpr std::uint64_t largest_npy_header = 1 << 16;  // a header describes one array; NumPy itself warns at 10000
constexpr std::size_t npy_chunk_bytes = 1 << 16;

std::optional<DType> dtype_of_code(std::string_view code) {
    struct CodeEntry {
        std::string_view code;
        DType dtype;
    };
    constexpr std::array table{
        CodeEntry{"f2", DType::f16},     CodeEntry{"f4", DType::f32}, CodeEntry{"f8", DType::f64},
        CodeEntry{"b1", DType::boolean}, CodeEntry{"i1", DType::i8},  CodeEntry{"i2", DType::i16},
        CodeEntry{"i4", DType::i32},     CodeEntry{"i8", DType::i64}, CodeEntry{"u1", DType::u8},
        CodeEntry{"u2", DType::u16},     CodeEntry{"u4", DType::u32}, CodeEntry{"u8", DType::u64},
    };
    for (const auto& entry : table)
        if (entry.code == code) return entry.dtype;
    return std::nullopt;
}

/// Parses the Python dict that NumPy writes: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
class HeaderText {
public:
    HeaderText(std::string_view text, const std::string& where) : text_(text), where_(where) {}

    NpyHeader parse() {
        NpyHeader header;
        bool has_descr = false;
        bool has_order = false;
        bool has_shape = false;
        expect('{', "an opening brace");
        while (!accept('}')) {
            const std::string key = quoted_text();
            expect(':', "a colon");
            if (key == "descr" && !has_descr) {
                header.descr = descr();
                has_descr = true;
            } else if (key == "fortran_order" && !has_order) {
                header.fortran_order = boolean();
                has_order = true;
            } else if (key == "shape" && !has_shape) {
                header.shape = shape();
                has_shape = true;
            } else {
                fail("descr, fortran_order and shape, once each");
            }
            if (!accept(',')) {
                expect('}', "a comma or the closing brace");
                break;
            }
        }
        skip_blanks();
        if (at_ != text_.size()) fail("nothing after the closing brace");
        if (!has_descr || !has_order || !has_shape) fail("descr, fortran_order and shape, once each");
        return header;
    }

private:
    [[noreturn]] void fail(const char* expected) const {
        throw input_error(
            "{}: .npy header malformed at its byte {} (expected {}): the file is damaged, save the array again", where_,
            at_, expected);
    }
    void skip_blanks() {
        while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
    }
    bool accept(char c) {
        skip_blanks();
        if (at_ >= text_.size() || text_[at_] != c) return false;
        ++at_;
        return true;
    }
    void expect(char c, const char* what) {
        if (!accept(c)) fail(what);
    }
    std::string quoted_text() {
        skip_blanks();
        const char quote = at_ < text_.size() ? text_[at_] : '\0';
        if (quote != '\'' && quote != '"') fail("a text in quotes");
        const std::size_t end = text_.find(quote, at_ + 1);
        if (end == std::string_view::npos) fail("a text in quotes");
        const auto inside = text_.substr(at_ + 1, end - at_ - 1);
        at_ = end + 1;
        return std::string(inside);
    }
    std::string descr() {
        skip_blanks();
        if (at_ < text_.size() && text_[at_] == '[') {
            if (only_numbers())
                throw input_error(
                    "{}: holds records with named fields (one number per element is needed): where they are columns, "
                    "save numpy.lib.recfunctions.structured_to_unstructured(a), with import numpy.lib.recfunctions",
                    where_);
            throw input_error(
                "{}: holds records with named fields (one number per element is needed): save the field you want, for "
                "example with np.save(FILE, a[\"field\"])",
                where_);
        }
        return quoted_text();
    }
    /// Whether each field in [('a', '<f8'), ('b', '<i4')] is of a type of numbers.
    [[nodiscard]] bool only_numbers() const {
        bool is_type = false;
        for (std::size_t at = text_.find('\'', at_); at != text_.npos && at < text_.find(']', at_);
             at = text_.find('\'', at + 1)) {
            const std::size_t end = text_.find('\'', at + 1);
            if (end == text_.npos) return false;
            if (is_type && !dtype_of_code(text_.substr(at, end - at).substr(std::min<std::size_t>(2, end - at))))
                return false;
            is_type = !is_type;
            at = end;
        }
        return true;
    }
    bool boolean() {
        skip_blanks();
        for (const std::string_view word : {"True", "False"})
            if (text_.substr(at_).starts_with(word)) {
                at_ += word.size();
                return word == "True";
            }
        fail("True or False");
    }
    std::vector<std::size_t> shape() {
        std::vector<std::size_t> sizes;
        expect('(', "a tuple of sizes");
        while (!accept(')')) {
            sizes.push_back(size());
            const bool comma = accept(',');
            if (!comma && sizes.size() == 1) fail("a comma after the only size");
            if (!comma) {
                expect(')', "a comma or the closing parenthesis");
                break;
            }
        }
        return sizes;
    }
    std::size_t size() {
        skip_blanks();
        const std::size_t begin = at_;
        std::uint64_t value = 0;
        for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_)
            if (__builtin_mul_overflow(value, std::uint64_t{10}, &value) ||
                __builtin_add_overflow(value, static_cast<std::uint64_t>(text_[at_] - '0'), &value))
                fail("a size below 2^64");
        if (at_ == begin) fail("a size");
        if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // Python 2 wrote 3L
        return value;
    }

    std::string_view text_;
    const std::string& where_;
    std::size_t at_ = 0;
};

void set_dtype(NpyHeader& header) {
    if (header.descr.size() < 2) return;
    const char order = header.descr.front();
    const auto dtype = dtype_of_code(std::string_view(header.descr).substr(1));
    if (!dtype || (order != '<' && order != '>' && order != '=' && order != '|')) return;
    if (order == '|' && dtype_bits(*dtype) > 8) return;
    header.dtype = dtype;
    header.order = order == '>' ? std::endian::big : std::endian::little;
}

std::size_t width_of(DType dtype) { return dtype_bits(dtype) / 8; }

void check_size(NpyHeader& header, const ByteSource& source) {
    header.elements = 1;
    for (const std::uint64_t size : header.shape)
        if (__builtin_mul_overflow(header.elements, size, &header.elements))
            throw input_error("{}: impossible shape {} (its size overflows 64 bits): the header is damaged",
                              source.where, shape_text(header.shape));
    if (!header.dtype) return;
    std::uint64_t needed = 0;
    if (__builtin_mul_overflow(header.elements, std::uint64_t{width_of(*header.dtype)}, &needed))
        throw input_error("{}: impossible shape {} of {} (its size overflows 64 bits): the header is damaged",
                          source.where, shape_text(header.shape), in_quotes(header.descr));
    const std::uint64_t present = source.size - header.data_offset;
    if (needed > present)
        throw input_error(
            "{}: truncated (shape {} of {} needs {} of data, found {}): likely an incomplete download, fetch or save "
            "it again",
            source.where, shape_text(header.shape), in_quotes(header.descr), bytes_text(needed), bytes_text(present));
    if (needed < present)
        throw input_error(
            "{}: {} after the array (shape {} of {} needs {}, found {}): the header is damaged or several arrays were "
            "saved into one file; save them as .npz",
            source.where, bytes_text(present - needed), shape_text(header.shape), in_quotes(header.descr),
            bytes_text(needed), bytes_text(present));
}

}  // namespace

NpyHeader read_npy_header(const ByteSource& source) {
    std::array<std::byte, 12> start{};
    constexpr std::uint64_t shortest = 10;  // magic, version, length
    if (source.size < shortest)
        throw input_error(
            "{}: truncated (expected at least {} bytes of .npy header, found {}): likely an incomplete download, fetch "
            "or save it again",
            source.where, shortest, source.size);
    source.read(0, std::span(start).first(std::min<std::uint64_t>(start.size(), source.size)));
    if (std::string_view(reinterpret_cast<const char*>(start.data()), magic.size()) != magic)
        throw input_error("{}: not a .npy array (its first bytes are not \\x93NUMPY): save it with np.save",
                          source.where);
    const auto byte = [&](std::size_t i) { return std::to_integer<std::uint64_t>(start[i]); };
    const std::uint64_t version = byte(6);
    if (version < 1 || version > 3)
        throw input_error("{}: .npy version {} (1, 2 and 3 are known): save the array with a current NumPy",
                          source.where, version);
    const std::uint64_t text_offset = version == 1 ? 10 : 12;
    std::uint64_t length = byte(8) | byte(9) << 8;
    if (version > 1) length |= byte(10) << 16 | byte(11) << 24;
    if (length > largest_npy_header)
        throw input_error("{}: .npy header of {} bytes (at most {} are accepted): the file is damaged", source.where,
                          length, largest_npy_header);
    if (source.size < text_offset || length > source.size - text_offset)
        throw input_error(
            "{}: truncated in its .npy header (expected {} bytes, found {}): likely an incomplete download, fetch or "
            "save it again",
            source.where, text_offset + length, source.size);
    std::string text(length, '\0');
    source.read(text_offset, std::as_writable_bytes(std::span(text)));
    NpyHeader header = HeaderText(text, source.where).parse();
    header.data_offset = text_offset + length;
    set_dtype(header);
    check_size(header, source);
    return header;
}

DType require_dtype(const NpyHeader& header, const std::string& where) {
    if (header.dtype) return *header.dtype;
    const std::string_view code = std::string_view(header.descr).substr(std::min<std::size_t>(1, header.descr.size()));
    if (code.starts_with('O'))
        throw input_error(
            "{}: holds Python objects (dtype {}; they are pickles, which can run programs, and are never read): leave "
            "out columns of text, then save a.astype(np.float64)",
            where, in_quotes(header.descr));
    if (code == "V2")
        throw input_error(
            "{}: holds raw two-byte elements (dtype {}, which is how NumPy saves bfloat16): save "
            "a.astype(np.float32), or write BF16 safetensors",
            where, in_quotes(header.descr));
    if (code == "V1")
        throw input_error(
            "{}: holds raw one-byte elements (dtype {}, which is how NumPy saves FP8): save a.astype(np.float32), or "
            "for a dump a.view(np.uint8), which is read with --codes e4m3 or e5m2",
            where, in_quotes(header.descr));
    if (code.starts_with('c'))
        throw input_error(
            "{}: holds complex numbers (dtype {}): of a Hermitian matrix in a .npy file give --symmetric, "
            "else {}",
            where, in_quotes(header.descr), complex_advice);
    if (code.starts_with('U') || code.starts_with('S'))
        throw input_error(
            "{}: holds text (dtype {}): leave out columns that are no numbers, then save a.astype(np.float64)", where,
            in_quotes(header.descr));
    throw input_error("{}: dtype {} is not read (f2, f4, f8, i1 to i8, u1 to u8 and b1 are): save a.astype(np.float64)",
                      where, in_quotes(header.descr));
}

void read_npy_elements(const ByteSource& source, const NpyHeader& header, std::uint64_t first_element,
                       std::span<double> out) {
    const DType dtype = require_dtype(header, source.where);
    if (first_element > header.elements || out.size() > header.elements - first_element)
        throw precondition_error("{}: {} elements are requested at {} of {}", source.where, out.size(), first_element,
                                 header.elements);
    const std::size_t width = width_of(dtype);
    const std::size_t chunk = npy_chunk_bytes / width;
    std::vector<std::byte> bytes(std::min(out.size(), chunk) * width);
    std::uint64_t offset = header.data_offset + first_element * width;
    while (!out.empty()) {
        const std::size_t count = std::min(out.size(), chunk);
        const auto part = std::span(bytes).first(count * width);
        source.read(offset, part);
        decode(part, dtype, out.first(count), header.order);
        offset += part.size();
        out = out.subspan(count);
    }
}

bool is_complex(const NpyHeader& header) {
    const std::string_view code = std::string_view(header.descr).substr(std::min<std::size_t>(1, header.descr.size()));
    return code == "c8" || code == "c16";
}

arma::cx_mat read_complex_npy(const ByteSource& source, NpyHeader header) {
    if (header.shape.size() != 2 || header.elements == 0)
        throw input_error("{}: shape {} is not that of a matrix (two axes, at least one row and one column): save one",
                          source.where, shape_text(header.shape));
    const std::size_t rows = header.shape[0], columns = header.shape[1];
    // Real and imaginary parts are neighbours: an array of real numbers with one more axis, which varies fastest.
    header.descr.replace(1, std::string::npos, header.descr.ends_with("16") ? "f8" : "f4");
    header.shape.push_back(2);
    set_dtype(header);
    check_size(header, source);
    arma::cx_mat matrix(header.fortran_order ? rows : columns, header.fortran_order ? columns : rows);
    read_npy_elements(source, header, 0, {reinterpret_cast<double*>(matrix.memptr()), 2 * matrix.n_elem});
    return header.fortran_order ? matrix : arma::cx_mat(matrix.st());
}

ByteSource source_of(const ByteFile& file) {
    return {file.path(), file.size(),
            [&file](std::uint64_t offset, std::span<std::byte> out) { file.read(offset, out); }};
}

namespace {

/// The header of a .npy file, which is written before the numbers of a matrix.
std::string npy_start(const arma::mat& matrix) {
    std::string text =
        fmt::format("{{'descr': '<f8', 'fortran_order': True, 'shape': ({}, {}), }}", matrix.n_rows, matrix.n_cols);
    constexpr std::size_t start = 10;
    constexpr std::size_t alignment = 64;
    text.append((alignment - (start + text.size() + 1) % alignment) % alignment, ' ');
    text += '\n';
    std::string bytes(magic);
    bytes += '\x01';
    bytes += '\0';
    bytes += static_cast<char>(text.size() & 0xFFU);
    bytes += static_cast<char>(text.size() >> 8);
    bytes += text;
    return bytes;
}

}  // namespace

std::string npy_bytes(const arma::mat& matrix) {
    std::string bytes = npy_start(matrix);
    const std::span<const double> values(matrix.memptr(), matrix.n_elem);
    const std::size_t header = bytes.size();
    bytes.resize(header + values.size_bytes());
    (void)encode(values, DType::f64, std::as_writable_bytes(std::span(bytes).subspan(header)));
    return bytes;
}

void write_npy(const std::string& path, const arma::mat& matrix) {
    const std::string start = npy_start(matrix);
    std::span<const double> values(matrix.memptr(), matrix.n_elem);
    OutputFile file(path, start.size() + values.size_bytes());
    file.write(start);
    std::vector<std::byte> bytes(std::min<std::size_t>(values.size_bytes(), npy_chunk_bytes));
    while (!values.empty()) {
        const auto part = values.first(std::min(values.size(), npy_chunk_bytes / sizeof(double)));
        const auto encoded = std::span(bytes).first(part.size_bytes());
        (void)encode(part, DType::f64, encoded);
        file.write(encoded);
        values = values.subspan(part.size());
    }
    file.commit();
}

}  // namespace spiked::sim
