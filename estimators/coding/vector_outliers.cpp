#include "estimators/coding/vector_outliers.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "core/runtime/error.hpp"
#include "estimators/coding/fp16_entries.hpp"

namespace spiked::estimators {
namespace {

unsigned index_bits(std::size_t length) { return length < 2 ? 1U : static_cast<unsigned>(std::bit_width(length - 1)); }

}  // namespace

std::size_t VectorOutliers::count_per_end(double fraction, std::size_t length) {
    const auto count = static_cast<std::size_t>(std::lround(0.5 * fraction * static_cast<double>(length)));
    return std::min(count, length / 2);
}

VectorOutliers::VectorOutliers(const arma::mat& vectors, double fraction) : length_(vectors.n_rows) {
    const auto ends = static_cast<std::ptrdiff_t>(count_per_end(fraction, length_));
    for (std::size_t l = 0; l < vectors.n_cols; ++l) {
        std::vector<std::size_t> order(length_);
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::stable_sort(order.begin(), order.end(),
                         [&](std::size_t a, std::size_t b) { return vectors(a, l) < vectors(b, l); });
        auto& places = places_.emplace_back(order.begin(), order.begin() + ends);
        places.insert(places.end(), order.end() - ends, order.end());
        auto& values = values_.emplace_back();
        for (const std::size_t index : places) {
            values.push_back(vectors(index, l));
            largest_ = std::max(largest_, std::abs(values.back()));
        }
    }
}

void VectorOutliers::write(BitWriter& writer) const {
    for (std::size_t l = 0; l < places_.size(); ++l)
        for (std::size_t i = 0; i < places_[l].size(); ++i) {
            writer.write(Item::outliers, places_[l][i], index_bits(length_));
            write_half(writer, Item::outliers, values_[l][i], "outlier", outlier_advice);
        }
}

void VectorOutliers::read(BitReader& reader, double fraction, arma::mat& vectors) {
    const std::size_t count = 2 * count_per_end(fraction, vectors.n_rows);
    for (std::size_t l = 0; l < vectors.n_cols; ++l)
        for (std::size_t i = 0; i < count; ++i) {
            const std::uint64_t index = reader.read(index_bits(vectors.n_rows));
            if (index >= vectors.n_rows)
                throw input_error(
                    "a coded block has an outlier at index {} of a vector of length {}: the data is damaged", index,
                    vectors.n_rows);
            vectors(index, l) = read_half(reader);
        }
}

}  // namespace spiked::estimators
