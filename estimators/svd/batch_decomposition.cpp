#include "estimators/svd/batch_decomposition.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/runtime/error.hpp"
#include "core/runtime/parallel.hpp"
#include "core/runtime/stop_point.hpp"
#include "estimators/svd/aligned_array.hpp"
#include "estimators/svd/bidiagonal_svd.hpp"
#include "estimators/svd/decomposition_kernels.hpp"
#include "estimators/svd/gram_reduction.hpp"
#include "estimators/svd/scaling_exponent.hpp"
#include "estimators/svd/transposition.hpp"
#include "estimators/svd/two_stage/two_stage_reduction.hpp"

namespace spiked::estimators {
namespace {

const char* name_of(Instructions instructions) {
    if (instructions == Instructions::avx512) return "avx512";
    return instructions == Instructions::avx2 ? "avx2" : "generic";
}

template <class Real>
kernels::Path<Real> path(Instructions wanted) {
    const kernels::Path<Real> found =
        wanted == Instructions::best ? kernels::best_path<Real>() : kernels::path_named<Real>(name_of(wanted));
    if (found.kernels != nullptr) return found;
    throw input_error("this processor lacks the requested instructions (AVX2 or AVX-512): use the best it has");
}

}  // namespace

template <class Real>
class BatchDecomposition<Real>::Work {
public:
    Work(Shape shape, Instructions instructions, std::size_t threads)
        : threads_(threads),
          shape_(shape),
          long_side_(shape.long_side()),
          short_side_(shape.short_side()),
          path_(path<Real>(instructions)),
          stride_(kernels::padded<Real>(long_side_)),
          left_size_(kernels::Packed<Real>(long_side_).size(short_side_)),
          right_size_(kernels::Packed<Real>(short_side_).size(short_side_)),
          row_work_(2 * stride_),
          column_work_(2 * kernels::padded<Real>(short_side_ + kernels::reduction_strip)),
          bidiagonal_(*path_.kernels, short_side_) {
        if (short_side_ == 0)
            throw input_error("a {} x {} block has no singular values (a side is zero): leave it out", shape.rows,
                              shape.columns);
        if (std::is_same_v<Real, double> && GramReduction::serves(long_side_, short_side_))
            gram_.emplace(path_.kernels->tridiagonalise, long_side_, short_side_);
        if (TwoStageReduction<Real>::serves(short_side_)) {
            two_stage_.emplace(*path_.kernels, long_side_, short_side_,
                               TwoStageReduction<Real>::best_width(short_side_),
                               TwoStageReduction<Real>::best_kept(short_side_));
            left_size_ = stride_ * short_side_;
            if (!gram_) right_size_ = 0;
        }
    }

    void decompose(std::span<const Real> blocks) {
        const std::size_t entries = shape_.rows * shape_.columns;
        if (blocks.size() % entries != 0)
            throw precondition_error("{} numbers given for blocks of {} x {}", blocks.size(), shape_.rows,
                                     shape_.columns);
        const std::size_t count = blocks.size() / entries;
        count_ = 0;
        reserve(count);
        stop_point();
        for (std::size_t block = 0; block < count; ++block) reduce(blocks.data() + block * entries, block);
        for (std::size_t first = 0; first < count; first += kernels::value_lanes) {
            std::vector<Bidiagonal> some;
            for (std::size_t block = first; block < std::min(count, first + kernels::value_lanes); ++block)
                some.push_back(bidiagonal(block));
            // Small values are computed to full accuracy in double only: in float the reduction itself leaves an error
            // of 1e-7 of the largest value.
            stop_point();
            bidiagonal_.values(some, sizeof(Real) == 8, scaled_values_.data() + first * short_side_);
        }
        for (std::size_t block = 0; gram_ && block < count; ++block) {
            double* const values = scaled_values_.data() + block * short_side_;
            if (!by_gram_[block] || values[short_side_ - 1] > GramReduction::smallest_value * values[0]) continue;
            by_gram_[block] = false;
            bidiagonalise_again(block, block);
            bidiagonal_.values(std::vector<Bidiagonal>{bidiagonal(block)}, true, values);
        }
        for (std::size_t block = 0; block < count; ++block) {
            const double scale = std::ldexp(1.0, -exponents_[block]);
            for (std::size_t i = block * short_side_; i < (block + 1) * short_side_; ++i)
                values_[i] = scaled_values_[i] * scale;
        }
        count_ = count;
    }

    void leading_vectors(std::size_t block, std::size_t wanted, arma::Mat<Real>* left, arma::Mat<Real>* right) {
        check(block);
        if (wanted > short_side_) throw precondition_error("{} singular vectors requested of {}", wanted, short_side_);
        if (left != nullptr) left->set_size(shape_.rows, wanted);
        if (right != nullptr) right->set_size(shape_.columns, wanted);
        if (wanted == 0 || (left == nullptr && right == nullptr)) return;
        if (shape_.rows < shape_.columns) std::swap(left, right);
        const std::span<const double> values(scaled_values_.data() + block * short_side_, short_side_);
        const bool by_gram =
            gram_ && by_gram_[block] && values[wanted - 1] > GramReduction::smallest_for_vectors * values[0];
        // With the Gram matrix, left reflectors are stored for one block at a time. The other arrays of that block lie
        // behind those of the batch, at index `room_`; those of a single block that was reduced for its values stay.
        const std::size_t place = gram_ && !by_gram && kept_.size() > 0 ? room_ : block;
        if (place != block) bidiagonalise_again(block, place);
        bidiagonal_.vectors(bidiagonal(place), values, wanted);
        if (two_stage_ && !by_gram) return transform_back_in_two_stages(wanted, place, left, right);
        arma::Mat<Real> scores;
        if (by_gram && right == nullptr) {
            scores.set_size(short_side_, wanted);
            right = &scores;
        }
        if (right != nullptr) transform_back(Side::right, wanted, place, short_side_, *right);
        if (left == nullptr) return;
        if constexpr (std::is_same_v<Real, double>)
            if (by_gram)
                return gram_->left_vectors(kept_.data() + block * stride_ * short_side_, stride_, *right, *left);
        transform_back(Side::left, wanted, place, long_side_, *left);
    }

    void check(std::size_t block) const {
        if (block >= count_) throw precondition_error("block {} requested of a batch of {}", block, count_);
    }
    [[nodiscard]] std::size_t count() const { return count_; }
    [[nodiscard]] std::span<const double> values(std::size_t block) const {
        check(block);
        return {values_.data() + block * short_side_, short_side_};
    }
    [[nodiscard]] const char* name() const { return path_.name; }

private:
    void reserve(std::size_t count) {
        if (count <= room_) return;
        const std::size_t places = count + (gram_ ? 1 : 0);
        if (!gram_) left_ = AlignedArray<Real>(count * left_size_);
        right_ = AlignedArray<Real>((two_stage_ ? count : places) * right_size_);
        if (two_stage_ && !gram_) rest_ = AlignedArray<Real>(count * two_stage_->rest_size());
        left_scale_ = AlignedArray<Real>(places * short_side_);
        right_scale_ = AlignedArray<Real>(places * short_side_);
        diagonal_.resize(places * short_side_);
        off_diagonal_.resize(places * short_side_);
        kept_ = {};
        by_gram_.assign(count, false);
        scaled_values_.resize(count * short_side_);
        values_.resize(count * short_side_);
        exponents_.resize(count);
        room_ = count;
    }

    void reduce(const Real* block_entries, std::size_t block) {
        if (gram_ && kept_.size() == 0)
            kept_ = AlignedArray<Real>(stride_ * (room_ * short_side_ + kernels::reduction_strip - 1));
        Real* const entries = gram_ ? kept_.data() + block * stride_ * short_side_ : entries_of(block);
        const bool wide = shape_.rows < shape_.columns;
        if (wide) copy_transposed(block_entries, shape_.rows, shape_.rows, shape_.columns, entries, stride_);
        const double largest = path_.kernels->scale(wide ? entries : block_entries, wide ? stride_ : long_side_,
                                                    long_side_, short_side_, Real(1), entries, stride_);
        if (!std::isfinite(largest))
            throw input_error(
                "block {} of a batch holds NaN or infinity (no decomposition exists): clean the data first", block);
        exponents_[block] = scaling_exponent<Real>(largest);
        if (exponents_[block] != 0)
            path_.kernels->scale(entries, stride_, long_side_, short_side_,
                                 static_cast<Real>(std::ldexp(1.0, exponents_[block])), entries, stride_);
        stop_point();
        if (!gram_) return bidiagonalise(block);
        if constexpr (std::is_same_v<Real, double>)
            by_gram_[block] = gram_->reduce(
                entries, stride_, right_.data() + block * right_size_, right_scale_.data() + block * short_side_,
                diagonal_.data() + block * short_side_, off_diagonal_.data() + block * short_side_);
        if (!by_gram_[block]) bidiagonalise_again(block, block);
    }

    /// Where a block lies while it is reduced: with two stages, where its reflectors are to be. Blocks that go through
    /// their Gram matrix seldom need this memory.
    [[nodiscard]] Real* entries_of(std::size_t place) {
        if (left_.size() == 0) left_ = AlignedArray<Real>(left_size_);
        if (two_stage_ && rest_.size() == 0) rest_ = AlignedArray<Real>(two_stage_->rest_size());
        if (two_stage_) return left_reflectors(place);
        if (entries_.size() == 0) entries_ = AlignedArray<Real>(stride_ * (short_side_ + kernels::reduction_strip - 1));
        return entries_.data();
    }
    /// Reduces the block that lies there and stores the result at index `place`.
    void bidiagonalise(std::size_t place) {
        double* const diagonal = diagonal_.data() + place * short_side_;
        double* const off_diagonal = off_diagonal_.data() + place * short_side_;
        if (two_stage_) {
            ThreadTeam team(useful_threads());
            two_stage_->reduce(in_stages(place), diagonal, off_diagonal, team);
        } else
            path_.kernels->bidiagonalise({long_side_, short_side_, entries_.data(), stride_, left_reflectors(place),
                                          right_.data() + place * right_size_, left_scale_.data() + place * short_side_,
                                          right_scale_.data() + place * short_side_, diagonal, off_diagonal,
                                          row_work_.data(), column_work_.data()});
    }
    /// Parts have at least 96 rows or columns, and threads beyond their number would only take up memory.
    [[nodiscard]] std::size_t useful_threads() const { return std::min(thread_count(threads_), short_side_ / 100); }
    /// With two stages these are the reflectors of the first stage of both sides.
    [[nodiscard]] Real* left_reflectors(std::size_t place) { return left_.data() + (gram_ ? 0 : place) * left_size_; }
    [[nodiscard]] typename TwoStageReduction<Real>::Reduced in_stages(std::size_t place) {
        return {left_reflectors(place), stride_, rest_.data() + (gram_ ? 0 : place) * two_stage_->rest_size()};
    }
    /// Reduces a block again, from its saved copy, where its Gram matrix is not accurate enough. The copy of a single
    /// block whose values need this is not needed any more, and large: the reduction takes its memory.
    void bidiagonalise_again(std::size_t block, std::size_t place) {
        if (room_ == 1 && !by_gram_[block]) {
            (two_stage_ ? left_ : entries_) = std::move(kept_);
            kept_ = {};
            (void)entries_of(place);
        } else {
            const std::size_t size = stride_ * short_side_;
            std::copy_n(kept_.data() + block * size, size, entries_of(place));
        }
        bidiagonalise(place);
    }

    [[nodiscard]] Bidiagonal bidiagonal(std::size_t block) const {
        return {{diagonal_.data() + block * short_side_, short_side_},
                {off_diagonal_.data() + block * short_side_, short_side_ - 1}};
    }

    using Side = typename TwoStageReduction<Real>::Side;

    /// Reads vectors of the bidiagonal matrix from `first` on and puts zeros behind those of the long side.
    void read_vectors(Side side, std::size_t first, std::size_t length, Real* vectors) const {
        if (side == Side::left)
            bidiagonal_.left(first, vectors);
        else
            bidiagonal_.right(first, vectors);
        std::fill(vectors + short_side_ * kernels::applied_lanes, vectors + length * kernels::applied_lanes, Real(0));
    }
    /// Transforms vectors of the bidiagonal matrix into those of the block.
    void transform_back(Side side, std::size_t wanted, std::size_t place, std::size_t length, arma::Mat<Real>& to) {
        constexpr std::size_t batch_size = kernels::applied_lanes;
        if (vectors_.size() == 0) vectors_ = AlignedArray<Real>(batch_size * long_side_);
        Real* const vectors = vectors_.data();
        for (std::size_t first = 0; first < wanted; first += batch_size) {
            stop_point();
            const std::size_t some = std::min(batch_size, wanted - first);
            read_vectors(side, first, length, vectors);
            if (side == Side::left)
                path_.kernels->apply_reflectors(left_reflectors(place), left_scale_.data() + place * short_side_,
                                                short_side_, length, vectors, some);
            else
                path_.kernels->apply_reflectors(right_.data() + place * right_size_,
                                                right_scale_.data() + place * short_side_, short_side_ - 1, length,
                                                vectors, some);
            copy_transposed(vectors, batch_size, some, length, to.colptr(first), length);
        }
    }
    /// The same for vectors of both sides, of which a null one is not wanted, in groups that threads share.
    void transform_back_in_two_stages(std::size_t wanted, std::size_t place, arma::Mat<Real>* left,
                                      arma::Mat<Real>* right) {
        constexpr std::size_t batch_size = kernels::applied_lanes;
        const std::size_t groups = (wanted + batch_size - 1) / batch_size;
        const bool many = wanted > TwoStageReduction<Real>::many;
        const auto block = in_stages(place);
        ThreadTeam team(useful_threads());
        two_stage_->prepare_vectors(block, team);
        team.for_each(2 * groups, [&](std::size_t i) {
            stop_point();
            const Side side = i < groups ? Side::left : Side::right;
            arma::Mat<Real>* const to = side == Side::left ? left : right;
            if (to == nullptr) return;
            const std::size_t length = side == Side::left ? long_side_ : short_side_;
            const std::size_t first = i % groups * batch_size;
            const std::size_t some = std::min(batch_size, wanted - first);
            AlignedArray<Real> vectors(batch_size * length);
            read_vectors(side, first, length, vectors.data());
            if (many)
                two_stage_->transform_to_band(side, block, vectors.data(), some);
            else
                two_stage_->transform(side, block, vectors.data(), some);
            copy_transposed(vectors.data(), batch_size, some, length, to->colptr(first), length);
        });
        two_stage_->forget_vectors();
        if (!many) return;
        if (left != nullptr)
            two_stage_->transform_from_band(Side::left, block, left->memptr(), long_side_, wanted, team);
        if (right != nullptr)
            two_stage_->transform_from_band(Side::right, block, right->memptr(), short_side_, wanted, team);
    }

    std::size_t threads_;
    Shape shape_;
    std::size_t long_side_, short_side_;
    kernels::Path<Real> path_;
    std::size_t stride_;
    std::size_t left_size_, right_size_;  ///< sizes of the packed reflectors of a block
    std::size_t room_ = 0;
    std::size_t count_ = 0;
    AlignedArray<Real> left_, right_;  ///< reflectors, one block after the other
    AlignedArray<Real> rest_;          ///< what else is left of blocks by the reduction in two stages
    AlignedArray<Real> left_scale_, right_scale_;
    AlignedArray<Real> entries_;  ///< entries of the block that is being reduced
    std::optional<TwoStageReduction<Real>> two_stage_;
    std::optional<GramReduction> gram_;
    AlignedArray<Real> kept_;  ///< scaled blocks, from which Gram matrices and left vectors are computed
    std::vector<bool> by_gram_;
    AlignedArray<Real> row_work_, column_work_, vectors_;
    std::vector<double> diagonal_, off_diagonal_;
    std::vector<int> exponents_;
    std::vector<double> scaled_values_, values_;
    BidiagonalSvd<Real> bidiagonal_;
};

template <class Real>
BatchDecomposition<Real>::BatchDecomposition(Shape shape, Instructions instructions, std::size_t threads)
    : work_(std::make_unique<Work>(shape, instructions, threads)) {}
template <class Real>
BatchDecomposition<Real>::~BatchDecomposition() = default;
template <class Real>
BatchDecomposition<Real>::BatchDecomposition(BatchDecomposition&&) noexcept = default;
template <class Real>
BatchDecomposition<Real>& BatchDecomposition<Real>::operator=(BatchDecomposition&&) noexcept = default;

template <class Real>
void BatchDecomposition<Real>::decompose(std::span<const Real> blocks) {
    work_->decompose(blocks);
}
template <class Real>
std::size_t BatchDecomposition<Real>::count() const {
    return work_->count();
}
template <class Real>
std::span<const double> BatchDecomposition<Real>::singular_values(std::size_t block) const {
    return work_->values(block);
}
template <class Real>
void BatchDecomposition<Real>::leading_vectors(std::size_t block, std::size_t wanted, arma::Mat<Real>* left,
                                               arma::Mat<Real>* right) {
    work_->leading_vectors(block, wanted, left, right);
}
template <class Real>
const char* BatchDecomposition<Real>::instructions() const {
    return work_->name();
}

template class BatchDecomposition<float>;
template class BatchDecomposition<double>;

}  // namespace spiked::estimators
