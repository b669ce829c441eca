#pragma once
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/device/device.hpp"
#include "estimators/coding/ledger.hpp"
#include "estimators/quantizers/cuda/row_codec.hpp"
#include "estimators/spectral/cuda/shrinkage.hpp"

/// Whole trials of a spiked model on a device: drawn, decomposed, estimated, coded and measured there, in batches. The
/// batch size changes no result.
namespace spiked::validation::cuda {

/// Random query directions per block for the inner products of a coded block.
inline constexpr std::uint32_t random_queries = 128;

/// The decomposition of a block by kernels.
struct FoundFactors {
    std::uint64_t block = 0;         ///< the index of the block; of a trial, its replicate
    std::span<const double> values;  ///< all, descending
    std::span<const double> left;    ///< the leading vectors: rows x vectors, column-major
    std::span<const double> right;   ///< columns x vectors
};
/// The low-rank part of a block as it is stored, and as a decoder reads it.
struct StoredFactors {
    std::vector<std::uint8_t> bytes;
    estimators::Ledger ledger;
    std::vector<float> values;       ///< as many as the rank
    std::vector<float> left, right;  ///< rows x rank, columns x rank

    [[nodiscard]] std::size_t rank() const { return values.size(); }
};
/// A low-rank part that is stored in front of the rows, and subtracted from them before they are coded. Kernels
/// decompose the block, the host chooses its rank and codes the factors by the functions of the CPU, and kernels code
/// the remaining rows. `code` returns nothing for a block that is left to the host; it is called by one thread for each
/// batch, for several batches at once.
struct LowRankPart {
    std::uint32_t vectors = 0;  ///< leading vectors to compute: the largest rank
    std::function<std::optional<StoredFactors>(const FoundFactors&)> code;
};

/// A row quantizer and its codebook. In trials each replicate has its own rotation and sketch. The rotation is a
/// Hadamard rotation or a matrix; groups of min-max quantizers are not rotated.
struct TrialCodec {
    estimators::cuda::RowCodec rows;
    std::vector<float> thresholds = {};
    std::vector<float> levels = {};
    std::optional<LowRankPart> low_rank = {};

    [[nodiscard]] bool takes_matrix() const { return !rows.hadamard && !rows.groups; }
};

/// The address of Haar frames that kernels draw, one for each replicate.
struct DrawnFrames {
    stream::PhiloxKey key{};
    std::uint32_t role = 0;
    std::vector<double> basis_change = {};  ///< Q^T, column-major, for frames in other coordinates; otherwise empty
};

/// The settings that all trials of a cell share.
struct TrialPlan {
    std::uint32_t rows = 0;
    std::uint32_t columns = 0;
    bool in_float = false;  ///< precision of the decomposition; samples are drawn in double either way
    stream::PhiloxKey key{};
    std::uint32_t noise_role = 0;
    std::uint32_t query_role = 0;  ///< of the random query directions
    /// True vectors and codec rotations that kernels draw. The host draws those without a value.
    std::optional<DrawnFrames> left, right, rotation;
    std::vector<double> strengths;
    std::vector<double> row_roots, column_roots;  ///< square roots of eigenvalues, to colour noise in the eigenbases
    std::vector<double> row_root, column_root;  ///< symmetric roots of the covariances for dense colouring; else empty
    std::vector<estimators::cuda::SpectralRule> estimators;
    std::vector<TrialCodec> codecs;

    [[nodiscard]] std::uint32_t spikes() const { return static_cast<std::uint32_t>(strengths.size()); }
    [[nodiscard]] bool dense() const { return !row_root.empty(); }
    [[nodiscard]] bool takes_rotations() const;  ///< whether a codec rotates by a matrix
    [[nodiscard]] bool has_host_draws() const;   ///< whether the host draws vectors or rotations
    /// Leading vectors to compute for each block: enough for the spikes and for the largest rank of each estimator and
    /// codec, up to the limit of the kernels.
    [[nodiscard]] std::uint32_t vectors() const;
    /// Why the trials cannot be computed on a device; empty if they can.
    [[nodiscard]] std::string unsupported_reason() const;
};

/// Where the host writes its draws for one trial. Pointers are null for the parts that kernels draw.
struct TrialDraw {
    double* left;     ///< rows x spikes, in the coordinates of the block's rows
    double* right;    ///< columns x spikes
    float* rotation;  ///< R, columns x columns
};
using DrawTrial = std::function<void(std::uint64_t replicate, const TrialDraw& to)>;

/// The outcome of a trial. Trials that are not `fine` are computed again on the host, which reports the reason.
enum class TrialStatus : std::uint8_t {
    fine,
    not_finite,    ///< an entry of the block or its square is not finite
    for_the_host,  ///< singular values too close or too small for the kernels, or norms outside the range of float
    too_many       ///< a method keeps more components than vectors were computed
};

struct TrialResult {
    TrialStatus status = TrialStatus::fine;
    std::vector<double> values;          ///< of the block, all, descending
    std::vector<double> left_products;   ///< u_i^T U_k at index i * spikes + k, for found and true vectors
    std::vector<double> right_products;  ///< v_i^T V_k, in the same order
    double energy = 0.0;                 ///< ||S||_F^2
    struct Estimate {
        std::size_t rank = 0;
        std::optional<double> bulk_edge;  ///< an eigenvalue
        std::vector<double> strengths, shrunk;
        double error = 0.0;  ///< ||S^ - S||_F^2
    };
    std::vector<Estimate> estimates;
    struct BiasAndDeviation {
        double bias = 0.0;
        double deviation = 0.0;
    };
    /// As InnerProductErrors (validation/metrics/block_metrics.hpp).
    struct Products {
        BiasAndDeviation renormalised, plain;
    };
    struct Code {
        std::size_t rank = 0;        ///< of a low-rank part
        estimators::Ledger factors;  ///< the bits of a low-rank part
        double error = 0.0;          ///< ||X^ - X||_F^2
        double energy = 0.0;
        double across = 0.0;  ///< sum of <x_t, x^_t>
        Products other, random, aligned, own;
    };
    std::vector<Code> codes;
};

/// Intermediate results between kernels, trial after trial, to locate a defect.
struct TrialStages {
    std::vector<double> normals, observed, signal;
    std::vector<double> left_vectors, right_vectors;   ///< vectors() of each block
    std::vector<double> estimate;                      ///< of the last estimator
    std::vector<std::vector<float>> rotated, decoded;  ///< for each codec: rotated rows and decoded rows
    std::vector<std::vector<std::uint8_t>> bytes;      ///< for each codec: the stored bytes of the rows
};

/// How blocks of rows are coded: one codec for all of them, and a rotation for some of them each, such as those of a
/// head.
struct RowCoding {
    std::uint32_t rows = 0;  ///< rows of a block
    std::uint32_t dimension = 0;
    TrialCodec codec;
    std::vector<float> rotations;           ///< R of each rotation if it is a matrix, one after the other
    std::vector<std::uint64_t> replicates;  ///< of each rotation and its sketch
    std::vector<std::uint32_t> which;       ///< the number of the rotation of each block; empty: the first
};
struct CodedRows {
    bool coded = false;  ///< false: left to the host, which codes in double and reports the reason
    std::vector<std::uint8_t> bytes;
    double error = 0.0;  ///< ||X^ - X||_F^2
    double energy = 0.0;
    std::size_t rank = 0;        ///< of a low-rank part, whose bytes are the first
    estimators::Ledger factors;  ///< the bits of a low-rank part
};
/// Writes a block, column-major, into host memory from which it is sent to the device.
using FillBlock = std::function<void(std::size_t block, float* to)>;

/// Computes trials. Used by one thread at a time.
class TrialDevice {
public:
    virtual ~TrialDevice() = default;
    /// Computes trials first, .., first + count - 1 in chunks that fit in memory. If an allocation fails, the chunk is
    /// halved once. `draw` is used only if plan.has_host_draws(). Throws spiked::cuda::DeviceFailure, and
    /// precondition_error for a plan that is not supported.
    [[nodiscard]] virtual std::vector<TrialResult> run(const TrialPlan& plan, std::uint64_t first, std::size_t count,
                                                       const DrawTrial& draw, TrialStages* stages = nullptr) = 0;
    /// Codes and decodes blocks 0, .., count - 1, in chunks as for trials; a low-rank part is decomposed in float.
    [[nodiscard]] virtual std::vector<CodedRows> code_rows(const RowCoding& coding, std::size_t count,
                                                           const FillBlock& fill) = 0;
    /// Largest number of trials in a chunk of the last run.
    [[nodiscard]] virtual std::size_t chunk() const = 0;
};

/// Emulated device that reports `memory` bytes but allocates no more than `available`, like a GPU that other programs
/// use as well.
[[nodiscard]] std::unique_ptr<TrialDevice> emulated_trials(std::size_t memory, std::size_t available);
/// A GPU or an emulated device that uses at most `memory` bytes.
[[nodiscard]] std::unique_ptr<TrialDevice> trial_device(spiked::cuda::Backend backend, int number, std::size_t memory);

}  // namespace spiked::validation::cuda
