#pragma once
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/device/device.hpp"
#include "estimators/quantizers/cuda/row_codec.hpp"
#include "estimators/spectral/cuda/shrinkage.hpp"

/// Whole trials of a spiked model on a device: drawn, decomposed, estimated, coded and measured there, in batches that
/// change no number.
namespace spiked::validation::cuda {

/// Random directions that a coded block is asked about.
inline constexpr std::uint32_t random_queries = 128;

/// A row quantizer and its codebook. In trials each replicate has a rotation and a sketch of its own: without a
/// Hadamard rotation a matrix, but for groups, which are not turned.
struct TrialCodec {
    estimators::cuda::RowCodec rows;
    std::vector<float> thresholds = {};
    std::vector<float> levels = {};

    [[nodiscard]] bool takes_matrix() const { return !rows.hadamard && !rows.groups; }
};

/// Haar frames that the kernels draw, each replicate its own.
struct DrawnFrames {
    stream::PhiloxKey key{};
    std::uint32_t role = 0;
    std::vector<double> turn = {};  ///< Q^T, column-major, where they are turned into other coordinates; or empty
};

/// What all trials of a cell have in common.
struct TrialPlan {
    std::uint32_t rows = 0;
    std::uint32_t columns = 0;
    bool in_float = false;  ///< what is decomposed; samples are drawn in double either way
    stream::PhiloxKey key{};
    std::uint32_t noise_role = 0;
    std::uint32_t query_role = 0;  ///< of the random directions that codecs are asked about
    /// True vectors and rotations of codecs that kernels draw; the others are the host's to draw.
    std::optional<DrawnFrames> left, right, rotation;
    std::vector<double> strengths;
    std::vector<double> row_roots, column_roots;  ///< square roots of eigenvalues: noise is coloured in eigenbases
    std::vector<double> row_root, column_root;    ///< symmetric roots of the covariances; empty, or coloured by these
    std::vector<estimators::cuda::SpectralRule> estimators;
    std::vector<TrialCodec> codecs;

    [[nodiscard]] std::uint32_t spikes() const { return static_cast<std::uint32_t>(strengths.size()); }
    [[nodiscard]] bool dense() const { return !row_root.empty(); }
    [[nodiscard]] bool takes_rotations() const;  ///< as matrices
    [[nodiscard]] bool asks_the_host() const;    ///< to draw
    /// Leading vectors that are found of each block: enough for the spikes, and for each estimator's largest rank as
    /// far as kernels go.
    [[nodiscard]] std::uint32_t vectors() const;
    /// Why it cannot be computed on a device; empty when it can.
    [[nodiscard]] std::string unsupported_reason() const;
};

/// Where the host puts what it draws for one trial; null for what it does not.
struct TrialDraw {
    double* left;     ///< rows x spikes, in the coordinates of the block
    double* right;    ///< columns x spikes
    float* rotation;  ///< R, columns x columns
};
using DrawTrial = std::function<void(std::uint64_t replicate, const TrialDraw& to)>;

/// What became of a trial. Anything but `fine` is to be computed on the host, which knows what is wrong.
enum class TrialStatus : std::uint8_t {
    fine,
    not_finite,    ///< an entry of the block, or the square of one
    for_the_host,  ///< values so close or so small that kernels leave vectors to LAPACK; norms that float cannot hold
    too_many       ///< a method keeps more components than vectors were found
};

struct TrialResult {
    TrialStatus status = TrialStatus::fine;
    std::vector<double> values;          ///< of the block, all, descending
    std::vector<double> left_products;   ///< u_i^T U_k at i spikes + k, of found and true vectors
    std::vector<double> right_products;  ///< v_i^T V_k
    double energy = 0.0;                 ///< ||S||_F^2
    struct Estimate {
        std::size_t rank = 0;
        std::optional<double> bulk_edge;  ///< an eigenvalue
        std::vector<double> strengths, shrunk;
        double error = 0.0;  ///< ||S^ - S||_F^2
    };
    std::vector<Estimate> estimates;
    struct Spread {
        double bias = 0.0;
        double deviation = 0.0;
    };
    /// As InnerProductErrors (../block_metrics.hpp).
    struct Products {
        Spread renormalised, plain;
    };
    struct Code {
        double error = 0.0;  ///< ||X^ - X||_F^2
        double energy = 0.0;
        double across = 0.0;  ///< sum of <x_t, x^_t>
        Products other, random, aligned, own;
    };
    std::vector<Code> codes;
};

/// What the kernels hand to each other, for whoever looks for a fault between them; trial after trial.
struct TrialStages {
    std::vector<double> normals, observed, signal;
    std::vector<double> left_vectors, right_vectors;  ///< vectors() of each
    std::vector<double> estimate;                     ///< the last estimator's
    std::vector<std::vector<float>> turned, decoded;  ///< of each codec: rotated rows; rows that come back
    std::vector<std::vector<std::uint8_t>> bytes;     ///< and what is stored
};

/// Blocks of rows to be coded by one codec and one rotation.
struct RowCoding {
    std::uint32_t rows = 0;  ///< of a block
    std::uint32_t dimension = 0;
    TrialCodec codec;             ///< its Hadamard rotation and its sketch are those of all blocks
    std::vector<float> rotation;  ///< R, where it is a matrix; no rotation where there is neither
};
struct CodedRows {
    bool coded = false;  ///< or left to the host, which codes in double and knows what is wrong
    std::vector<std::uint8_t> bytes;
    double error = 0.0;  ///< ||X^ - X||_F^2
    double energy = 0.0;
};
/// Puts a block where the host gives it to the device, column-major.
using FillBlock = std::function<void(std::size_t block, float* to)>;

/// Whoever computes trials. For one thread at a time.
class TrialDevice {
public:
    virtual ~TrialDevice() = default;
    /// Trials first, .., first + count - 1, in pieces that fit its memory, or half of it where it has less; `draw` is
    /// for plans that ask the host. Throws spiked::cuda::DeviceFailure, and bug for a plan with an obstacle.
    [[nodiscard]] virtual std::vector<TrialResult> run(const TrialPlan& plan, std::uint64_t first, std::size_t count,
                                                       const DrawTrial& draw, TrialStages* stages = nullptr) = 0;
    /// Blocks 0, .., count - 1, coded and decoded, in pieces as trials are.
    [[nodiscard]] virtual std::vector<CodedRows> code_rows(const RowCoding& coding, std::size_t count,
                                                           const FillBlock& fill) = 0;
    /// Trials of the pieces of the last run, at most.
    [[nodiscard]] virtual std::size_t chunk() const = 0;
};

/// Emulated blocks that promise `memory` bytes and have no more than `has`: as on a GPU that others use too.
[[nodiscard]] std::unique_ptr<TrialDevice> emulated_trials(std::size_t memory, std::size_t has);
/// One place of a device: a GPU, or emulated blocks, with so much memory.
[[nodiscard]] std::unique_ptr<TrialDevice> trial_device(spiked::cuda::Backend backend, int number, std::size_t memory);

}  // namespace spiked::validation::cuda
