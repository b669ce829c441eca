#include "estimators/compressors/golden_vectors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include "core/runtime/error.hpp"
#include "core/text/names.hpp"
#include "core/text/printable.hpp"
#include "estimators/compressors/compressor.hpp"
#include "estimators/quantizers/quantizer_table.hpp"
#include "estimators/rotations/row_rotation.hpp"
#include "sim/random/normal.hpp"

namespace spiked::estimators {
namespace {

using estimators::FactorCodebook;
using estimators::QuantizerOptions;
using estimators::RotationKind;

constexpr std::string_view schema = "spiked.golden/1";
constexpr std::string_view note =
    "Indices, codes and signs lie coordinate after coordinate, least significant bit first; numbers are little-endian. "
    "Other layouts are in docs/METHODS.md.";
constexpr double tolerance = 1e-9;  ///< relative to the largest number of a matrix

struct Input {
    std::string name;
    arma::mat rows;
};

arma::mat gaussian(std::size_t rows, std::size_t columns) {
    arma::mat matrix(columns, rows);
    stream::fill_normal(stream::Stream({}, "golden vectors", stream::Role::noise, 100 * rows + columns),
                        {matrix.memptr(), matrix.n_elem});
    return matrix.t();
}

std::vector<Input> inputs() {
    arma::mat one_hot(4, 8);
    for (std::size_t t = 0; t < 4; ++t) one_hot(t, 2 * t) = t % 2 == 0 ? 1.0 : -2.0;
    arma::mat zero_row = gaussian(3, 8);
    zero_row.row(1).zeros();
    return {{"gaussian-4x8", gaussian(4, 8)},
            {"gaussian-3x16", gaussian(3, 16)},
            {"one-hot-4x8", one_hot},
            {"zero-row-3x8", zero_row},
            {"constant-2x8", arma::mat(2, 8, arma::fill::value(0.75))}};
}

struct Case {
    MethodSpec method;
    double bits;
    QuantizerOptions options;
    std::string suffix;  ///< suffix of the name: the options that are not the defaults
};

QuantizerOptions defaults() {
    QuantizerOptions options;
    options.seed = stream::StudySeed::parse("0x5eed");
    return options;
}

std::vector<Case> cases() {
    std::vector<Case> all;
    const auto add = [&](const std::string& method, double bits, const std::string& suffix, auto change) {
        QuantizerOptions options = defaults();
        change(options);
        all.push_back({parse_method(method), bits, options, suffix});
    };
    const auto nothing = [](QuantizerOptions&) {};
    const auto bare = [](QuantizerOptions& o) {
        o.rotation = RotationKind::identity;
        o.codebook = estimators::CodebookKind::normal;
        o.norm = estimators::NumberFormat::fp64;
    };
    for (const auto& quantizer : estimators::row_quantizers())
        for (const unsigned bits : quantizer.widths) {
            if (bits > 4 && quantizer.widths.front() < 4) break;
            // The table for a state of 12 bits is too long.
            const bool shorter = has_option(quantizer.options, "state") && bits != 2;
            const std::string name = quantizer.name + (shorter ? ":state=6" : "");
            add(name, bits, "", nothing);
            add(name, bits, " identity normal fp64", bare);
        }
    for (const auto kind : {RotationKind::rht1, RotationKind::rht2, RotationKind::fht_kac})
        add("tq-mse", 3, fmt::format(" {}", estimators::name_of(kind)),
            [&](QuantizerOptions& o) { o.rotation = kind; });
    for (const auto format :
         {estimators::NumberFormat::bf16, estimators::NumberFormat::fp32, estimators::NumberFormat::log8})
        add("tq-mse", 3, fmt::format(" {}", estimators::name_of(format)),
            [&](QuantizerOptions& o) { o.norm = format; });
    for (const unsigned bits : {5U, 6U, 7U, 8U}) add("tq-mse", bits, "", nothing);
    add("tq-mse", 2, " rotation 7", [](QuantizerOptions& o) { o.rotation_index = 7; });
    for (const char* method : {"tq-prod:projection=orthogonal", "qjl:projection=orthogonal"})
        add(method, 2, "", nothing);
    for (const char* method :
         {"kivi:axis=key:group=2", "kivi:axis=value:group=3", "kivi:axis=value:residual=1", "kivi:axis=key:residual=2"})
        add(method, 2, "", nothing);
    for (const char* method : {"kvquant:axis=key:outliers=0.3", "gear:axis=key:rank=1:outliers=0.3", "pq:length=4",
                               "rabitq:scale=mmse", "tcq:scale=unbiased:state=6", "ecsq:scale=unbiased"})
        add(method, 2, "", nothing);
    add("mx:group=3:scale=e4m3", 4, "", nothing);
    add("ecsq", 2.5, "", nothing);
    for (const auto codebook : {FactorCodebook::normal, FactorCodebook::lloyd, FactorCodebook::fp16})
        add("svd:1+tq-mse", 2, fmt::format(" factors {}", estimators::name_of(codebook)),
            [&](QuantizerOptions& o) { o.factor_codebook = codebook; });
    return all;
}

Json json_of(const arma::mat& matrix) {
    Json rows = Json::array();
    for (std::size_t t = 0; t < matrix.n_rows; ++t) {
        Json row = Json::array();
        for (std::size_t j = 0; j < matrix.n_cols; ++j) row.push(matrix(t, j));
        rows.push(std::move(row));
    }
    return rows;
}

/// `{rotation, .., seed, rotation_index}`.
Json json_of(const QuantizerOptions& options) {
    Json json = quantizer_json(options, options_in_golden_vectors);
    json.set("seed", options.seed.text());
    json.set("rotation_index", static_cast<std::int64_t>(options.rotation_index));
    return json;
}

std::string hex_of(const std::vector<std::uint8_t>& bytes) {
    std::string text;
    for (const auto byte : bytes) text += fmt::format("{:02x}", byte);
    return text;
}

/// Whether singular vectors are coded, whose signs and last digits depend on LAPACK.
bool codes_singular_vectors(const MethodSpec& method) {
    return method.spectral || method.quantizer.family->codes_singular_vectors;
}

[[noreturn]] void malformed(const std::string& where, const std::string& what) {
    throw input_error("{}: {}: this is not a set of test vectors of {}: write one with spiked kv golden --write", where,
                      what, schema);
}

std::optional<double> number_of(const Json& json) {
    if (json.real() != nullptr) return *json.real();
    if (json.integer() != nullptr) return static_cast<double>(*json.integer());
    return std::nullopt;
}

arma::mat matrix_of(const Json* json, const std::string& where, const std::string& what) {
    const auto wrong = [&]() { malformed(where, what + " is not a list of rows of numbers of one length"); };
    if (json == nullptr || json->items() == nullptr || json->items()->empty()) wrong();
    const auto& rows = *json->items();
    if (rows.front().items() == nullptr) wrong();
    arma::mat matrix(rows.size(), rows.front().items()->size());
    for (std::size_t t = 0; t < matrix.n_rows; ++t) {
        const auto* row = rows[t].items();
        if (row == nullptr || row->size() != matrix.n_cols) wrong();
        for (std::size_t j = 0; j < matrix.n_cols; ++j) {
            const auto number = number_of((*row)[j]);
            if (!number) wrong();
            matrix(t, j) = *number;
        }
    }
    return matrix;
}

/// The first difference between two matrices.
std::optional<std::string> difference(const arma::mat& given, const arma::mat& expected, double allowed) {
    if (arma::size(given) != arma::size(expected))
        return fmt::format("has {} x {} numbers, {} x {} are expected", given.n_rows, given.n_cols, expected.n_rows,
                           expected.n_cols);
    const double limit = allowed * arma::abs(expected).max();
    for (std::size_t t = 0; t < given.n_rows; ++t)
        for (std::size_t j = 0; j < given.n_cols; ++j)
            if (!(std::abs(given(t, j) - expected(t, j)) <= limit))
                return fmt::format("row {}, column {} is {:.17g}, {:.17g} is expected", t, j, given(t, j),
                                   expected(t, j));
    return std::nullopt;
}

std::vector<std::uint8_t> bytes_of(const std::string& text, const std::string& where, const std::string& what) {
    if (text.size() % 2 != 0 || text.find_first_not_of("0123456789abcdef") != std::string::npos)
        malformed(where, what + " is not bytes as hexadecimal digits");
    std::vector<std::uint8_t> bytes;
    for (std::size_t i = 0; i < text.size(); i += 2)
        bytes.push_back(static_cast<std::uint8_t>(std::stoul(text.substr(i, 2), nullptr, 16)));
    return bytes;
}

const std::string& text_of(const Json& vector, const char* key, const std::string& where, const std::string& name) {
    const Json* found = vector.find(key);
    if (found == nullptr || found->string() == nullptr)
        malformed(where, fmt::format("{} has no text \"{}\"", name, key));
    return *found->string();
}

/// Compares a given vector with that of this program.
std::optional<std::string> vector_difference(const Json& given, const Json& ours, const Case& one,
                                             const std::string& where) {
    const std::string& name = *ours.find("name")->string();
    const std::string named = "vector " + in_quotes(name);
    for (const char* key : {"method", "bits", "options", "matrices", "rows", "columns"}) {
        const Json* found = given.find(key);
        if (found == nullptr) malformed(where, fmt::format("{} has no \"{}\"", named, key));
        if (found->text() != ours.find(key)->text())
            return fmt::format("{}: \"{}\" is {}, {} is expected", named, key, printable(found->text()),
                               ours.find(key)->text());
    }
    const arma::mat input = matrix_of(ours.find("input"), where, named + ": input");
    if (const auto found = difference(matrix_of(given.find("input"), where, named + ": input"), input, 0.0))
        return fmt::format("{}: input: {}", named, *found);

    const std::string& encoded = text_of(given, "encoded", where, named);
    const arma::mat decoded = matrix_of(given.find("decoded"), where, named + ": decoded");
    arma::mat expected = matrix_of(ours.find("decoded"), where, named + ": decoded");
    const auto bytes = bytes_of(encoded, where, named + ": encoded");
    const std::string& our_bytes = *ours.find("encoded")->string();
    if (codes_singular_vectors(one.method)) {
        if (encoded.size() != our_bytes.size())
            return fmt::format("{}: encoded has {} bytes, {} are expected", named, encoded.size() / 2,
                               our_bytes.size() / 2);
        const estimators::Compressor codec(one.method, input.n_cols, one.bits, one.options);
        try {
            expected = codec.decode(bytes, input.n_rows);
        } catch (const Error& error) {
            return fmt::format("{}: encoded: {}", named, error.what());
        }
    } else if (encoded != our_bytes) {
        const auto at =
            std::mismatch(encoded.begin(), encoded.end(), our_bytes.begin(), our_bytes.end()).first - encoded.begin();
        return fmt::format("{}: encoded differs from byte {} on: {} is given, {} is expected", named, at / 2, encoded,
                           our_bytes);
    }
    if (const auto found = difference(decoded, expected, tolerance))
        return fmt::format("{}: decoded: {}", named, *found);
    return std::nullopt;
}

struct Golden {
    Json document;
    std::vector<Case> cases;  ///< the case of each vector
};

Golden make_golden() {
    Golden golden;
    std::map<std::string, arma::mat> matrices;
    Json vectors = Json::array();
    for (const auto& one : cases())
        for (const auto& input : inputs()) {
            // For the other inputs, only rounding error is left after a truncation.
            if (codes_singular_vectors(one.method) && !input.name.starts_with("gaussian")) continue;
            Json names = Json::array();
            for (const auto& [name, matrix] : one.method.quantizer.matrices(input.rows.n_cols, one.bits, one.options)) {
                names.push(name);
                matrices.try_emplace(name, matrix);
            }
            const estimators::Compressor codec(one.method, input.rows.n_cols, one.bits, one.options);
            estimators::AnalysedBlock block(input.rows);
            const auto encoded = codec.encode(block).encoded;
            vectors.push(
                Json::object({{"name", fmt::format("{} B={}{} {}", one.method.text, one.bits, one.suffix, input.name)},
                              {"method", one.method.text},
                              {"bits", bits_json(one.bits)},
                              {"options", json_of(one.options)},
                              {"matrices", std::move(names)},
                              {"rows", static_cast<std::int64_t>(input.rows.n_rows)},
                              {"columns", static_cast<std::int64_t>(input.rows.n_cols)},
                              {"input", json_of(input.rows)},
                              {"encoded", hex_of(encoded.bytes)},
                              {"decoded", json_of(codec.decode(encoded.bytes, input.rows.n_rows))}}));
            golden.cases.push_back(one);
        }
    Json tables = Json::object();
    for (const auto& [name, matrix] : matrices) tables.set(name, json_of(matrix));
    golden.document = Json::object(
        {{"schema", schema}, {"note", note}, {"matrices", std::move(tables)}, {"vectors", std::move(vectors)}});
    return golden;
}

}  // namespace

Json golden_vectors() { return make_golden().document; }

std::string golden_text(const Json& document) {
    std::string text = fmt::format("{{\"schema\":{},\n\"note\":{},\n\"matrices\":{{", document.find("schema")->text(),
                                   document.find("note")->text());
    const char* between = "\n";
    for (const auto& [name, matrix] : *document.find("matrices")->members()) {
        text += fmt::format("{}{}:{}", between, Json(name).text(), matrix.text());
        between = ",\n";
    }
    text += "},\n\"vectors\":[";
    between = "\n";
    for (const auto& vector : *document.find("vectors")->items()) {
        text += between + vector.text();
        between = ",\n";
    }
    return text + "]}\n";
}

std::optional<std::string> golden_difference(const Json& given, const std::string& where) {
    if (given.find("schema") == nullptr || given.find("schema")->string() == nullptr ||
        *given.find("schema")->string() != schema)
        malformed(where, "the schema is another");
    const Json* matrices = given.find("matrices");
    if (matrices == nullptr || matrices->members() == nullptr) malformed(where, "\"matrices\" is missing");
    const Json* vectors = given.find("vectors");
    if (vectors == nullptr || vectors->items() == nullptr) malformed(where, "\"vectors\" is missing");

    static const Golden ours = make_golden();
    for (const auto& [name, matrix] : *ours.document.find("matrices")->members()) {
        const Json* found = matrices->find(name);
        if (found == nullptr) return fmt::format("matrix {} is missing", in_quotes(name));
        const std::string what = "matrix " + in_quotes(name);
        if (const auto differs = difference(matrix_of(found, where, what), matrix_of(&matrix, where, what), tolerance))
            return fmt::format("{}: {}", what, *differs);
    }
    std::map<std::string, const Json*> by_name;
    for (const auto& vector : *vectors->items()) {
        const std::string name = text_of(vector, "name", where, "a vector");
        if (!by_name.emplace(name, &vector).second) malformed(where, fmt::format("{} is given twice", in_quotes(name)));
    }
    const auto& expected = *ours.document.find("vectors")->items();
    for (std::size_t i = 0; i < expected.size(); ++i) {
        const std::string& name = *expected[i].find("name")->string();
        const auto found = by_name.find(name);
        if (found == by_name.end()) return fmt::format("vector {} is missing", in_quotes(name));
        if (auto differs = vector_difference(*found->second, expected[i], ours.cases[i], where)) return differs;
        by_name.erase(found);
    }
    if (!by_name.empty()) return fmt::format("vector {} is not one of this program", in_quotes(by_name.begin()->first));
    return std::nullopt;
}

}  // namespace spiked::estimators
