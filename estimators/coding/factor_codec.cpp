#include "estimators/coding/factor_codec.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/runtime/error.hpp"
#include "core/text/name_options.hpp"
#include "estimators/coding/fp16_entries.hpp"
#include "estimators/coding/scalar_quantizer.hpp"

namespace spiked::estimators {
namespace {

constexpr unsigned rank_bits = 16;

double scale_of(const arma::vec& vector) { return std::sqrt(static_cast<double>(vector.n_elem)); }

/// Lloyd's iteration, started at the given codebook, on the entries of all columns at unit variance. The levels are
/// rounded to fp16.
theory::Codebook fitted(const arma::mat& vectors, theory::Codebook codebook) {
    std::vector<double> entries(vectors.begin(), vectors.end());
    const double scale = std::sqrt(static_cast<double>(vectors.n_rows));
    for (double& entry : entries) entry *= scale;
    const std::size_t bins = codebook.levels.size();
    double before = std::numeric_limits<double>::infinity();
    for (int round = 0; round < 100; ++round) {
        std::vector<double> sums(bins, 0.0);
        std::vector<double> counts(bins, 0.0);
        double error = 0.0;
        for (const double entry : entries) {
            const std::uint64_t bin = cell_of(entry, codebook);
            error += std::pow(entry - codebook.levels[bin], 2);
            sums[bin] += entry;
            counts[bin] += 1.0;
        }
        if (error >= before * (1.0 - 1e-6)) break;
        before = error;
        for (std::size_t c = 0; c < bins; ++c)
            if (counts[c] > 0.0) codebook.levels[c] = sums[c] / counts[c];
        std::sort(codebook.levels.begin(), codebook.levels.end());
        for (std::size_t c = 0; c + 1 < bins; ++c)
            codebook.thresholds[c] = 0.5 * (codebook.levels[c] + codebook.levels[c + 1]);
    }
    for (double& level : codebook.levels) level = rounded_to_half(level, "level of a factor");
    return codebook;
}

void write_levels(BitWriter& writer, const theory::Codebook& codebook) {
    for (const double level : codebook.levels) write_half(writer, Item::codebooks, level, "level of a factor");
}

void read_levels(BitReader& reader, theory::Codebook& codebook) {
    for (double& level : codebook.levels) level = read_half(reader);
}

void write_vector(BitWriter& writer, const arma::vec& vector, const theory::Codebook* codebook) {
    const double scale = scale_of(vector);
    for (const double entry : vector)
        if (codebook != nullptr)
            writer.write(Item::factor_indices, cell_of(entry * scale, *codebook),
                         static_cast<unsigned>(codebook->bits));
        else
            write_half(writer, Item::factor_indices, entry, "entry of a factor");
}

arma::vec read_vector(BitReader& reader, std::size_t length, const theory::Codebook* codebook) {
    arma::vec vector(length);
    for (double& entry : vector)
        entry = codebook != nullptr ? codebook->levels[reader.read(static_cast<unsigned>(codebook->bits))]
                                    : read_half(reader);
    if (codebook != nullptr) vector /= std::sqrt(static_cast<double>(length));
    return vector;
}

}  // namespace

FactorCodebook factor_codebook(std::string_view name) { return enum_named<FactorCodebook>(name, "factor codebook"); }
std::string_view name_of(FactorCodebook codebook) { return enum_name(codebook); }

FactorCodec::FactorCodec(const FactorOptions& options)
    : format_(options.norm),
      underflow_(options.underflow),
      kind_(options.codebook),
      normal_(theory::lloyd_max_normal(static_cast<int>(options.bits))) {}

unsigned FactorCodec::entry_bits() const {
    return kind_ == FactorCodebook::fp16 ? 16 : static_cast<unsigned>(normal_.bits);
}

void FactorCodec::write(BitWriter& writer, const LowRank& signal) const {
    const std::size_t rank = signal.values.n_elem;
    if (rank >> rank_bits != 0)
        throw input_error("a signal of rank {} cannot be stored (at most {}): choose an estimator with a smaller rank",
                          rank, (1U << rank_bits) - 1);
    writer.write(Item::ranks, rank, rank_bits);
    if (rank == 0) return writer.align();
    write_numbers(writer, Item::singular_values, std::vector<double>(signal.values.begin(), signal.values.end()),
                  format_, "singular value", underflow_);
    theory::Codebook left = normal_;
    theory::Codebook right = normal_;
    if (kind_ == FactorCodebook::lloyd) {
        left = fitted(signal.left, normal_);
        right = fitted(signal.right, normal_);
        write_levels(writer, left);
        write_levels(writer, right);
    }
    const bool coded = kind_ != FactorCodebook::fp16;
    for (std::size_t i = 0; i < rank; ++i) {
        write_vector(writer, signal.left.col(i), coded ? &left : nullptr);
        write_vector(writer, signal.right.col(i), coded ? &right : nullptr);
    }
    writer.align();
}

FactorCodec::ReadFactors FactorCodec::read_factors(std::span<const std::uint8_t> bytes, std::size_t rows,
                                                   std::size_t columns) const {
    BitReader reader(bytes);
    std::vector<double> values(reader.read(rank_bits));
    if (values.size() > std::min(rows, columns))
        throw input_error("a coded block has rank {} for {} x {}: the data is damaged", values.size(), rows, columns);
    read_numbers(reader, values, format_);
    theory::Codebook left = normal_;
    theory::Codebook right = normal_;
    if (kind_ == FactorCodebook::lloyd && !values.empty()) {
        read_levels(reader, left);
        read_levels(reader, right);
    }
    const bool coded = kind_ != FactorCodebook::fp16;
    LowRank signal{arma::mat(rows, values.size()), arma::vec(values), arma::mat(columns, values.size())};
    for (std::size_t i = 0; i < values.size(); ++i) {
        signal.left.col(i) = read_vector(reader, rows, coded ? &left : nullptr);
        signal.right.col(i) = read_vector(reader, columns, coded ? &right : nullptr);
    }
    return {std::move(signal), reader.bytes_read()};
}

FactorCodec::Read FactorCodec::read(std::span<const std::uint8_t> bytes, std::size_t rows, std::size_t columns) const {
    const auto [signal, read] = read_factors(bytes, rows, columns);
    arma::mat low_rank(rows, columns);
    for (std::size_t i = 0; i < signal.values.n_elem; ++i) {
        const arma::vec u = signal.left.col(i);
        const arma::vec v = signal.right.col(i);
        low_rank += signal.values(i) * u * v.t();
    }
    return {std::move(low_rank), read};
}

}  // namespace spiked::estimators
