#include "estimators/caches/cache_parts.hpp"

#include <algorithm>
#include <memory>

#include "core/runtime/error.hpp"

namespace spiked::estimators {

void write_tokens(BitWriter& writer, Item item, const arma::mat& rows) {
    write_fp16(writer, item, {rows.memptr(), rows.n_elem}, "entry of a token", scale_data, Underflow::allowed);
}

arma::mat read_tokens(BitReader& reader, std::size_t rows, std::size_t columns) {
    arma::mat block(rows, columns);
    for (double& entry : block) entry = read_half(reader);
    return block;
}

arma::mat in_fp16(arma::mat numbers) {
    numbers.transform([](double entry) { return rounded_to_half(entry, "entry of a calibrated basis"); });
    return numbers;
}

std::size_t cache_rank(const NameOptions& own, std::size_t fallback, std::size_t most) {
    const std::size_t rank = own.whole("rank").value_or(std::max<std::size_t>(1, std::min(fallback, most)));
    if (rank > most)
        throw usage_error(
            "\"{}\": rank {} is not possible (joined heads and tokens to calibrate or code allow 1 to {}): choose "
            "another rank or calibrate on more tokens",
            own.text(), rank, most);
    return rank;
}

RowQuantizer with_kept_tokens(std::size_t sinks, std::size_t window, std::size_t channels, RowQuantizer inner) {
    struct Parts {
        std::size_t first, coded, last;
    };
    const auto parts_of = [=](std::size_t tokens) -> Parts {
        const std::size_t first = std::min(sinks, tokens);
        const std::size_t last = std::min(window, tokens - first);
        return {first, tokens - first - last, last};
    };
    const auto between = std::make_shared<const RowQuantizer>(std::move(inner));
    return in_double(
        between->name,
        [=](const arma::mat& rows) {
            require_length(rows.n_cols, channels);
            if (!rows.is_finite())
                throw input_error("a token holds NaN or infinity (it cannot be projected): clean the data first");
            const Parts parts = parts_of(rows.n_rows);
            BitWriter writer;
            if (parts.first > 0) write_tokens(writer, Item::residual_window, rows.head_rows(parts.first));
            if (parts.last > 0) write_tokens(writer, Item::residual_window, rows.tail_rows(parts.last));
            Encoded encoded = finished(writer);
            if (parts.coded == 0) return encoded;
            encoded += between->encode(arma::mat(rows.rows(parts.first, parts.first + parts.coded - 1)));
            return encoded;
        },
        [=](std::span<const std::uint8_t> bytes, std::size_t tokens) {
            const Parts parts = parts_of(tokens);
            BitReader reader(bytes);
            const arma::mat first = read_tokens(reader, parts.first, channels);
            const arma::mat last = read_tokens(reader, parts.last, channels);
            if (parts.coded == 0) {
                reader.require_end();
                return arma::mat(arma::join_cols(first, last));
            }
            return arma::mat(
                arma::join_cols(first, between->decode(bytes.subspan(reader.bytes_read()), parts.coded), last));
        });
}

QuantizerEntry rate_entry(RegistryEntry entry, std::string bits_mean) {
    QuantizerEntry of_rate{std::move(entry), std::move(bits_mean)};
    of_rate.fractions = true;
    return of_rate;
}

void check_rate(const CacheMethod& method, double bits) {
    if (!(bits >= 0.25 && bits <= 8.0))
        throw usage_error("\"{}\": {} bits are not possible (a mean rate is 0.25 to 8): choose --bits 0.25 to 8",
                          method.own.text(), bits);
}

}  // namespace spiked::estimators
