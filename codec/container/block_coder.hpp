#pragma once
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "estimators/compressors/compressor.hpp"
#include "estimators/svd/shape.hpp"

namespace spiked::codec {

/// By what blocks of one head are coded.
struct BlockCode {
    const estimators::Method& method;
    const estimators::QuantizerOptions& options;
    estimators::Shape shape;  ///< of a block
    double bits = 0.0;
};

struct CodedBlock {
    estimators::Encoded encoded;
    double relative_l2 = 0.0;  ///< ||X - X^||_F / ||X||_F
};

/// Puts the rows of a block where they are coded from, column-major.
using FillRows = std::function<void(std::size_t block, float* to)>;

/// Codes blocks in the place of the CPU's compressors, in float. For several threads at once.
class BlockCoder {
public:
    virtual ~BlockCoder() = default;
    /// What of a code cannot be done there; empty where blocks are coded by it.
    [[nodiscard]] virtual std::string unsupported_reason(const BlockCode& code) const = 0;
    /// Blocks 0, .., count - 1 by a code without an obstacle. Nothing for a block that is left to the CPU's compressor,
    /// which codes in double and knows what is wrong.
    [[nodiscard]] virtual std::vector<std::optional<CodedBlock>> code(const BlockCode& code, std::size_t count,
                                                                      const FillRows& fill) = 0;
};

}  // namespace spiked::codec
