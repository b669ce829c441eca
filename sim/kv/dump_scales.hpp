#pragma once
#include <armadillo>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/kv/dump_tensors.hpp"
#include "sim/kv/name_pattern.hpp"

namespace spiked::sim {

/// Scales (or zero points) of a part, each for a group of tokens and channels. The axes are those of the groups, with
/// steps of 0 where a scale does not vary.
struct GroupedPart {
    StoredPart part;
    std::size_t tokens = 1;  ///< of a group
    std::size_t channels = 1;
};

/// How the stored codes of a part become numbers: (code - zero point) scale.
struct PartScale {
    double scale = 1.0, zero_point = 0.0;  ///< where there is no tensor
    std::optional<GroupedPart> scales, zero_points;
    std::optional<DType> codes;  ///< what the stored bytes are, where it is not the type of their tensor
};

/// Makes numbers of codes: rows are those of one head of a part from `first_token` on. Throws input_error for scales
/// that are not positive and for zero points that are not finite; it names their tensor.
void apply_scale(const PartScale& scale, const TensorContainer& file, std::span<const std::size_t> block_table,
                 std::size_t head, std::size_t first_token, arma::mat& rows);

/// Whether a number can be a scale: positive and finite.
[[nodiscard]] bool is_usable_scale(double scale);

/// The scales (or the zero points) of the cache in a file: a number for all of it, or tensors of the file.
class ScaleTensors {
public:
    /// `text` is a number or a NamePattern, in which {layer}, {side} and {head} may be missing; `what` names it in
    /// messages. Throws input_error for a pattern that no tensor matches.
    ScaleTensors(const TensorContainer& file, const std::string& text, std::string what);

    [[nodiscard]] const std::optional<double>& number() const { return number_; }
    /// The tensors whose names match.
    [[nodiscard]] const std::vector<NamedPlace>& places() const { return places_; }
    /// The scale of slice number `slice` of a stored tensor, at this place in the cache: a number, or a part with the
    /// steps of the scale. A tensor of one number is a number; another has the axes of the stored tensor, each of its
    /// size or of size 1, or some of these axes, where their sizes tell which. An axis of tokens or channels may also
    /// have the number of their groups, which are of equal sizes. Throws input_error.
    struct Found {
        double number = 1.0;
        std::optional<GroupedPart> part;
    };
    [[nodiscard]] Found of(const StoredTensor& held, const CacheLayout& layout, const NamedPlace& place,
                           std::size_t slice, std::size_t head_dim, std::size_t batch);
    /// A sentence for each decision that `of` took.
    [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }

private:
    /// The slices of a scale's tensor, along the axes of the codes.
    struct Spread {
        std::vector<CacheSlice> slices;
        std::size_t tokens = 1, channels = 1;  ///< of a group
    };
    [[nodiscard]] Spread spread(const StoredTensor& scale, const StoredTensor& held, const CacheLayout& layout,
                                std::size_t head_dim, std::size_t batch);
    using Key = std::tuple<std::optional<std::size_t>, std::optional<Side>, std::optional<std::size_t>, std::size_t>;

    const TensorContainer& file_;
    std::string text_, what_;
    bool by_chunk_ = false;
    std::optional<double> number_;
    std::vector<NamedPlace> places_;
    std::map<Key, std::size_t> by_place_;
    std::map<std::pair<std::size_t, std::size_t>, Spread> spreads_;  ///< by both tensors' numbers
    std::vector<std::string> notes_;
};

/// Whether the type of a tensor is one of a cache.
[[nodiscard]] bool holds_numbers_or_codes(const StoredTensor& held);
/// The error of a tensor for which this is false, without the path of its file.
[[nodiscard]] std::string unread_type_text(const StoredTensor& held);

/// The scales and zero points that make numbers of the codes of a cache.
class CacheScales {
public:
    /// Texts of ScaleTensors, empty for none, and of a CodeType that tensors of U8 and I8 hold. `given`: the options,
    /// where the metadata have not completed them. Throws input_error for metadata that are none of these.
    CacheScales(const TensorContainer& file, const std::string& scale, const std::string& zero_point,
                const std::string& codes, const DumpOptions& given);

    /// The numbers of the tensors that hold scales and zero points, which are not part of the cache.
    [[nodiscard]] std::vector<std::size_t> tensors() const;
    /// The type of the numbers that a tensor holds once its codes are scaled. Throws input_error for integers without a
    /// scale, for U8 without a zero point or a CodeType, and for types that hold neither numbers nor codes.
    [[nodiscard]] DType number_type(const StoredTensor& held);
    /// As ScaleTensors::of; null for a tensor of numbers, and where no scale is given.
    [[nodiscard]] std::shared_ptr<const PartScale> of(const StoredTensor& held, const CacheLayout& layout,
                                                      const NamedPlace& place, std::size_t slice, std::size_t head_dim,
                                                      std::size_t batch);
    /// What was decided, once number_type has seen all tensors of the cache. Throws usage_error if an option gave a
    /// scale and no tensor holds codes, or a CodeType and no tensor holds bytes.
    [[nodiscard]] std::vector<std::string> notes() const;

private:
    /// The type of the codes in a tensor.
    [[nodiscard]] DType code_type(const StoredTensor& held) const;

    const TensorContainer& file_;
    std::optional<ScaleTensors> scales_, zero_points_;
    std::optional<DType> codes_;
    bool scale_given_ = false, codes_given_ = false;
    bool has_codes_ = false, has_bytes_ = false;
    bool has_plain_fp8_ = false;
};

}  // namespace spiked::sim
