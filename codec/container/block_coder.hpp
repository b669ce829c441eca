#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "estimators/compressors/compressor.hpp"
#include "estimators/svd/shape.hpp"

namespace spiked::codec {

/// The method, options and bit width that code blocks of several heads.
struct BlockCode {
    const estimators::MethodSpec& method;
    const estimators::QuantizerOptions& options;  ///< rotation_index apart
    estimators::Shape shape;                      ///< of a block
    double bits = 0.0;
};

struct CodedBlock {
    estimators::Encoded encoded;
    double relative_l2 = 0.0;  ///< ||X - X^||_F / ||X||_F
    std::size_t rank = 0;      ///< of the low-rank part
    double paper_bits = 0.0;   ///< as Compressor::paper_bits
};

/// Writes the rows of a block to the input buffer of the coder, column-major.
using FillRows = std::function<void(std::size_t block, float* to)>;

/// Codes blocks in float in place of the compressors of the CPU, for example on a GPU. Thread-safe.
class BlockCoder {
public:
    virtual ~BlockCoder() = default;
    /// The reason why this coder does not support the code; empty if it does.
    [[nodiscard]] virtual std::string unsupported_reason(const BlockCode& code) const = 0;
    /// Codes blocks 0, .., rotations.size() - 1 with a supported code; block b has rotation_index rotations[b]. A block
    /// without a value is left to the compressor of the CPU, which codes in double and reports errors.
    [[nodiscard]] virtual std::vector<std::optional<CodedBlock>> code(const BlockCode& code,
                                                                      std::span<const std::uint64_t> rotations,
                                                                      const FillRows& fill) = 0;
};

}  // namespace spiked::codec
