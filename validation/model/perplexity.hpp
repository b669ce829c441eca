#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "codec/cache/compressed_cache.hpp"
#include "validation/model/pass_forecast.hpp"

namespace spiked::validation {

/// How well a model predicts tokens while its cache is compressed.
struct PerplexityPlan {
    std::string model;          ///< folder
    std::string tokens;         ///< .npy of token ids, documents x tokens, or one document
    std::size_t documents = 0;  ///< the first rows of the file; 0: all
    std::vector<codec::CacheRequest> methods;
    std::size_t block_tokens = 128;
    codec::CachePart only;        ///< the layers and sides that are compressed
    codec::ExtraBits extra_bits;  ///< of layers and sides, beyond those of each request
    std::size_t sinks = 0;        ///< number of first tokens that stay in fp16
    estimators::QuantizerOptions quantizer;
    std::size_t threads = 0;  ///< 0: all of the machine; results do not depend on it
    /// Receives numbers of passes: one of each document in full precision and one under each method.
    std::function<void(std::size_t done, std::size_t of)> progress = {};
    PassNotes notes = {};
};

struct PerplexityRow {
    std::string method;
    double bits = 0.0;
    std::optional<double> budget;  ///< for evictions
    codec::CacheBits ledger;       ///< stored bits per compressed entry
    double added_nats = 0.0;       ///< mean over documents of the increase in nats per token over full precision
    double mcse_added_nats = 0.0;  ///< of the paired differences of documents; NaN for one document
};

/// Negative natural logarithms of the probabilities of tokens whose prediction attends to a compressed block: those
/// after the first block_tokens + 1 of each document. The value of a document is the mean over its tokens, that of the
/// table the mean over documents.
struct Perplexity {
    double nats = 0.0;  ///< in full precision
    double mcse_nats = 0.0;
    std::size_t documents = 0;
    std::size_t tokens = 0;  ///< scored tokens in all documents
    std::size_t block_tokens = 0;
    std::vector<PerplexityRow> rows;  ///< in the order requested: by method, then bits
};

struct Documents {
    sim::Llama model;
    std::vector<std::vector<std::int32_t>> tokens;
    std::vector<codec::CacheVersion> versions;  ///< full precision and all that is requested
};
/// Throws as measure_perplexity does.
[[nodiscard]] Documents open_documents(const PerplexityPlan& plan);
/// Mean nats of the scored tokens of a document; in full precision if `cache` is null.
[[nodiscard]] double document_nats(const Documents& documents, std::size_t number, std::size_t block_tokens,
                                   codec::CompressedCache* cache);

/// Full past blocks are coded and decoded, the current block stays exact, and errors propagate from each layer to the
/// next. `unrope+` de-rotates keys (RoPE) before they are coded. Each layer, side and head has its own random rotation
/// in each document. An eviction selects after every full block among the rows that are still kept, and its bits are
/// the mean over these times. Throws usage_error and input_error before the computation starts: for unknown methods and
/// bits, for layers that do not exist, for ids outside the vocabulary, for documents longer than the context or without
/// a token to score.
[[nodiscard]] Perplexity measure_perplexity(const PerplexityPlan& plan);

/// Reads token ids, one document per row of the file. Throws input_error for entries that are not token ids of the
/// model and for documents of more than `most` tokens.
[[nodiscard]] std::vector<std::vector<std::int32_t>> read_documents(const std::string& path,
                                                                    const sim::LlamaConfig& model, std::size_t most);

}  // namespace spiked::validation
