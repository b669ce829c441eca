#pragma once
#include <armadillo>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace spiked::estimators {

/// Tokens of a coded block; the last block of a sequence may have fewer.
inline constexpr std::size_t causal_block = 128;

/// The most columns that files and other programs may ask for: a basis takes time with their cube.
inline constexpr std::size_t most_causal_columns = 2048;

/// The token ids of rows. A decoder knows them, because they are the text.
using TokenIds = std::span<const std::int32_t>;

/// Parts of causal transform coding. Encoder and decoder must have the same.
struct CausalOptions {
    bool sink = true;       ///< row 0 is stored in fp16; a copy of row 1 is coded in its place
    bool basis = true;      ///< channels are eigenvectors of past rows; otherwise columns
    bool predict = true;    ///< first-order prediction of each channel
    bool dependent = true;  ///< 8-state dependent quantization; otherwise scalar
    bool adapt = true;      ///< variances and counts follow what was decoded
    bool same = false;      ///< prediction by the last row of the same token id; needs `live`, and the ids of all rows
    bool live = false;      ///< the basis never freezes, and blocks decode only in order
    std::size_t freeze = 256;  ///< tokens after which the basis is final: a multiple of 128
    std::size_t update = 32;   ///< tokens between two bases, more often before 2 updates: least_causal_update or more
    double lambda = 0.3;       ///< weight of bits in the encoder's search (.12 is better without `dependent`)
};
/// The settings for all keys and values of a layer (m = 2 heads d); the default ones are for one head (m = d).
[[nodiscard]] inline CausalOptions causal_layer() { return {.freeze = 512, .update = 64}; }

/// The fewest tokens between two bases of m columns: m^2 / 4096, rounded up to a multiple of 8 and at least 8. With
/// fewer, the time for bases would grow faster than the number of entries: one of 1024 columns takes half a second.
[[nodiscard]] std::size_t least_causal_update(std::size_t columns);

/// The columns of a matrix of m columns, and the scale that each is multiplied by before it is coded.
struct CausalShape {
    std::size_t columns = 0;                ///< m
    std::vector<std::uint16_t> scale_of{};  ///< of each column, the number of its scale; empty for no scales
    [[nodiscard]] std::size_t scales() const;
};

/// Throws usage_error for options that are out of range for this shape.
void check_causal(const CausalShape& shape, const CausalOptions& options);

/// What a sequence needs beside its blocks, chosen by the encoder and stored in 2 + scales bytes.
struct CausalSettings {
    /// The quantizer's step is 2^(step / 256), -16384 <= step <= 16384.
    int step = 0;
    /// Sixteenths of an octave: a column is multiplied by 2^(exponent / 16).
    std::vector<std::int8_t> exponents{};
};

struct CausalCode {
    std::vector<std::uint8_t> header;               ///< step, exponents, and row 0 in fp16 if it is a sink
    std::vector<std::vector<std::uint8_t>> blocks;  ///< of 128 tokens each, but for the last
    std::size_t tokens = 0;
    /// Header, blocks and 32 bits for the length of each block.
    [[nodiscard]] std::size_t stored_bits() const;
    /// CausalSettings::step in the header.
    [[nodiscard]] int step() const;
};

/// What encoder and decoder share (causal_codec.cpp).
class CausalState;

/// Causal transform coding of the rows (tokens) of a matrix: everything that shapes the code of a row (mean, basis,
/// variances, predictions, counts) is computed from rows that the decoder already has, so that nothing is calibrated
/// and no basis is stored. The research note on causal transform coding, builds 1 and 2.
///
/// Rows are projected on eigenvectors of the covariance of past decoded rows, predicted by the row before, quantized
/// (dependent_quantizer.hpp) with one step for all channels, which is reverse water-filling, and range coded with
/// adaptive counts (index_model.hpp). After `freeze` tokens the basis is final, and every later block starts from the
/// same state, so that it can be decoded alone once the first blocks have been. The same bytes and the same decoded
/// numbers on every machine, because all arithmetic is integer, or double in a fixed order without library functions.
/// With `same`, a row whose token id has occurred before is also predicted by the last row of that id (same_token.hpp).
///
/// Cost: 2 m^2 multiplications a row to encode, m^2 to decode, 2 m^2 more before the freeze, and each basis about 8
/// m^3. On one core with AVX2, after the freeze and at 2.5 bits, a row of 64 takes 7 us to encode and 3.3 us to decode,
/// one of 384 takes 70 and 36 us; before it, 24 and 19 us, 1.1 and 1.1 ms. Memory: about 6 m^2 doubles, and with `same`
/// all decoded rows.
class CausalEncoder {
public:
    /// `first_row` is row 0 where it is a sink. Throws usage_error for options or settings that are out of range and
    /// input_error for a sink beyond fp16.
    CausalEncoder(const CausalShape& shape, const CausalOptions& options, const CausalSettings& settings,
                  const arma::rowvec& first_row);
    ~CausalEncoder();
    CausalEncoder(CausalEncoder&&) noexcept;
    /// A copy goes on from the same rows, apart from the original. Cost: its memory.
    CausalEncoder(const CausalEncoder& other);

    [[nodiscard]] const std::vector<std::uint8_t>& header() const { return header_; }
    /// The next 128 rows, or fewer at the end, and with `same` their token ids. Throws input_error for entries that are
    /// not finite, and usage_error for entries beyond 2^40 steps.
    [[nodiscard]] std::vector<std::uint8_t> encode(const arma::mat& rows, TokenIds ids = {});
    /// The same with a step of their own, which a decoder must be told: of at most 10 that are tried, the one whose
    /// bytes come nearest to `bits` per entry; the search ends within `tolerance`. Throws input_error also for rows
    /// whose root mean square is not 0 and not 2^-40 to 2^50.
    [[nodiscard]] std::vector<std::uint8_t> encode_at(double bits, const arma::mat& rows, double tolerance = 0.005,
                                                      TokenIds ids = {});
    [[nodiscard]] int step() const { return step_; }
    /// The rows of the last block as a decoder has them.
    [[nodiscard]] const arma::mat& decoded() const { return decoded_; }

private:
    std::unique_ptr<CausalState> state_;
    int step_ = 0;
    std::vector<std::uint8_t> header_;
    arma::mat decoded_;
};

class CausalDecoder {
public:
    /// Throws input_error for a damaged header.
    CausalDecoder(const CausalShape& shape, const CausalOptions& options, std::span<const std::uint8_t> header);
    ~CausalDecoder();
    CausalDecoder(CausalDecoder&&) noexcept;
    CausalDecoder(const CausalDecoder& other);

    /// The step of the blocks that follow, where it is not that of the header. Throws input_error out of range.
    void set_step(int step);
    /// The next block of the sequence. Damaged bytes give an input_error or other numbers.
    [[nodiscard]] arma::mat next(std::span<const std::uint8_t> bytes, std::size_t rows, TokenIds ids = {});
    /// Whether `frozen_block` can be called: the blocks up to the freeze have been decoded.
    [[nodiscard]] bool frozen() const;
    /// Any block after the freeze, in any order.
    [[nodiscard]] arma::mat frozen_block(std::span<const std::uint8_t> bytes, std::size_t rows) const;
    /// The memory of what it has learned: sums over rows, the basis, variances and counts.
    [[nodiscard]] std::size_t state_bytes() const;

private:
    std::unique_ptr<CausalState> state_;
};

/// All rows of a matrix.
[[nodiscard]] CausalCode encode_causal(const arma::mat& rows, const CausalShape& shape, const CausalOptions& options,
                                       const CausalSettings& settings, TokenIds ids = {});
[[nodiscard]] arma::mat decode_causal(const CausalCode& code, const CausalShape& shape, const CausalOptions& options,
                                      TokenIds ids = {});

/// The code whose stored bits an entry are nearest to `bits` among those tried, at most 10 steps; most matrices come
/// within `tolerance` after four. Of fewer than 128 rows, a part n / 128 of the header and the length is counted,
/// because all of it could exceed `bits`. settings.step is ignored. Throws input_error for entries that are not finite,
/// or whose root mean square is not 0 and not 2^-40 to 2^50.
[[nodiscard]] CausalCode encode_causal_at(double bits, const arma::mat& rows, const CausalShape& shape,
                                          const CausalOptions& options, CausalSettings settings,
                                          double tolerance = 0.01, TokenIds ids = {});

/// The step at which so many blocks that begin with `first`, of 128 rows, and go on with rows like it are expected to
/// take `bits` per entry of bytes; the last may be a part of a block. A later block is taken to need the mean of two
/// counts of `first`: coded again after itself, which knows its basis too well, and twice that of its second half,
/// which knows it too little. When coded again its token ids are others. settings.step is ignored. Throws as
/// encode_causal_at. Cost: up to 10 times that of 2.5 blocks, mostly 3 times.
[[nodiscard]] int expected_causal_step(double bits, double blocks, const arma::mat& first, const CausalShape& shape,
                                       const CausalOptions& options, CausalSettings settings, TokenIds ids = {});

}  // namespace spiked::estimators
