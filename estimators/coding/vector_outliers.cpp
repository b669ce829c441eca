#include "estimators/coding/vector_outliers.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "core/runtime/error.hpp"
#include "estimators/coding/fp16_entries.hpp"

namespace spiked::estimators {
namespace {

unsigned place_bits(std::size_t length) { return length < 2 ? 1U : static_cast<unsigned>(std::bit_width(length - 1)); }

}  // namespace

std::size_t VectorOutliers::at_an_end(double share, std::size_t length) {
    const auto count = static_cast<std::size_t>(std::lround(0.5 * share * static_cast<double>(length)));
    return std::min(count, length / 2);
}

VectorOutliers::VectorOutliers(const arma::mat& lines, double share) : length_(lines.n_rows) {
    const auto ends = static_cast<std::ptrdiff_t>(at_an_end(share, length_));
    for (std::size_t l = 0; l < lines.n_cols; ++l) {
        std::vector<std::size_t> order(length_);
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::stable_sort(order.begin(), order.end(),
                         [&](std::size_t a, std::size_t b) { return lines(a, l) < lines(b, l); });
        auto& places = places_.emplace_back(order.begin(), order.begin() + ends);
        places.insert(places.end(), order.end() - ends, order.end());
        auto& values = values_.emplace_back();
        for (const std::size_t place : places) {
            values.push_back(lines(place, l));
            largest_ = std::max(largest_, std::abs(values.back()));
        }
    }
}

void VectorOutliers::write(BitWriter& writer) const {
    for (std::size_t l = 0; l < places_.size(); ++l)
        for (std::size_t i = 0; i < places_[l].size(); ++i) {
            writer.write(Item::outliers, places_[l][i], place_bits(length_));
            write_half(writer, Item::outliers, values_[l][i], "outlier", outlier_advice);
        }
}

void VectorOutliers::read(BitReader& reader, double share, arma::mat& lines) {
    const std::size_t count = 2 * at_an_end(share, lines.n_rows);
    for (std::size_t l = 0; l < lines.n_cols; ++l)
        for (std::size_t i = 0; i < count; ++i) {
            const std::uint64_t place = reader.read(place_bits(lines.n_rows));
            if (place >= lines.n_rows)
                throw input_error("a coded block names entry {} of a line of {}: the data is damaged", place,
                                  lines.n_rows);
            lines(place, l) = read_half(reader);
        }
}

}  // namespace spiked::estimators
