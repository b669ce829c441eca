#pragma once
#include <string>
#include <vector>

#include "core/files/temporary.hpp"

namespace spiked::validation {

/// Dumps of the KV caches of a model, one for each document, as `kv dump` writes them. They lie in a temporary folder
/// that is deleted with this object.
class ModelDumps {
public:
    /// `model`: folder; `tokens`: .npy of token ids, one document per row; `documents`: the rows to use (empty: all).
    /// Throws input_error as Llama and read_documents do, usage_error for a row that does not exist, output_error.
    ModelDumps(const std::string& model, const std::string& tokens, const std::vector<std::size_t>& documents);

    [[nodiscard]] const std::vector<std::string>& paths() const { return paths_; }
    /// Describes document and model of each dump, for reports that are read after the dumps are deleted.
    [[nodiscard]] const std::vector<std::string>& names() const { return names_; }

private:
    TemporaryFolder folder_{"dumps"};
    std::vector<std::string> paths_, names_;
};

}  // namespace spiked::validation
