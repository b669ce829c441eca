#pragma once
#include <armadillo>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/io/dtype.hpp"
#include "sim/io/tensor_container.hpp"
#include "sim/io/tensor_layout.hpp"
#include "sim/kv/dump_tensors.hpp"

namespace spiked::sim {

/// The layout of the tensors of a dump, of all or by side.
struct DumpLayout {
    std::string words;
    std::optional<TensorLayout> plain;  ///< if every tensor is stored alone, in this layout

    [[nodiscard]] const std::string& text() const { return words; }
};

/// A KV-cache dump (.safetensors, .npz or .npy) that is read block by block: one sequence of it, and those of its
/// tokens that the options keep. Opening it reads the headers only, unless empty tokens are left out, and checks that
/// the tensors of the pattern have a float type and fit the layout (layers that do not are left out), and that key and
/// value of a layer agree in heads and tokens. Failures are input_errors that name file and tensor; a bad option is a
/// usage_error. Reading is safe from several threads.
class KvDump {
public:
    explicit KvDump(const std::string& path, const DumpOptions& options = {});

    [[nodiscard]] const std::string& path() const { return file_->path(); }
    /// All metadata of the file: model, keys, attention, rope_base, rope_style, position_start, needles, ... Where
    /// tokens are left out in front, position_start is that of the first one kept; where some are left out between
    /// others, `keys` is no longer post-rope, because positions do not follow each other.
    [[nodiscard]] const Metadata& metadata() const { return metadata_; }
    [[nodiscard]] std::optional<std::string> metadata(std::string_view key) const;
    /// Empty when the metadata do not name it.
    [[nodiscard]] const std::string& model() const { return model_; }
    [[nodiscard]] const std::optional<std::string>& prompt_id() const { return prompt_id_; }
    [[nodiscard]] const DumpLayout& layout() const { return layout_; }
    /// Whether every token of every tensor is read, so that the stored tensors are the cache.
    [[nodiscard]] bool has_all_tokens() const { return all_tokens_; }
    /// The number of sequences in the batch, and which of them this is.
    [[nodiscard]] std::size_t sequences() const { return sequences_; }
    [[nodiscard]] std::size_t sequence() const { return options_.batch.value_or(0); }
    /// What was decided when the file was opened, a sentence each.
    [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }
    /// How the format that `options` name was read, a phrase; empty where they name none.
    [[nodiscard]] const std::string& reading() const { return reading_; }
    /// The file with all its tensors, also those outside the cache.
    [[nodiscard]] const TensorContainer& file() const { return *file_; }

    /// The tensors of the cache by layer, then key, value, query.
    [[nodiscard]] const std::vector<DumpTensor>& tensors() const { return tensors_; }
    /// Null when the dump has no such tensor.
    [[nodiscard]] const DumpTensor* find(std::size_t layer, Side side) const;
    /// Names of the tensors outside the pattern, in file order.
    [[nodiscard]] const std::vector<std::string>& ignored() const { return ignored_; }

    /// A block of one head, tokens x dim. Throws an input_error for NaN and infinities, with their count and the first
    /// position.
    [[nodiscard]] arma::mat read_block(const DumpTensor& tensor, std::size_t head, std::size_t first_token,
                                       std::size_t tokens) const;

    /// The tokens of a layer whose keys and values are zero in every head, in order. Reads the layer up to the first
    /// head that has none.
    [[nodiscard]] std::vector<std::size_t> empty_tokens(std::size_t layer) const;
    /// A sentence on the empty tokens of all layers; empty where there are none.
    [[nodiscard]] std::string empty_tokens_note() const;

    /// Throws an input_error where there are more than 1024 heads and more than one for each kilobyte of the file,
    /// which is the effect of a wrong layout. Measuring or coding a head costs some kilobytes and a millisecond,
    /// however small it is.
    void reject_tiny_heads() const;

private:
    void reject_long_texts() const;
    void select_tokens();
    void skip_empty_tokens();
    void shift_positions();
    void set_metadata(std::string_view key, const std::string& value);
    [[nodiscard]] arma::mat gather(const DumpTensor& tensor, std::size_t head, std::size_t first_token,
                                   std::size_t tokens) const;

    DumpOptions options_;
    std::string model_;
    std::optional<std::string> prompt_id_;
    std::unique_ptr<TensorContainer> file_;
    Metadata metadata_;
    DumpLayout layout_;
    std::vector<DumpTensor> tensors_;
    std::vector<std::size_t> block_table_;
    std::size_t sequences_ = 1;
    bool all_tokens_ = true;
    std::vector<std::string> ignored_;
    std::vector<std::string> notes_;
    std::string reading_;
};

}  // namespace spiked::sim
