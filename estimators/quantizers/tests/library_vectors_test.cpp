// Rows that the programs of other authors coded, compared with the quantizers that have their names. Which function of
// which version made them is beside the vectors in data/library_vectors.json.
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "core/text/json.hpp"
#include "estimators/tests/quantizer_samples.hpp"

namespace spiked::estimators {
namespace {

const Json& library_vectors() {
    static const Json document = [] {
        std::ifstream file(std::string(SPIKED_SOURCE_DIR) + "/estimators/quantizers/tests/data/library_vectors.json");
        std::stringstream text;
        text << file.rdbuf();
        return Json::parse(text.str(), "library vectors");
    }();
    return document;
}

double real_of(const Json& value) {
    return value.real() != nullptr ? *value.real() : static_cast<double>(*value.integer());
}

arma::mat rows_of(const Json& list) {
    arma::mat rows(list.items()->size(), list.items()->front().items()->size());
    for (std::size_t t = 0; t < rows.n_rows; ++t)
        for (std::size_t j = 0; j < rows.n_cols; ++j) rows(t, j) = real_of((*(*list.items())[t].items())[j]);
    return rows;
}

/// The largest difference from what the library decoded, relative to the largest entry.
double difference(const std::string& method, const Json& one) {
    const QuantizerOptions options{.rotation = RotationKind::identity, .norm = NumberFormat::fp32, .seed = test_seed};
    const arma::mat rows = rows_of(*one.find("rows"));
    const RowQuantizer quantizer = row_quantizer(method, rows.n_cols, real_of(*one.find("bits")), options);
    return arma::abs(through(quantizer, rows) - rows_of(*one.find("decoded"))).max() / arma::abs(rows).max();
}

TEST(LibraryVectorsStability, RowsAreDecodedAsTheLibraryDecodesThem) {
    std::set<std::string> methods;
    for (const Json& one : *library_vectors().find("cases")->items()) {
        const std::string& method = *one.find("method")->string();
        EXPECT_LT(difference(method, one), real_of(*one.find("tolerance")))
            << method << " at " << real_of(*one.find("bits")) << " bits: " << *one.find("source")->string();
        methods.insert(method.substr(0, method.find(':')));
    }
    EXPECT_EQ(methods, (std::set<std::string>{"gear", "kivi", "kivi-hf", "kvquant", "mx", "qjl", "rabitq"}));
}

TEST(LibraryVectorsControl, GroupsAlongTheOtherAxisDiffer) {
    for (const Json& one : *library_vectors().find("cases")->items()) {
        const std::string& method = *one.find("method")->string();
        if (!method.starts_with("kivi")) continue;
        const bool along_tokens = method.find("axis=key") != std::string::npos;
        EXPECT_GT(difference(along_tokens ? "kivi:axis=value:group=4" : "kivi:axis=key:group=4", one), 0.02) << method;
    }
}

}  // namespace
}  // namespace spiked::estimators
