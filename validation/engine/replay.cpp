#include "validation/engine/replay.hpp"

#include <cmath>

#include "core/runtime/error.hpp"
#include "validation/engine/engine.hpp"
#include "validation/store/store_metrics.hpp"

namespace spiked::validation {

std::size_t find_cell(Database& store, const std::string& name) {
    Statement query(store,
                    "SELECT cell_id FROM cell WHERE cast(cell_id AS TEXT) = ?1 OR label = ?1 OR (length(?1) >= 8 AND "
                    "substr(cell_hash, 1, length(?1)) = ?1) LIMIT 2");
    query.bind(1, name);
    if (!query.step())
        throw usage_error(
            "--cell \"{}\" is no cell of this store (numbers go from 1 to {}): see spiked show --table cells", name,
            store.integer("SELECT count(*) FROM cell"));
    const std::int64_t cell = query.integer(0);
    if (query.step())
        throw usage_error("--cell \"{}\" names more than one cell ({} and {}): give the number", name, cell,
                          query.integer(0));
    return static_cast<std::size_t>(cell - 1);
}

Replay replay(Database& store, const Experiment& experiment, std::size_t cell, std::uint64_t replicate,
              double tolerance) {
    Replay found;
    Statement failed(store, "SELECT message FROM failure WHERE cell_id = ? AND rep = ?");
    failed.bind(1, cell + 1).bind(2, replicate);
    if (failed.step()) found.stored_failure = failed.text(0);
    std::vector<Observation> observations;
    try {
        observations = experiment.worker(cell, {replicate, 1})(replicate);
    } catch (const Error& error) {
        if (!fails_the_replicate(experiment, error)) throw;
        found.failure = error.what();
        return found;
    }
    Statement stored(store, "SELECT v FROM value WHERE cell_id=? AND rep=? AND method_id=? AND metric_id=? AND k=?");
    const StoreMetrics metrics(store);
    for (const Observation& o : observations) {
        stored.bind(1, cell + 1)
            .bind(2, replicate)
            .bind(3, o.method + 1)
            .bind(4, metrics.number(o.metric))
            .bind(5, o.k);
        ReplayedValue value{.now = o, .kept = stored.step()};
        const bool missing = value.kept && stored.is_null(0);
        if (value.kept && !missing) value.stored = stored.real(0);
        stored.reset();
        value.same = missing ? std::isnan(o.value)
                             : value.stored == o.value || std::abs(value.stored - o.value) <=
                                                              tolerance * std::max(1.0, std::abs(value.stored));
        found.values.push_back(value);
    }
    return found;
}

}  // namespace spiked::validation
