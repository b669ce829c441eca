#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "codec/cache/compressed_cache.hpp"

namespace spiked::validation {

/// What a model predicts while it reads a compressed cache.
struct PerplexityPlan {
    std::string model;   ///< folder
    std::string tokens;  ///< .npy of token ids, documents x tokens, or one document
    std::vector<codec::CacheRequest> methods;
    std::size_t block_tokens = 128;
    codec::CachePart only;  ///< what is compressed
    estimators::QuantizerOptions quantizer;
    std::size_t threads = 0;  ///< 0: all of the machine; never changes a number
    std::function<void(std::size_t done, std::size_t of)> progress = {};
};

struct PerplexityRow {
    std::string method;
    double bits = 0.0;
    std::optional<double> budget;  ///< of an eviction
    codec::CacheBits ledger;       ///< stored, an entry of what was compressed
    double added_nats = 0.0;       ///< mean over documents of what a token costs more than in full precision
    double mcse_added_nats = 0.0;  ///< of the paired differences of documents; NaN for one document
};

/// Natural logarithms of inverse probabilities of tokens that see a compressed block: those after the first
/// block_tokens + 1 of each document. A document's number is the mean of its tokens, the table's the mean of those.
struct Perplexity {
    double nats = 0.0;  ///< in full precision
    double mcse_nats = 0.0;
    std::size_t documents = 0;
    std::size_t tokens = 0;  ///< scored, of all documents
    std::size_t block_tokens = 0;
    std::vector<PerplexityRow> rows;  ///< in the order asked: by method, then bits
};

struct Documents {
    sim::Llama model;
    std::vector<std::vector<std::int32_t>> tokens;
};
/// Throws as measure_perplexity does.
[[nodiscard]] Documents open_documents(const PerplexityPlan& plan);
/// Mean nats of the tokens of a document that see a compressed block; in full precision where there is no cache.
[[nodiscard]] double document_nats(const Documents& documents, std::size_t number, std::size_t block_tokens,
                                   codec::CompressedCache* cache);

/// Full past blocks are coded and decoded, the block being read stays exact, and each layer sees what the compressed
/// layers below make of it. `unrope+` turns keys back before they are coded. A layer, side and head has a rotation of
/// its own in each document. An eviction chooses after every full block, among what earlier choices left,
/// and its bits are the mean over those times. Throws usage_error and input_error before anything is computed: methods,
/// bits, layers that do not exist, ids outside the vocabulary, documents beyond the context or without a token to
/// score.
[[nodiscard]] Perplexity measure_perplexity(const PerplexityPlan& plan);

/// Token ids as the model reads them, a document a row. Throws input_error for what are no token ids of the model, or
/// more tokens than `most` in a document.
[[nodiscard]] std::vector<std::vector<std::int32_t>> read_documents(const std::string& path,
                                                                    const sim::LlamaConfig& model, std::size_t most);

}  // namespace spiked::validation
