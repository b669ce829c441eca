#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/text/json.hpp"
#include "estimators/transforms/noise_covariance.hpp"
#include "sim/kv/kv_like.hpp"
#include "sim/spiked/covariance_spec.hpp"
#include "sim/spiked/spiked_sampler.hpp"
#include "theory/laws/separable_law.hpp"

namespace spiked::validation {

/// Makes the blocks of one cell, replicate by replicate: a pure function of its argument, safe on many threads. Where
/// the truth is not known (a matrix from a file) only `observed` is filled.
using BlockDraw = std::function<sim::SpikedSample(std::uint64_t replicate)>;

/// The blocks of one cell, and the covariances of their noise for methods that are told them (null where the model has
/// none).
struct PreparedSource {
    BlockDraw draw;
    std::function<estimators::KnownNoise()> noise;
    std::shared_ptr<const sim::SpikedModel> model = {};  ///< what kernels draw; null where there is none for them
};

/// Where the blocks of a cell come from, and what theory knows about them.
struct BlockSource {
    Json params;  ///< canonical; its hash is the cell's identity and the address of its randomness
    std::size_t rows = 0;
    std::size_t columns = 0;
    std::size_t spikes = 0;  ///< true components that are measured
    bool truth = true;       ///< whether the clean signal is known
    /// Whether rows (columns) are those of the model, not coordinates in the eigenbasis of a covariance.
    bool own_rows = true;
    bool own_columns = true;
    std::string no_kernels = {};  ///< why no kernel draws these blocks; empty where one does
    bool keys = false;            ///< groups of min-max quantizers lie along tokens, as for the keys of a dump
    /// Null where theory knows nothing. Made anew for each question: those of a large sweep would not fit in memory.
    std::function<theory::SeparableLaw()> law;
    std::vector<SignalStrength> strengths;  ///< absolute; of the law's predictions
    /// The expensive part (bases, projections), made when the first replicate is asked for.
    std::function<PreparedSource(const stream::StudySeed& seed, const std::string& cell)> prepare;
};

/// [model] kind = "spiked".
struct SpikedPoint {
    std::size_t rows = 0;
    std::size_t columns = 0;
    sim::CovarianceSpec row;
    sim::CovarianceSpec column;
    std::string entries = "gaussian";
    std::string left_vectors = "haar";
    std::string right_vectors = "haar";
    sim::Colouring colouring = sim::Colouring::dense;
    std::vector<double> strengths;
    std::string unit = "threshold";  ///< threshold | absolute | sqrt_n
};
/// Throws usage_error for names, parameters and sizes that do not go together, input_error for files of spectra.
[[nodiscard]] BlockSource spiked_source(const SpikedPoint& point);

/// [model] kind = "kv_like": keys or values of one head. Theory predicts nothing about them.
struct KvLikePoint {
    sim::KvLikeOptions options;
    bool values = false;
};
[[nodiscard]] BlockSource kv_like_source(const KvLikePoint& point);

/// [model] kind = "matrix": the block in a file, the same in every replicate; what varies is a quantizer's rotation.
/// Throws input_error like sim::read_matrix.
[[nodiscard]] BlockSource matrix_source(const std::string& path);

}  // namespace spiked::validation
