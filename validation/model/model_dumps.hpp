#pragma once
#include <string>
#include <vector>

#include "core/files/temporary.hpp"

namespace spiked::validation {

/// Documents that a model has read, each as a dump in a temporary folder that goes with this object: what `kv dump`
/// writes, for who has none.
class ModelDumps {
public:
    /// `model`: folder; `tokens`: .npy of token ids, a document a row; `documents`: which rows, empty: all. Throws
    /// input_error as Llama and read_documents do, usage_error for a row that does not exist, write_error.
    ModelDumps(const std::string& model, const std::string& tokens, const std::vector<std::size_t>& documents);

    [[nodiscard]] const std::vector<std::string>& paths() const { return paths_; }
    /// What they are of, for who reads of them when they are gone.
    [[nodiscard]] const std::vector<std::string>& names() const { return names_; }

private:
    TemporaryFolder folder_{"dumps"};
    std::vector<std::string> paths_, names_;
};

}  // namespace spiked::validation
