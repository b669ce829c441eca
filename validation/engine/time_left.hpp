#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "validation/store/sqlite.hpp"
#include "validation/store/stopping.hpp"

namespace spiked::validation {

/// The cost of a replicate of one block is roughly proportional to this number, n d min(n, d).
[[nodiscard]] double operations(std::size_t rows, std::size_t columns);

/// How long a run still takes until the next checkpoint of every cell. A replicate takes as long as those of its cell
/// took, in this session and in earlier ones of the store. Where a cell has none, the time is that of all measured
/// cells for as many operations. Batches are taken to run side by side as they did so far. Cost: none that depends on
/// the number of cells, but for the constructor.
class TimeLeft {
public:
    /// `part` is the fraction of the batches of each cell that this run has: less than 1 in a shard of batches.
    TimeLeft(Database& store, const std::vector<CellProgress>& cells, double part);
    /// Takes notice of a batch that took so long, after its cell has (CellProgress::add).
    void add(std::size_t cell, std::uint64_t replicates, double seconds);
    /// Seconds left when the batches added so far took `elapsed` seconds; infinite before the first one.
    [[nodiscard]] double seconds(double elapsed) const;

private:
    struct Cell {
        double operations = 0.0;  ///< of a replicate
        double replicates = 0.0;  ///< measured
        double seconds = 0.0;     ///< that these took
    };
    /// Adds the rest of a cell to the sums below, or takes it off them.
    void count(std::size_t cell, double sign);

    const std::vector<CellProgress>* progress_;
    double part_;
    std::vector<Cell> cells_;
    std::vector<double> rest_;  ///< replicates of each cell that are in the sums
    double measured_operations_ = 0.0;
    double measured_seconds_ = 0.0;
    double known_ = 0.0;    ///< seconds of the rest of the measured cells
    double unknown_ = 0.0;  ///< operations of the rest of the others
    double added_ = 0.0;    ///< seconds of the batches added
};

}  // namespace spiked::validation
