#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "codec/cache/compressed_cache.hpp"
#include "sim/llama/llama_session.hpp"

namespace spiked::validation {

/// The passes of a command that runs a model: one of each text in full precision and one with every other version of
/// the cache.
struct PlannedPasses {
    const std::vector<codec::CacheVersion>& versions;
    std::vector<std::size_t> tokens;  ///< of each text; of its prompt where the model goes on with it
    std::vector<std::size_t> added;   ///< tokens that the model adds to each text at most; empty: none
    std::size_t block_tokens = 128;
    std::size_t threads = 0;  ///< 0: all of the machine
    bool logits = false;      ///< all of a block are kept, as for ForwardOptions::predicted

    [[nodiscard]] std::size_t longest() const;  ///< text, with what the model adds
    /// How many run beside each other at most.
    [[nodiscard]] std::size_t at_once() const;
};

/// What a command says of its passes before they run, on functions that may be empty.
struct PassNotes {
    /// Receives what one pass takes at most, before the weights are read, the tokens of the longest, and how many run
    /// beside each other.
    std::function<void(const sim::PassMemory& bytes, std::size_t tokens, std::size_t at_once)> memory = {};
    /// Receives the expected wall-clock time of all passes.
    std::function<void(double seconds, std::size_t passes)> time = {};
};

/// Says the memory of passes and throws an Error of the kind memory, with all sizes, if they do not fit. `model`: the
/// folder.
void forecast_memory(const PassNotes& notes, const sim::LlamaConfig& shape, const std::string& model,
                     const PlannedPasses& passes);
/// Says the time of passes, if it is asked for: see expected_seconds.
void forecast_time(const PassNotes& notes, const sim::Llama& model, std::span<const std::int32_t> text,
                   const PlannedPasses& passes);

/// The expected wall-clock time of passes, from a block of `text` that the model reads and one layer of it that every
/// version codes. A longer text takes more time in proportion to its products and its attention. Not counted: what
/// evictions take, and that threads share the memory and the caches of a machine. Cost: a block in full precision, and
/// of each version a layer of two blocks.
[[nodiscard]] double expected_seconds(const sim::Llama& model, std::span<const std::int32_t> text,
                                      const PlannedPasses& passes);

}  // namespace spiked::validation
