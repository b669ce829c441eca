#include "app/c/arrays.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <string>

#include "app/c/border.hpp"
#include "core/runtime/stop_point.hpp"
#include "core/text/printable.hpp"

namespace spiked::c {
namespace {

void check_description(const spiked_matrix& matrix, const char* name) {
    if (matrix.dtype != SPIKED_F32 && matrix.dtype != SPIKED_F64)
        throw usage_error("{}: {} is no dtype (of enum spiked_dtype): set SPIKED_F32 or SPIKED_F64", name,
                          matrix.dtype);
    if (matrix.data == nullptr) throw usage_error("{}: its data is NULL (no entries): set it to the first entry", name);
    if (matrix.rows < 0 || matrix.cols < 0)
        throw usage_error("{}: {} rows and {} columns (neither can be negative): set its shape", name, matrix.rows,
                          matrix.cols);
    if (matrix.rows == 0 || matrix.cols == 0)
        throw input_error("{}: {} x {} has no entries (nothing to compute): pass a matrix with some", name, matrix.rows,
                          matrix.cols);
    std::int64_t bytes = 0;
    if (__builtin_mul_overflow(matrix.rows, matrix.cols, &bytes) || __builtin_mul_overflow(bytes, 8, &bytes))
        throw Error(ErrorKind::memory, fmt::format("{}: {} x {} entries do not fit into memory: pass less data at once",
                                                   name, matrix.rows, matrix.cols));
}

/// Calls work(i, j, address of entry (i, j)) for every entry, tile by tile, so that both matrices of a copy are read
/// and written in whole cache lines, whatever their orders.
template <std::size_t width, class Work>
void for_each_entry(const spiked_matrix& matrix, const Work& work) {
    constexpr std::int64_t tile = 16;
    auto* const first = static_cast<char*>(matrix.data);
    const std::int64_t down = matrix.row_stride * static_cast<std::int64_t>(width);
    const std::int64_t right = matrix.col_stride * static_cast<std::int64_t>(width);
    for (std::int64_t row = 0; row < matrix.rows; row += tile)
        for (std::int64_t column = 0; column < matrix.cols; column += tile) {
            const std::int64_t last_row = std::min(row + tile, matrix.rows);
            const std::int64_t last_column = std::min(column + tile, matrix.cols);
            for (std::int64_t j = column; j < last_column; ++j)
                for (std::int64_t i = row; i < last_row; ++i) work(i, j, first + i * down + j * right);
        }
}

/// Two entries, which compilers keep in one register where there are such.
using Pair = double __attribute__((vector_size(16)));
using PairBits = std::uint64_t __attribute__((vector_size(16)));

template <class Number>
Number number_at(const char* at) {
    Number number;
    std::memcpy(&number, at, sizeof number);
    return number;
}

/// The bits of x - x, without its sign: 0 for finite numbers, and others where there is NaN or infinity. They are
/// collected by "or", which waits for nothing, unlike a sum.
std::uint64_t excess(double number) { return std::bit_cast<std::uint64_t>(number - number) << 1; }

/// Copies doubles from rows, whose entries lie one after the other, into columns: entry (i, j) from 8 j bytes after the
/// beginning of row i to 8 i bytes after that of column j. Returns whether all are finite. Two rows and two columns at
/// a time, which takes half of the time of entry by entry where there are registers for them.
bool transpose(const char* from, std::int64_t from_stride, char* to, std::int64_t to_stride, std::int64_t rows,
               std::int64_t columns) {
    constexpr std::int64_t tile = 16;
    constexpr auto width = static_cast<std::int64_t>(sizeof(double));
    const std::int64_t even_rows = rows & ~std::int64_t{1};
    const std::int64_t even_columns = columns & ~std::int64_t{1};
    PairBits seen = {0, 0};
    const auto copy_square = [&](std::int64_t i, std::int64_t j) {
        const char* const at = from + i * from_stride + j * width;
        const auto upper = number_at<Pair>(at);
        const auto lower = number_at<Pair>(at + from_stride);
        seen |= reinterpret_cast<PairBits>(upper - upper) | reinterpret_cast<PairBits>(lower - lower);
        const Pair left = {upper[0], lower[0]};
        const Pair right = {upper[1], lower[1]};
        std::memcpy(to + j * to_stride + i * width, &left, sizeof left);
        std::memcpy(to + (j + 1) * to_stride + i * width, &right, sizeof right);
    };
    for (std::int64_t row = 0; row < even_rows; row += tile)
        for (std::int64_t column = 0; column < even_columns; column += tile)
            for (std::int64_t j = column; j < std::min(column + tile, even_columns); j += 2)
                for (std::int64_t i = row; i < std::min(row + tile, even_rows); i += 2) copy_square(i, j);
    std::uint64_t rest = 0;
    const auto copy_entry = [&](std::int64_t i, std::int64_t j) {
        const auto number = number_at<double>(from + i * from_stride + j * width);
        rest |= excess(number);
        std::memcpy(to + j * to_stride + i * width, &number, sizeof number);
    };
    if (even_rows < rows)
        for (std::int64_t j = 0; j < columns; ++j) copy_entry(even_rows, j);
    if (even_columns < columns)
        for (std::int64_t i = 0; i < even_rows; ++i) copy_entry(i, even_columns);
    return (seen[0] | seen[1]) << 1 == 0 && rest == 0;
}

/// Whether this is a matrix of doubles in C order, or with space between the rows, as most callers pass it.
bool has_whole_rows(const spiked_matrix& matrix) { return matrix.dtype == SPIKED_F64 && matrix.col_stride == 1; }

std::int64_t row_bytes(const spiked_matrix& matrix) {
    return matrix.row_stride * static_cast<std::int64_t>(sizeof(double));
}

/// Returns whether the entries are finite.
template <class Number>
bool copy_in(const spiked_matrix& matrix, double* to) {
    std::uint64_t seen = 0;
    for_each_entry<sizeof(Number)>(matrix, [&, rows = matrix.rows](std::int64_t i, std::int64_t j, const char* at) {
        const auto number = static_cast<double>(number_at<Number>(at));
        seen |= excess(number);
        to[j * rows + i] = number;
    });
    return seen == 0;
}

template <class Number>
void copy_out(const arma::mat& from, const spiked_matrix& matrix) {
    const double* const values = from.memptr();
    for_each_entry<sizeof(Number)>(matrix, [=, rows = matrix.rows](std::int64_t i, std::int64_t j, char* at) {
        const auto number = static_cast<Number>(values[j * rows + i]);
        std::memcpy(at, &number, sizeof number);
    });
}

/// Returns where entries that are not finite are all NaN, and these are kept.
void reject_nonfinite_entries(const arma::mat& matrix, const char* name, Nans nans) {
    std::size_t count = 0;
    std::size_t infinite = 0;
    arma::uword row = 0;
    arma::uword column = 0;
    for (arma::uword i = 0; i < matrix.n_rows; ++i)
        for (arma::uword j = 0; j < matrix.n_cols; ++j)
            if (nans == Nans::kept ? std::isinf(matrix(i, j)) : !std::isfinite(matrix(i, j))) {
                infinite += std::isinf(matrix(i, j));
                if (count++ > 0) continue;
                row = i;
                column = j;
            }
    if (count == 0) return;
    throw input_error(
        "{}: {} {}infinite {} (first at row {}, column {}, counted from 0): {}remove or replace them", name, count,
        nans == Nans::kept ? "" : "NaN or ", count == 1 ? "entry" : "entries", row, column,
        nans == Nans::offered && infinite == 0 ? "say missing = \"uniform\" if they are missing at random, or " : "");
}

}  // namespace

arma::mat read_matrix(const spiked_matrix* matrix, const char* name, Nans nans) {
    const spiked_matrix& given = required(matrix, name);
    check_description(given, name);
    arma::mat copy(static_cast<arma::uword>(given.rows), static_cast<arma::uword>(given.cols), arma::fill::none);
    const bool finite = has_whole_rows(given)
                            ? transpose(static_cast<const char*>(given.data), row_bytes(given),
                                        reinterpret_cast<char*>(copy.memptr()), given.rows * 8, given.rows, given.cols)
                        : given.dtype == SPIKED_F32 ? copy_in<float>(given, copy.memptr())
                                                    : copy_in<double>(given, copy.memptr());
    if (!finite) reject_nonfinite_entries(copy, name, nans);
    stop_point();
    return copy;
}

void check_output(const spiked_matrix& matrix, std::int64_t rows, std::int64_t columns, const char* name) {
    check_description(matrix, name);
    if (matrix.rows != rows || matrix.cols != columns)
        throw usage_error("{}: {} x {} (it receives {} x {}): set its shape", name, matrix.rows, matrix.cols, rows,
                          columns);
    if ((rows > 1 && matrix.row_stride == 0) || (columns > 1 && matrix.col_stride == 0))
        throw usage_error("{}: a stride of 0 (its entries would overlap): set its strides", name);
}

void write_matrix(const spiked_matrix& matrix, const arma::mat& values) {
    if (has_whole_rows(matrix))  // the columns of the values are rows to copy into the rows of the matrix
        (void)transpose(reinterpret_cast<const char*>(values.memptr()), matrix.rows * 8,
                        static_cast<char*>(matrix.data), row_bytes(matrix), matrix.cols, matrix.rows);
    else if (matrix.dtype == SPIKED_F32)
        copy_out<float>(values, matrix);
    else
        copy_out<double>(values, matrix);
}

spiked_matrix block_of(const spiked_blocks& blocks, std::int64_t index) {
    spiked_matrix block = blocks.first;
    const std::int64_t width = block.dtype == SPIKED_F32 ? 4 : 8;
    block.data = static_cast<char*>(block.data) + index * blocks.block_stride * width;
    return block;
}

std::size_t count_of(std::int64_t count, std::int64_t least, const char* name) {
    if (count < least) throw usage_error("{} is {} (too small): pass at least {}", name, count, least);
    return static_cast<std::size_t>(count);
}

void write_cut(char* to, std::size_t capacity, std::string_view text) {
    if (to == nullptr || capacity == 0) return;
    std::string cut(text.substr(0, capacity - 1));
    if (cut.size() < text.size()) trim_partial_character(cut);
    std::memcpy(to, cut.data(), cut.size());
    to[cut.size()] = '\0';
}

}  // namespace spiked::c
