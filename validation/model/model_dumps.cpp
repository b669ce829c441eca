#include "validation/model/model_dumps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "core/runtime/error.hpp"
#include "sim/llama/llama_dump.hpp"
#include "validation/model/perplexity.hpp"

namespace spiked::validation {

namespace fs = std::filesystem;

ModelDumps::ModelDumps(const std::string& model, const std::string& tokens, const std::vector<std::size_t>& documents) {
    const sim::Llama llama(model);
    const auto texts = read_documents(tokens, llama.config(), llama.config().context + 1);
    std::vector<std::size_t> rows = documents;
    if (rows.empty()) {
        rows.resize(texts.size());
        std::iota(rows.begin(), rows.end(), std::size_t{0});
    }
    for (const std::size_t row : rows)
        if (row >= texts.size())
            throw usage_error("document {} does not exist ({} has {} documents, counted from 0): name others", row,
                              tokens, texts.size());
    const std::string name = fs::path(model + "/").parent_path().filename().string();
    for (const std::size_t row : rows) {
        paths_.push_back(fmt::format("{}/{}-document-{}.safetensors", folder_.path(), name, row));
        names_.push_back(fmt::format("document {} of {}, read by {}", row, tokens, model));
        const auto count = std::min(texts[row].size(), llama.config().context);
        sim::write_llama_dump(paths_.back(), llama, std::span(texts[row]).first(count),
                              {.model = name, .prompt_id = fmt::format("document-{}", row)});
    }
}

}  // namespace spiked::validation
