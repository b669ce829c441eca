#include "validation/model/perplexity.hpp"

#include <algorithm>
#include <cmath>
#include <mutex>

#include "core/runtime/error.hpp"
#include "core/runtime/parallel.hpp"
#include "sim/io/matrix_file.hpp"
#include "validation/statistics/moments.hpp"

namespace spiked::validation {

std::vector<std::vector<std::int32_t>> read_documents(const std::string& path, const sim::LlamaConfig& model,
                                                      std::size_t most) {
    arma::mat ids = sim::read_matrix(*sim::open_npy(path));
    if (ids.n_cols == 1) ids = ids.t();
    if (ids.n_cols > most)
        throw input_error("{}: documents of {} tokens (expected at most {} with a context of {}): cut them", path,
                          ids.n_cols, most, model.context);
    std::vector<std::vector<std::int32_t>> documents;
    for (arma::uword row = 0; row < ids.n_rows; ++row) {
        std::vector<std::int32_t> document;
        for (arma::uword t = 0; t < ids.n_cols; ++t) {
            const double id = ids(row, t);
            if (!(id >= 0.0 && id < static_cast<double>(model.vocabulary)) || id != std::floor(id))
                throw input_error(
                    "{}: token {} of document {} is {} (expected a whole number from 0 to {}): is it of another "
                    "vocabulary?",
                    path, t, row, id, model.vocabulary - 1);
            document.push_back(static_cast<std::int32_t>(id));
        }
        documents.push_back(std::move(document));
    }
    return documents;
}

namespace {

std::vector<codec::CacheVersion> versions_of(const PerplexityPlan& plan, const sim::LlamaConfig& model) {
    const codec::CachePlan common{.quantizer = plan.quantizer,
                                  .only = plan.only,
                                  .block_tokens = plan.block_tokens,
                                  .extra_bits = plan.extra_bits,
                                  .sinks = plan.sinks};
    return codec::cache_versions(model, plan.methods, common, plan.block_tokens);
}

}  // namespace

Documents open_documents(const PerplexityPlan& plan) {
    if (plan.block_tokens == 0) throw precondition_error("blocks of 0 tokens");
    const sim::LlamaConfig shape = sim::read_llama_config(plan.model);
    // The last token is only predicted, so a document may be one token longer than the context.
    auto documents = read_documents(plan.tokens, shape, shape.context + 1);
    if (plan.documents > documents.size())
        throw usage_error("--documents {} is not possible ({} has {}): give fewer, or leave it out", plan.documents,
                          plan.tokens, documents.size());
    if (plan.documents > 0) documents.resize(plan.documents);
    if (documents.empty() || documents.front().size() < plan.block_tokens + 2)
        throw input_error(
            "{}: documents of {} tokens (expected {} or more for blocks of {}, else no token attends to a compressed "
            "block): choose a smaller --block or longer documents",
            plan.tokens, documents.empty() ? 0 : documents.front().size(), plan.block_tokens + 2, plan.block_tokens);
    const std::size_t tokens = documents.front().size() - 1;
    auto versions = versions_of(plan, shape);
    const PlannedPasses passes{
        versions, std::vector<std::size_t>(documents.size(), tokens), {}, plan.block_tokens, plan.threads};
    forecast_memory(plan.notes, shape, plan.model, passes);
    sim::Llama model(plan.model);
    forecast_time(plan.notes, model, documents.front(), passes);
    return {std::move(model), std::move(documents), std::move(versions)};
}

double document_nats(const Documents& documents, std::size_t number, std::size_t block_tokens,
                     codec::CompressedCache* cache) {
    const auto& document = documents.tokens[number];
    std::vector<std::int32_t> next(document.begin() + 1, document.end());
    std::fill_n(next.begin(), block_tokens, -1);
    double sum = 0.0;
    sim::ForwardOptions options{.block_tokens = block_tokens};
    options.next = next;
    options.scored = [&](const arma::vec& log_probabilities) { sum -= arma::sum(log_probabilities); };
    // Blocks are coded that a token reads afterwards.
    const std::size_t coded = (document.size() - 2) / block_tokens * block_tokens;
    if (cache != nullptr) cache->attach(options, coded);
    documents.model.forward(std::span(document).first(document.size() - 1), options);
    return sum / static_cast<double>(next.size() - block_tokens);
}

Perplexity measure_perplexity(const PerplexityPlan& plan) {
    const Documents documents = open_documents(plan);
    const std::size_t count = documents.tokens.size();
    const auto& versions = documents.versions;

    struct DocumentResult {
        double nats = 0.0;
        codec::CacheBits bits;
        double entries = 0.0;
    };
    const std::size_t jobs = versions.size() * count;
    std::vector<DocumentResult> found(jobs);
    std::size_t done = 0;
    std::mutex progress_guard;
    // All versions of a document, then the next document, so that the time left is estimated from all methods.
    for_each_parallel(jobs, plan.threads, [&](std::size_t job) {
        const std::size_t document = job / versions.size();
        auto cache = versions[job % versions.size()].cache;
        if (cache) cache->draw_rotations(document);
        found[job].nats = document_nats(documents, document, plan.block_tokens, cache ? &*cache : nullptr);
        if (cache) {
            found[job].bits = cache->stored_bits();
            found[job].entries = cache->entries();
        }
        const std::scoped_lock lock(progress_guard);
        if (plan.progress) plan.progress(++done, jobs);
    });

    Perplexity result;
    result.documents = count;
    result.tokens = count * (documents.tokens.front().size() - 1 - plan.block_tokens);
    result.block_tokens = plan.block_tokens;
    for (std::size_t v = 0; v < versions.size(); ++v) {
        Moments nats;
        codec::CacheBits bits;
        double entries = 0.0;
        for (std::size_t d = 0; d < count; ++d) {
            const DocumentResult& one = found[d * versions.size() + v];
            nats.add(v == 0 ? one.nats : one.nats - found[d * versions.size()].nats);
            bits += one.bits;
            entries += one.entries;
        }
        if (v == 0) {
            result.nats = nats.mean;
            result.mcse_nats = nats.standard_error();
        } else {
            bits /= entries;
            result.rows.push_back(
                {versions[v].label, versions[v].bits, versions[v].budget, bits, nats.mean, nats.standard_error()});
        }
    }
    return result;
}

}  // namespace spiked::validation
