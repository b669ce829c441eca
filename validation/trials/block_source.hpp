#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/text/json.hpp"
#include "estimators/transforms/noise_covariance.hpp"
#include "sim/io/matrix_file.hpp"
#include "sim/kv/kv_like.hpp"
#include "sim/preparation/preparation.hpp"
#include "sim/spiked/count_sampler.hpp"
#include "sim/spiked/covariance_spec.hpp"
#include "sim/spiked/spiked_sampler.hpp"
#include "theory/laws/profile_law.hpp"
#include "theory/laws/separable_law.hpp"

namespace spiked::validation {

/// Draws the block of one replicate of a cell. A pure function of its argument that may be called from many threads.
/// For sources without a known signal (a matrix from a file) only `observed` is filled.
using BlockDraw = std::function<sim::SpikedSample(std::uint64_t replicate)>;

/// The blocks of one cell, and their noise covariances for methods that use the known law.
struct PreparedSource {
    BlockDraw draw;
    std::function<estimators::KnownNoise()> noise;       ///< null if the model has no noise covariances
    std::shared_ptr<const sim::SpikedModel> model = {};  ///< for kernels that draw the blocks; null if none can
};

/// The source of the blocks of a cell, and what theory predicts about them.
struct BlockSource {
    Json params;  ///< canonical; its hash identifies the cell and addresses its random streams
    std::size_t rows = 0;
    std::size_t columns = 0;
    std::size_t spikes = 0;  ///< true components to measure
    bool truth = true;       ///< whether the clean signal is known
    /// Whether the rows (columns) are those of the model. False if they are coordinates in the eigenbasis of a
    /// covariance.
    bool own_rows = true;
    bool own_columns = true;
    std::string no_kernels = {};  ///< why no kernel draws these blocks; empty if one does
    bool keys = false;            ///< min-max quantizers group entries along tokens, as for the keys of a dump
    bool symmetric = false;       ///< blocks are symmetric: limits are those of the law, fluctuations are not
    /// Null if theory predicts nothing. Computed on every call, because the laws of a large sweep would not fit in
    /// memory.
    std::function<theory::SeparableLaw()> law;
    /// The law in place of `law` where the noise has a variance profile and the spikes are spread evenly.
    std::function<theory::ProfileLaw()> profile = {};
    std::optional<std::size_t> signal_rank = {};  ///< where there is no law, and every component is to be found
    std::vector<SignalStrength> strengths;        ///< absolute strengths, at which the law makes its predictions
    double excess_kurtosis = 0.0;                 ///< of the entries of the noise, beside the law; may be infinite
    /// Computes the expensive part (bases, projections); called when the first replicate is needed.
    std::function<PreparedSource(const stream::StudySeed& seed, const std::string& cell)> prepare;
    std::vector<std::string> notes = {};  ///< messages for the user
};

/// [model] kind = "spiked".
struct SpikedPoint {
    std::size_t rows = 0;
    std::size_t columns = 0;
    sim::CovarianceSpec row;
    sim::CovarianceSpec column;
    sim::EntryLaw entries;
    sim::VectorLaw left_vectors;
    sim::VectorLaw right_vectors;
    sim::Colouring colouring = sim::Colouring::dense;
    /// Symmetric blocks of white noise (sim::SpikedModel::symmetric); strengths may then be negative, and are in order
    /// of their moduli.
    bool symmetric = false;
    std::vector<double> strengths;
    sim::StrengthUnit unit = sim::StrengthUnit::threshold;
    /// The probability that an entry is seen. The law is that of the noise of the entries seen
    /// (theory/missing/missing_entries.hpp); thresholds as units of strengths are those of the whole matrix.
    double seen = 1.0;
    /// sim::SpikedModel::seen_by and seen_spread. Nothing is predicted where it is not uniform.
    sim::Missing seen_by = sim::Missing::uniform;
    double seen_spread = 0.0;
    /// A variance profile of the noise (sim/spiked/variance_profile.hpp) in place of covariances; empty: none. Its
    /// thresholds as units are those of spikes that are spread evenly, and nothing is predicted about other spikes.
    std::string variances = {};
    /// Rows of random scale, drawn anew in every block (sim::SpikedModel::student_rows); 0: none. Thresholds as units
    /// are those of the noise without them, and nothing is predicted.
    double student_rows = 0.0;
};
/// Throws usage_error for invalid names and parameters and for sizes that do not fit them, input_error for unusable
/// files of spectra.
[[nodiscard]] BlockSource spiked_source(const SpikedPoint& point);

/// [model] kind = "counts": the signal is the means, the noise what is left of the counts without them. Theory predicts
/// nothing about them. Throws usage_error as sim::sample_counts does.
[[nodiscard]] BlockSource counts_source(const sim::CountModel& model);

/// [model] kind = "kv_like": the keys or values of one attention-like head. Theory predicts nothing about them.
struct KvLikePoint {
    sim::KvLikeOptions options;
    bool values = false;
};
[[nodiscard]] BlockSource kv_like_source(const KvLikePoint& point);

/// [model] kind = "matrix": a block from a file, read as `reading` says and prepared, the same in every replicate. Only
/// the random rotation of quantizers differs between replicates. The notes are those on reading and preparing it and on
/// its data, each with the name of the file; they and the errors name the keys of [model] in the place of options.
/// Throws like sim::read_noted_matrix and sim::prepared.
[[nodiscard]] BlockSource matrix_source(const std::string& path, const sim::Preparation& preparation = {},
                                        const sim::MatrixReading& reading = {});

}  // namespace spiked::validation
