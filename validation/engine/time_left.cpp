#include "validation/engine/time_left.hpp"

#include <algorithm>
#include <limits>

namespace spiked::validation {

double operations(std::size_t rows, std::size_t columns) {
    return static_cast<double>(rows) * static_cast<double>(columns) * static_cast<double>(std::min(rows, columns));
}

TimeLeft::TimeLeft(Database& store, const std::vector<CellProgress>& cells, double part)
    : progress_(&cells), part_(part), cells_(cells.size()), rest_(cells.size(), 0.0) {
    Statement cell(store,
                   "SELECT cell_id, n, d, coalesce(sum(reps), 0), coalesce(sum(wall_s), 0) FROM cell LEFT JOIN (SELECT "
                   "* FROM batch WHERE wall_s > 0) USING(cell_id) GROUP BY cell_id");
    while (cell.step()) {
        Cell& of = cells_.at(static_cast<std::size_t>(cell.integer(0) - 1));
        of.operations = std::max(
            1.0, operations(static_cast<std::size_t>(cell.integer(1)), static_cast<std::size_t>(cell.integer(2))));
        of.replicates = cell.real(3);
        of.seconds = cell.real(4);
        measured_operations_ += of.operations * of.replicates;
        measured_seconds_ += of.seconds;
    }
    for (std::size_t c = 0; c < cells_.size(); ++c) count(c, 1.0);
}

void TimeLeft::count(std::size_t cell, double sign) {
    if (sign > 0.0) {
        const CellProgress& at = (*progress_)[cell];
        rest_[cell] =
            std::max(0.0, part_ * static_cast<double>(at.goal_replicates()) - static_cast<double>(at.replicates()));
    }
    const Cell& of = cells_[cell];
    if (of.replicates > 0.0)
        known_ += sign * rest_[cell] * of.seconds / of.replicates;
    else
        unknown_ += sign * rest_[cell] * of.operations;
}

void TimeLeft::add(std::size_t cell, std::uint64_t replicates, double seconds) {
    count(cell, -1.0);
    Cell& of = cells_[cell];
    of.replicates += static_cast<double>(replicates);
    of.seconds += seconds;
    measured_operations_ += of.operations * static_cast<double>(replicates);
    measured_seconds_ += seconds;
    added_ += seconds;
    count(cell, 1.0);
}

double TimeLeft::seconds(double elapsed) const {
    if (!(added_ > 0.0)) return std::numeric_limits<double>::infinity();
    const double alone = std::max(0.0, known_ + unknown_ * measured_seconds_ / measured_operations_);
    return alone * elapsed / added_;
}

}  // namespace spiked::validation
