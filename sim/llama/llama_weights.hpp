#pragma once
#include <armadillo>
#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/files/mapped_file.hpp"
#include "sim/io/safetensors.hpp"

namespace spiked::sim {

/// A linear map y = x W + b in the type of its file: F16, BF16 or F32 (F64 is rounded to F32). Weights of 16 bits stay
/// so in memory; a product converts some hundred outputs at a time, which is exact. Copies share the weights.
/// LlamaWeights maps them from the file, so that processes share them.
class WeightMatrix {
public:
    WeightMatrix() = default;
    /// `bytes` holds outputs x inputs numbers, inputs contiguous; all are finite.
    WeightMatrix(std::shared_ptr<const std::byte[]> bytes, DType dtype, std::size_t inputs, std::size_t outputs);

    [[nodiscard]] std::size_t inputs() const { return inputs_; }
    [[nodiscard]] std::size_t outputs() const { return outputs_; }
    /// The map to `count` of the outputs from number `first` on, without a bias.
    [[nodiscard]] WeightMatrix part(std::size_t first, std::size_t count) const;
    void set_bias(arma::fvec bias) { bias_ = std::move(bias); }

    /// rows x inputs to rows x outputs, in float.
    [[nodiscard]] arma::fmat product(const arma::fmat& rows) const;
    /// The weights of one output, 1 x inputs: the row of an embedding.
    [[nodiscard]] arma::frowvec weights_of(std::size_t output) const;

private:
    void convert(std::size_t first, std::size_t count, float* out) const;

    std::shared_ptr<const std::byte[]> bytes_;
    std::size_t first_ = 0;  ///< the first output in `bytes_`
    std::size_t inputs_ = 0, outputs_ = 0;
    DType dtype_ = DType::f32;
    arma::fvec bias_;  ///< empty: none
};

/// The paths of the weights in FOLDER, sorted: FOLDER/model.safetensors, or the files of its index. Throws input_error
/// for an index that names files outside FOLDER, more than 1000 files, or one file by two names.
[[nodiscard]] std::vector<std::string> weight_files(const std::string& folder);

/// The tensors of a model in one file, or in several files named by an index.
class LlamaWeights {
public:
    /// Opens the files. Throws input_error as weight_files and SafetensorsFile do, and an Error of the kind memory,
    /// with both sizes, when the tensors take more memory than the process may use.
    explicit LlamaWeights(std::string folder);

    /// The bytes that all tensors take in memory.
    [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

    /// The tensor NAME of shape [outputs, inputs], or [size]. Throws input_error for a tensor that is missing, has
    /// another shape, is none of F16, BF16, F32 and F64, or holds NaN or infinity.
    /// Its numbers are mapped, so that they stay valid without this object, and read where they cannot be.
    [[nodiscard]] WeightMatrix matrix(const std::string& name, std::size_t inputs, std::size_t outputs) const;
    [[nodiscard]] arma::fvec vector(const std::string& name, std::size_t size) const;

    /// Throws input_error where a file holds tensors that were not read, because the stored model is then another one.
    /// A head is not needed where it is tied to the embedding.
    void require_all_read(bool tied) const;

    static constexpr const char* head_name = "lm_head.weight";

private:
    struct Stored {
        std::shared_ptr<const std::byte[]> bytes;
        DType dtype;
    };
    [[nodiscard]] Stored read(const std::string& name, const std::vector<std::size_t>& shape) const;

    std::string folder_;
    std::vector<std::unique_ptr<SafetensorsFile>> files_;
    std::map<const SafetensorsFile*, std::shared_ptr<const MappedFile>> mapped_;
    std::map<std::string, std::pair<const SafetensorsFile*, const TensorInfo*>> location_of_;
    std::uint64_t bytes_ = 0;
    mutable std::set<std::string> read_;
};

}  // namespace spiked::sim
