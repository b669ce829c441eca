#include "estimators/compressor.hpp"

#include <cmath>

#include "estimators/byte_stream.hpp"
#include "estimators/scalar_quantizer.hpp"
#include "theory/base/names.hpp"

namespace spiked::estimators {
namespace {

constexpr unsigned rank_bits = 16;

/// Entries of a unit vector of length m, times sqrt(m), are close to N(0, 1): one fixed codebook serves every vector.
void write_vector(BitWriter& writer, const arma::vec& vector, const theory::Codebook& codebook) {
    const double unit = std::sqrt(static_cast<double>(vector.n_elem));
    for (const double entry : vector)
        writer.write(Item::factor_indices, cell_of(entry * unit, codebook), static_cast<unsigned>(codebook.bits));
}

arma::vec read_vector(BitReader& reader, std::size_t length, const theory::Codebook& codebook) {
    arma::vec vector(length);
    for (double& entry : vector) entry = codebook.levels[reader.read(static_cast<unsigned>(codebook.bits))];
    return vector / std::sqrt(static_cast<double>(length));
}

struct LowRankPart {
    arma::mat matrix;
    std::size_t bytes;  ///< that it took
};

LowRankPart decode_factors(std::span<const std::uint8_t> bytes, std::size_t rows, std::size_t columns,
                           NumberFormat format, const theory::Codebook& codebook) {
    BitReader reader(bytes);
    arma::mat low_rank(rows, columns);
    std::vector<double> values(reader.read(rank_bits));
    read_numbers(reader, values, format);
    for (const double value : values) {
        const arma::vec left = read_vector(reader, rows, codebook);
        const arma::vec right = read_vector(reader, columns, codebook);
        low_rank += value * left * right.t();
    }
    return {std::move(low_rank), reader.bytes_read()};
}

}  // namespace

const std::map<std::string, std::string>& method_aliases() {
    static const std::map<std::string, std::string> aliases = {{"eoptshrinkq-mse", "eoptshrink+tq-mse"},
                                                               {"eoptshrinkq-prod", "eoptshrink+tq-prod"}};
    return aliases;
}

Method parse_method(std::string_view text) {
    Method method;
    method.text = text;
    const auto alias = method_aliases().find(method.text);
    const std::string resolved = alias == method_aliases().end() ? method.text : alias->second;
    const std::size_t plus = resolved.rfind('+');
    method.quantizer = plus == std::string::npos ? resolved : resolved.substr(plus + 1);
    if (plus != std::string::npos) method.spectral = spectral_estimator(resolved.substr(0, plus));

    std::vector<std::string> legal;
    for (const auto& entry : row_quantizers()) legal.push_back(entry.name);
    if (std::find(legal.begin(), legal.end(), parse_name(method.quantizer).name) == legal.end()) {
        for (const auto& [name, meaning] : method_aliases()) legal.push_back(name);
        if (plus == std::string::npos)
            for (const auto& entry : spectral_estimators()) {
                if (parse_name(method.quantizer).name == entry.name)
                    throw usage_error("\"{}\" only estimates (a method must also quantize): write {}+tq-mse", text,
                                      text);
                legal.push_back(entry.name + "+tq-mse");
            }
        throw usage_error("unknown method \"{}\"{}", text, suggestion(method.quantizer, legal));
    }
    return method;
}

Compressor::Compressor(const Method& method, std::size_t dimension, unsigned bits, const QuantizerOptions& options)
    : spectral_(method.spectral),
      quantizer_(row_quantizer(method.quantizer, dimension, bits, options)),
      dimension_(dimension),
      bits_(bits),
      options_(options),
      factor_codebook_(theory::lloyd_max_normal(static_cast<int>(options.factor_bits))) {}

Compressor::Result Compressor::encode(AnalysedBlock& analysed) const {
    const arma::mat& block = analysed.block();
    if (!spectral_) return {quantizer_.encode(block), 0};

    const Shrinkage shrinkage = spectral_->estimate(analysed.singular_values(), analysed.shape());
    const SingularVectors vectors = analysed.vectors(shrinkage.rank);
    BitWriter writer;
    writer.write(Item::ranks, shrinkage.rank, rank_bits);
    write_numbers(writer, Item::singular_values, shrinkage.shrunk, options_.norm, "singular value");
    for (std::size_t i = 0; i < shrinkage.rank; ++i) {
        write_vector(writer, vectors.left.col(i), factor_codebook_);
        write_vector(writer, vectors.right.col(i), factor_codebook_);
    }
    writer.align();
    const LowRankPart stored =
        decode_factors(writer.bytes(), block.n_rows, block.n_cols, options_.norm, factor_codebook_);

    const Encoded residual = quantizer_.encode(block - stored.matrix);
    Result result{{{}, writer.ledger()}, shrinkage.rank};
    result.encoded.bytes = writer.take_bytes();
    result.encoded.bytes.insert(result.encoded.bytes.end(), residual.bytes.begin(), residual.bytes.end());
    result.encoded.ledger += residual.ledger;
    return result;
}

arma::mat Compressor::decode(std::span<const std::uint8_t> bytes, std::size_t rows) const {
    if (!spectral_) return quantizer_.decode(bytes, rows);
    const LowRankPart stored = decode_factors(bytes, rows, dimension_, options_.norm, factor_codebook_);
    return stored.matrix + quantizer_.decode(bytes.subspan(stored.bytes), rows);
}

double Compressor::paper_bits(std::size_t rank, std::size_t rows) const {
    const double n = static_cast<double>(rows);
    const double d = static_cast<double>(dimension_);
    return bits_ + static_cast<double>(rank) * (n + d) * options_.factor_bits / (n * d);
}

}  // namespace spiked::estimators
