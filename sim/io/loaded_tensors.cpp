#include "sim/io/loaded_tensors.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>

#include "core/runtime/error.hpp"
#include "core/text/printable.hpp"

namespace spiked::sim {

LoadedTensors::LoadedTensors(std::string path, std::vector<StoredTensor> tensors, Load load,
                             std::vector<std::string> notes)
    : path_(std::move(path)), tensors_(std::move(tensors)), load_(std::move(load)), notes_(std::move(notes)) {
    std::set<std::string_view> names;
    for (const auto& tensor : tensors_)
        if (!names.insert(tensor.name).second)
            throw input_error("{}: two variables named {} (names must be unique): save the file again", path_,
                              in_quotes(tensor.name));
}

LoadedTensors::Values LoadedTensors::loaded(std::size_t index) const {
    constexpr std::size_t kept_tensors = 3;  // key, value and query of a layer
    const std::lock_guard lock(mutex_);
    for (const auto& [known, values] : kept_)
        if (known == index) return values;
    if (kept_.size() >= kept_tensors) kept_.pop_front();
    kept_.emplace_back(index, std::make_shared<const std::vector<double>>(load_(index)));
    return kept_.back().second;
}

void LoadedTensors::read(std::size_t index, std::uint64_t first, std::span<double> out) const {
    const Values values = loaded(index);
    if (first > values->size() || out.size() > values->size() - first)
        throw precondition_error("{}: {} elements are requested at {} of {}", path_, out.size(), first, values->size());
    std::copy_n(values->begin() + static_cast<std::ptrdiff_t>(first), out.size(), out.begin());
}

void LoadedTensors::read_bytes(std::size_t index, std::uint64_t, std::span<std::byte>) const {
    throw input_error(
        "{}: tensor {} cannot be copied byte by byte (only little-endian numbers in C order can): save it as .npy or "
        "safetensors",
        path_, in_quotes(tensors_[index].name));
}

DenseMatrix::DenseMatrix(std::uint64_t rows, std::uint64_t columns, std::uint64_t stored, std::string where)
    : rows_(rows), columns_(columns), where_(std::move(where)) {
    constexpr std::uint64_t always = 32 << 20;
    constexpr std::uint64_t times = 64;
    const std::uint64_t most = std::max(always, times * stored);
    std::uint64_t bytes = 0;
    if (__builtin_mul_overflow(rows, columns, &bytes) ||
        __builtin_mul_overflow(bytes, std::uint64_t{sizeof(double)}, &bytes) || bytes > most)
        throw input_error(
            "{} is {} x {} and sparse (stored in {}; all its entries may take {}): select rows or columns, or save it "
            "dense, numpy.save('x.npy', x.toarray())",
            where_, rows, columns, bytes_text(stored), bytes_text(most));
    values_.assign(rows * columns, 0.0);
}

void DenseMatrix::add(double row, double column, double value) {
    const auto inside = [](double at, std::uint64_t size) {
        return at >= 0.0 && at < static_cast<double>(size) && at == std::floor(at);
    };
    if (!inside(row, rows_) || !inside(column, columns_))
        throw input_error("{} has an entry at row {}, column {}, counted from 0 (it is {} x {}): the file is damaged",
                          where_, row, column, rows_, columns_);
    values_[static_cast<std::size_t>(column) * rows_ + static_cast<std::size_t>(row)] += value;
}

void DenseMatrix::add_lines(std::span<const double> starts, std::span<const double> positions,
                            std::span<const double> values, bool by_columns) {
    const std::uint64_t lines = by_columns ? columns_ : rows_;
    if (starts.size() != lines + 1)
        throw input_error("{} has {} starts of {} (one more than there are is needed, {}): the file is damaged", where_,
                          starts.size(), by_columns ? "columns" : "rows", lines + 1);
    for (std::size_t line = 0; line < lines; ++line) {
        const auto [begin, end] = line_range(starts, line, std::min(positions.size(), values.size()), where_);
        for (std::size_t i = begin; i < end; ++i) {
            const auto at = static_cast<double>(line);
            add(by_columns ? positions[i] : at, by_columns ? at : positions[i], values[i]);
        }
    }
}

std::pair<std::size_t, std::size_t> line_range(std::span<const double> starts, std::size_t line, std::size_t entries,
                                               const std::string& where) {
    const double begin = starts[line];
    const double end = starts[line + 1];
    if (!(begin >= 0.0 && begin <= end && end <= static_cast<double>(entries)) || begin != std::floor(begin) ||
        end != std::floor(end))
        throw input_error("{} has entries {} to {} in line {} (of {} entries): the file is damaged", where, begin, end,
                          line, entries);
    return {static_cast<std::size_t>(begin), static_cast<std::size_t>(end)};
}

}  // namespace spiked::sim
