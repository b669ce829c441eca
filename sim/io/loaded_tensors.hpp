#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sim/io/tensor_container.hpp"

namespace spiked::sim {

/// Tensors that are turned into numbers as a whole when they are first read. The last three are kept in memory.
class LoadedTensors : public TensorContainer {
public:
    /// Returns all elements of a tensor in storage order, as many as its shape says; throws for one without numbers.
    using Load = std::function<std::vector<double>(std::size_t index)>;

    /// Throws input_error where two tensors have one name.
    LoadedTensors(std::string path, std::vector<StoredTensor> tensors, Load load, std::vector<std::string> notes = {});

    [[nodiscard]] const std::string& path() const override { return path_; }
    [[nodiscard]] const Metadata& metadata() const override { return metadata_; }
    [[nodiscard]] const std::vector<StoredTensor>& tensors() const override { return tensors_; }
    [[nodiscard]] const std::vector<std::string>& notes() const override { return notes_; }
    void read(std::size_t index, std::uint64_t first, std::span<double> out) const override;
    void read_bytes(std::size_t index, std::uint64_t first_byte, std::span<std::byte> out) const override;

private:
    using Values = std::shared_ptr<const std::vector<double>>;

    [[nodiscard]] Values loaded(std::size_t index) const;

    std::string path_;
    Metadata metadata_;
    std::vector<StoredTensor> tensors_;
    Load load_;
    std::vector<std::string> notes_;
    mutable std::mutex mutex_;
    mutable std::deque<std::pair<std::size_t, Values>> kept_;
};

/// A sparse matrix becomes a dense one in memory: `rows` x `columns` numbers, in Fortran order.
class DenseMatrix {
public:
    /// All entries are 0. Throws input_error when they would take more than 32 MiB and more than 64 times `stored`, the
    /// bytes of the sparse matrix in its file; where the file may be packed, callers count at most twice its bytes.
    DenseMatrix(std::uint64_t rows, std::uint64_t columns, std::uint64_t stored, std::string where);

    /// Adds to an entry; positions count from 0. Throws input_error for a position that is not a whole number or
    /// outside.
    void add(double row, double column, double value);
    /// Adds lines: entries starts[i] to starts[i + 1] - 1 lie in line i, at these positions in it. The lines are
    /// columns where `by_columns`, otherwise rows.
    void add_lines(std::span<const double> starts, std::span<const double> positions, std::span<const double> values,
                   bool by_columns);
    [[nodiscard]] std::vector<double> take() { return std::move(values_); }

private:
    std::uint64_t rows_;
    std::uint64_t columns_;
    std::string where_;
    std::vector<double> values_;
};

/// The positions starts[line] and starts[line + 1], checked: whole, ascending and at most `entries`.
[[nodiscard]] std::pair<std::size_t, std::size_t> line_range(std::span<const double> starts, std::size_t line,
                                                             std::size_t entries, const std::string& where);

}  // namespace spiked::sim
