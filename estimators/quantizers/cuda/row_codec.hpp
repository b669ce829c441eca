#pragma once
#include <optional>
#include <vector>

#include "estimators/quantizers/cuda/min_max_groups.hpp"
#include "estimators/quantizers/cuda/turboquant.hpp"
#include "estimators/rotations/cuda/hadamard.hpp"
#include "estimators/rotations/cuda/matrix_rotation.hpp"
#include "estimators/svd/cuda/precision.hpp"
#include "sim/random/cuda/fill_normals.hpp"

/// Row quantizers as sequences of kernels, for any executor: tq-mse, eden, tq-prod and kivi, with numbers in fp16.
namespace spiked::estimators::cuda {

/// A row quantizer for rows of one length.
struct RowCodec {
    std::uint32_t bits = 0;  ///< bits of an index
    RowScale scale = RowScale::norm;
    std::optional<HadamardPlan> hadamard;  ///< its replicate is that of the first block
    /// tq-prod: signs of a Gaussian sketch of the residual, with as many rows as the rows have entries.
    struct Sketch {
        stream::PhiloxKey key{};
        std::uint32_t role = 0;
        std::uint64_t replicate = 0;  ///< that of the first block
        double factor = 0.0;
    };
    std::optional<Sketch> sketch;
    std::optional<MinMaxGroups> groups;  ///< kivi: without rotation and sketch

    /// The number of bytes of a block.
    [[nodiscard]] std::size_t bytes(std::size_t rows, std::size_t dimension) const {
        if (groups) return groups->bytes(bits);
        return turboquant_bytes(rows, dimension, bits) + (sketch ? turboquant_bytes(rows, dimension, 1) : 0);
    }
};

/// The arrays of the kernels, blocks one after the other; an array that a codec does not use may be null.
struct RowCodecArrays {
    std::uint32_t count = 0;
    std::uint32_t rows = 0;
    std::uint32_t dimension = 0;
    /// Whether each block has its own rotation and sketch, in streams of successive replicates, or all share one, or a
    /// few of them.
    bool each_its_own = false;
    std::vector<std::uint64_t> shared = {};     ///< the replicates of those few, on the host
    const std::uint32_t* which = nullptr;       ///< their number for each block: the place in `shared` and `matrix`
    const std::uint64_t* replicates = nullptr;  ///< their replicate for each block
    const float* thresholds = nullptr;          ///< of the codebook
    const float* levels = nullptr;              ///< of the codebook
    const float* signs = nullptr;               ///< 0, then -1, 1: threshold and levels of a sketch
    const float* matrix = nullptr;              ///< R, if the rotation is a product with a matrix
    float* sketch = nullptr;                    ///< transpose of the sketch, dimension squared each
    float* projected = nullptr;                 ///< rows dimension per block
    double* norms = nullptr;                    ///< norms of rows
    float* factors = nullptr;                   ///< factors of rows
    float* rotated = nullptr;                   ///< rotated rows: rows dimension per block, as the following arrays
    float* decoded = nullptr;
    const float* from = nullptr;
    CodingStatus* status = nullptr;
    std::uint8_t* bytes = nullptr;
    std::size_t stride = 0;

    [[nodiscard]] double unit() const { return std::sqrt(static_cast<double>(dimension)); }
    [[nodiscard]] std::uint64_t entries() const { return std::uint64_t{count} * rows * dimension; }
    [[nodiscard]] std::uint32_t sketches() const {
        return each_its_own ? count : shared.empty() ? 1 : static_cast<std::uint32_t>(shared.size());
    }
    [[nodiscard]] StoredNorms stored(bool after_others, std::uint8_t* to, bool all_may_vanish) const {
        return {rows, all_may_vanish, after_others, status, to, stride};
    }
};

/// The kernels of one codec.
template <class Executor>
class CodecKernels {
public:
    CodecKernels(Executor& executor, const RowCodec& codec, const RowCodecArrays& arrays)
        : executor_(executor), codec_(codec), on_(arrays) {}

    /// Encodes `from` to `bytes`; the rotated rows stay in `rotated`.
    void encode() {
        if (codec_.groups) {
            launch(FindGroups{on_.count, *codec_.groups, codec_.bits, on_.from, on_.status, on_.bytes, on_.stride});
            launch(PackGroups{codes(), on_.status, on_.from});
            return;
        }
        const bool rescaled = codec_.scale != RowScale::norm;
        launch(ScaleRows{on_.count, on_.dimension, on_.unit(), on_.from, on_.stored(false, on_.bytes, false),
                         on_.factors, rescaled ? on_.norms : nullptr});
        rotate(false, on_.from, on_.rotated);
        const float* const coordinates = rotates() ? on_.rotated : on_.from;
        launch(pack(codec_.bits, on_.thresholds, coordinates, on_.bytes));
        if (rescaled)
            launch(RescaleRows{on_.count, on_.dimension, codec_.bits, codec_.scale, on_.unit(), on_.levels, coordinates,
                               on_.norms, on_.factors, on_.stored(true, on_.bytes, false)});
        if (!codec_.sketch) return;
        draw_sketch();
        launch(TakeLevels{on_.count, on_.rows, on_.dimension, codec_.bits, 1.0 / on_.unit(), on_.levels, on_.bytes,
                          on_.stride, coordinates, on_.decoded});
        launch(
            ScaleRows{on_.count, on_.dimension, on_.unit(), on_.decoded, on_.stored(true, signs(), true), on_.factors});
        launch(TurnByMatrix<float>{on_.count, on_.rows, on_.dimension, on_.sketch, on_.decoded, on_.projected,
                                   on_.each_its_own, true, on_.which});
        launch(pack(1, on_.signs, on_.projected, signs()));
    }

    /// Decodes `bytes` to `decoded`, by the sketch that `encode` drew.
    void decode() {
        if (codec_.groups) {
            launch(UnpackGroups{codes(), on_.decoded});
            return;
        }
        float* const coordinates = rotates() ? on_.rotated : on_.decoded;
        if (codec_.sketch) {
            launch(unpack(1, codec_.sketch->factor, on_.signs + 1, signs(), on_.projected));
            launch(TurnByMatrix<float>{on_.count, on_.rows, on_.dimension, on_.sketch, on_.projected,
                                       rotates() ? on_.decoded : on_.rotated, on_.each_its_own, false, on_.which});
        }
        launch(unpack(codec_.bits, 1.0 / on_.unit(), on_.levels, on_.bytes, coordinates));
        if (codec_.sketch) launch(AddEntries{on_.entries(), rotates() ? on_.decoded : on_.rotated, coordinates});
        rotate(true, on_.rotated, on_.decoded);
    }

private:
    template <class Kernel>
    void launch(const Kernel& kernel) {
        executor_.launch(kernel, kernel.blocks());
    }
    [[nodiscard]] bool rotates() const { return codec_.hadamard || on_.matrix != nullptr; }
    /// Norms and signs of a sketch are stored after the indices, like a codec of one bit.
    [[nodiscard]] std::uint8_t* signs() const {
        return on_.bytes + turboquant_bytes(on_.rows, on_.dimension, codec_.bits);
    }
    [[nodiscard]] GroupCodes codes() const { return {on_.count, *codec_.groups, codec_.bits, on_.bytes, on_.stride}; }
    [[nodiscard]] PackCells pack(std::uint32_t bits, const float* thresholds, const float* from,
                                 std::uint8_t* to) const {
        return {on_.count, on_.rows, on_.dimension, bits, thresholds, on_.status, on_.factors, from, to, on_.stride};
    }
    [[nodiscard]] UnpackLevels unpack(std::uint32_t bits, double per_unit, const float* levels,
                                      const std::uint8_t* from, float* to) const {
        return {on_.count, on_.rows, on_.dimension, bits, per_unit, levels, from, on_.stride, to};
    }
    void rotate(bool back, const float* from, float* to) {
        if (codec_.hadamard)
            launch(TurnByHadamard<float>{*codec_.hadamard, back, on_.each_its_own, on_.count, on_.rows, from, to,
                                         on_.replicates});
        else if (on_.matrix != nullptr)
            launch(TurnByMatrix<float>{on_.count, on_.rows, on_.dimension, on_.matrix, from, to, on_.each_its_own, back,
                                       on_.which});
    }
    void draw_sketch() {
        const std::uint32_t square = on_.dimension * on_.dimension;
        const auto draw = [&](std::uint64_t replicate, std::uint32_t count, float* to) {
            launch(stream::FillNormals<double, float>{codec_.sketch->key, codec_.sketch->role, replicate, count, square,
                                                      to});
        };
        if (on_.shared.empty()) return draw(codec_.sketch->replicate, on_.sketches(), on_.sketch);
        for (std::size_t i = 0; i < on_.shared.size(); ++i)
            draw(on_.shared[i], 1, on_.sketch + i * std::size_t{square});
    }

    Executor& executor_;
    const RowCodec& codec_;
    const RowCodecArrays& on_;
};

}  // namespace spiked::estimators::cuda
