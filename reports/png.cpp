#include "reports/png.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string_view>

namespace spiked::reports {
namespace {

using Bytes = std::vector<std::uint8_t>;

void append_word(Bytes& out, std::uint32_t value) {
    for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<std::uint8_t>(value >> shift));
}

std::uint32_t crc32(std::span<const std::uint8_t> bytes) {
    std::uint32_t crc = 0xFFFFFFFFU;
    for (const auto byte : bytes) {
        crc ^= byte;
        for (int bit = 0; bit < 8; ++bit) crc = crc & 1U ? crc >> 1 ^ 0xEDB88320U : crc >> 1;
    }
    return ~crc;
}

std::uint32_t adler32(std::span<const std::uint8_t> bytes) {
    std::uint32_t a = 1;
    std::uint32_t b = 0;
    for (const auto byte : bytes) {
        a = (a + byte) % 65521;
        b = (b + a) % 65521;
    }
    return b << 16 | a;
}

void append_chunk(Bytes& out, std::string_view type, const Bytes& data) {
    append_word(out, static_cast<std::uint32_t>(data.size()));
    const std::size_t start = out.size();
    out.insert(out.end(), type.begin(), type.end());
    out.insert(out.end(), data.begin(), data.end());
    append_word(out, crc32(std::span(out).subspan(start)));
}

/// A zlib stream (RFC 1950) of stored blocks.
Bytes stored(const Bytes& data) {
    Bytes out = {0x78, 0x01};
    for (std::size_t at = 0; at < data.size();) {
        const std::size_t length = std::min<std::size_t>(65535, data.size() - at);
        out.push_back(at + length == data.size() ? 1 : 0);
        for (const std::size_t value : {length, ~length})
            for (const int shift : {0, 8}) out.push_back(static_cast<std::uint8_t>(value >> shift));
        out.insert(out.end(), data.begin() + static_cast<std::ptrdiff_t>(at),
                   data.begin() + static_cast<std::ptrdiff_t>(at + length));
        at += length;
    }
    append_word(out, adler32(data));
    return out;
}

/// `pixels` index the palette, row by row.
Bytes palette_png(std::size_t width, std::size_t height, const Bytes& pixels, const Bytes& palette) {
    Bytes out = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
    Bytes header;
    append_word(header, static_cast<std::uint32_t>(width));
    append_word(header, static_cast<std::uint32_t>(height));
    header.insert(header.end(), {8, 3, 0, 0, 0});  // 8 bits, palette, no interlace
    append_chunk(out, "IHDR", header);
    append_chunk(out, "PLTE", palette);
    Bytes lines;
    lines.reserve((width + 1) * height);
    for (std::size_t row = 0; row < height; ++row) {
        lines.push_back(0);
        lines.insert(lines.end(), pixels.begin() + static_cast<std::ptrdiff_t>(row * width),
                     pixels.begin() + static_cast<std::ptrdiff_t>((row + 1) * width));
    }
    append_chunk(out, "IDAT", stored(lines));
    append_chunk(out, "IEND", {});
    return out;
}

Color between(std::span<const Color> anchors, double position) {
    const double at = std::clamp(position, 0.0, 1.0) * static_cast<double>(anchors.size() - 1);
    const auto left = std::min(static_cast<std::size_t>(at), anchors.size() - 2);
    const double share = at - static_cast<double>(left);
    const auto mix = [&](std::uint8_t a, std::uint8_t b) {
        return static_cast<std::uint8_t>(std::lround(a + share * (static_cast<double>(b) - static_cast<double>(a))));
    };
    const Color& a = anchors[left];
    const Color& b = anchors[left + 1];
    return {mix(a.red, b.red), mix(a.green, b.green), mix(a.blue, b.blue)};
}

constexpr std::size_t missing = 255;  // the palette's last colour; the scale has 255, zero in the middle

}  // namespace

Color diverging_color(double position) {
    static constexpr std::array<Color, 5> anchors = {
        {{0, 52, 96}, {60, 140, 200}, {247, 247, 247}, {230, 130, 60}, {122, 40, 0}}};
    return between(anchors, 0.5 + 0.5 * position);
}

Color sequential_color(double position) {
    static constexpr std::array<Color, 4> anchors = {{{238, 244, 250}, {158, 200, 225}, {49, 130, 189}, {8, 48, 107}}};
    return between(anchors, position);
}

std::vector<std::uint8_t> matrix_png(const arma::mat& matrix, double limit) {
    Bytes palette;
    for (int i = 0; i < 255; ++i) {
        const Color color = diverging_color((i - 127) / 127.0);
        palette.insert(palette.end(), {color.red, color.green, color.blue});
    }
    palette.insert(palette.end(), {128, 128, 128});
    Bytes pixels;
    pixels.reserve(matrix.n_elem);
    for (arma::uword row = 0; row < matrix.n_rows; ++row)
        for (arma::uword column = 0; column < matrix.n_cols; ++column) {
            const double value = limit > 0.0 ? matrix(row, column) / limit : matrix(row, column);
            pixels.push_back(std::isnan(value)
                                 ? static_cast<std::uint8_t>(missing)
                                 : static_cast<std::uint8_t>(127 + std::lround(127.0 * std::clamp(value, -1.0, 1.0))));
        }
    return palette_png(matrix.n_cols, matrix.n_rows, pixels, palette);
}

std::vector<std::uint8_t> scale_png(Color (*color)(double), double low, double high) {
    Bytes palette;
    Bytes pixels;
    for (int i = 0; i < 256; ++i) {
        const Color at = color(low + (high - low) * i / 255.0);
        palette.insert(palette.end(), {at.red, at.green, at.blue});
        pixels.push_back(static_cast<std::uint8_t>(i));
    }
    return palette_png(256, 1, pixels, palette);
}

arma::mat shrunk_to(const arma::mat& matrix, std::size_t largest) {
    const arma::uword rows = std::min<arma::uword>(matrix.n_rows, largest);
    const arma::uword columns = std::min<arma::uword>(matrix.n_cols, largest);
    if (rows == matrix.n_rows && columns == matrix.n_cols) return matrix;
    arma::mat out(rows, columns);
    for (arma::uword c = 0; c < columns; ++c)
        for (arma::uword r = 0; r < rows; ++r)
            out(r, c) = arma::mean(arma::vectorise(matrix.submat(r * matrix.n_rows / rows, c * matrix.n_cols / columns,
                                                                 (r + 1) * matrix.n_rows / rows - 1,
                                                                 (c + 1) * matrix.n_cols / columns - 1)));
    return out;
}

}  // namespace spiked::reports
