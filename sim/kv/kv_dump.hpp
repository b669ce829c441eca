#pragma once
#include <armadillo>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/io/dtype.hpp"
#include "sim/io/tensor_container.hpp"
#include "sim/io/tensor_layout.hpp"

namespace spiked::sim {

enum class Side { key, value, query };
/// In the order in which dumps are written.
inline constexpr std::array<Side, 3> all_sides = {Side::key, Side::value, Side::query};
[[nodiscard]] std::string_view side_name(Side side);

/// How to read a dump whose metadata are missing or have other names.
struct DumpOptions {
    std::string layout;  ///< "head,token,dim"; empty: the file's metadata must name it
    /// Holds {layer} and {side} once each. {side} stands for key|value|query or, when no tensor has such a name, for
    /// keys|values|queries or k|v|q.
    std::string tensor_pattern = "layers.{layer}.{side}";
    std::string prompt_id_key = "prompt_id";
};

/// A tensor of the cache in a dump.
struct DumpTensor {
    std::string name;
    std::size_t layer = 0;
    Side side = Side::key;
    std::size_t heads = 0;
    std::size_t tokens = 0;
    std::size_t dim = 0;
    DType dtype = DType::f16;
    std::size_t index = 0;  ///< in the file's list of tensors
};

/// A KV-cache dump (.safetensors, .npz or .npy) that is read block by block. Opening it reads the headers only and
/// checks that every tensor of the pattern has a float type and fits the layout, and that key and value of a layer
/// agree in heads and tokens. Failures are input_errors that name file and tensor; a bad option is a usage_error.
/// Reading is safe from several threads.
class KvDump {
public:
    explicit KvDump(const std::string& path, const DumpOptions& options = {});

    [[nodiscard]] const std::string& path() const { return file_->path(); }
    /// All metadata of the file: model, keys, attention, rope_base, rope_style, position_start, needles, ...
    [[nodiscard]] const Metadata& metadata() const { return file_->metadata(); }
    [[nodiscard]] std::optional<std::string> metadata(std::string_view key) const;
    /// Empty when the metadata do not name it.
    [[nodiscard]] const std::string& model() const { return model_; }
    [[nodiscard]] const std::optional<std::string>& prompt_id() const { return prompt_id_; }
    [[nodiscard]] const TensorLayout& layout() const { return layout_; }
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

    /// Throws an input_error where there are more than 1024 heads and more than one for each kilobyte of the file,
    /// which is the effect of a wrong layout. Measuring or coding a head costs some kilobytes and a millisecond,
    /// however small it is.
    void reject_tiny_heads() const;

private:
    void choose_layout(const std::vector<DumpTensor>& found);
    void reject_long_texts() const;
    void set_sizes();

    DumpOptions options_;
    std::string model_;
    std::optional<std::string> prompt_id_;
    std::unique_ptr<TensorContainer> file_;
    TensorLayout layout_;
    std::vector<DumpTensor> tensors_;
    std::vector<TensorAxes> axes_;  ///< by index in file_->tensors(), set where the pattern matches
    std::vector<std::string> ignored_;
};

/// The number of tokens that the metadata state; empty when they do not.
[[nodiscard]] std::optional<std::size_t> stated_tokens(const Metadata& metadata);

}  // namespace spiked::sim
