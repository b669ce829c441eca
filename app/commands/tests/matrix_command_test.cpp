// Centring, standardizing, covariance matrices and notes on the data of spectrum and quantize.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "app/tests/process.hpp"
#include "core/text/names.hpp"
#include "sim/io/matrix_file.hpp"
#include "sim/io/npy.hpp"
#include "sim/io/safetensors.hpp"
#include "sim/random/normal.hpp"

namespace spiked::app {
namespace {

/// Normal entries, with means from 0 to 5 over the columns.
const arma::mat& offset_data() {
    static const arma::mat data = [] {
        arma::mat matrix(60, 20);
        stream::fill_normal(stream::Stream({}, "matrix command test", stream::Role::noise, 0),
                            {matrix.memptr(), matrix.n_elem});
        matrix.each_row() += arma::linspace<arma::rowvec>(0.0, 5.0, 20);
        return matrix;
    }();
    return data;
}

std::string stored_matrix(const std::string& name, const arma::mat& matrix) {
    const std::string path = scratch(name);
    sim::write_npy(path, matrix);
    return path;
}

arma::vec values_in(const Json& json) {
    const auto& items = *json.find("singular_values")->items();
    arma::vec values(items.size());
    for (std::size_t i = 0; i < items.size(); ++i) values[i] = number(items[i]);
    return values;
}

Json spectrum_of(const std::string& words) {
    const Outcome found = spiked("spectrum " + words + " --json");
    EXPECT_EQ(found.code, 0) << found.err;
    return found.json();
}

std::string notes_in(const Json& json) {
    std::string all;
    for (const auto& note : *json.find("notes")->items()) all += *note.string() + "\n";
    return all;
}

TEST(SpectrumIntervals, SurroundEveryEstimateOrSayWhyNot) {
    arma::mat matrix = offset_data();
    matrix.col(0) *= 30.0;
    const std::string path = stored_matrix("intervals.npy", matrix);
    for (const char* method : {"theory", "bootstrap"}) {
        const Json json =
            spectrum_of(path + " --estimator gd-shrink --estimator svd:1 --intervals " + method + " --confidence 0.9");
        const auto& estimators = *json.find("estimators")->items();
        const Json& intervals = *estimators[0].find("intervals");
        EXPECT_EQ(*intervals.find("method")->string(), method);
        EXPECT_EQ(number(intervals, "confidence"), 0.9);
        const double strength = number(estimators[0].find("strengths")->items()->front());
        const auto& ends = *intervals.find("strength")->items()->front().items();
        ASSERT_EQ(ends.size(), 2U);
        EXPECT_LT(number(ends[0]), strength);
        EXPECT_GT(number(ends[1]), strength);
        EXPECT_TRUE(estimators[0].find("next_component_p_value"));
        EXPECT_TRUE(estimators[1].find("intervals")->find("strength")->items()->front().is_null());
        EXPECT_NE(estimators[1].find("intervals")->find("reasons")->items()->front().string()->find("no noise law"),
                  std::string::npos);
        EXPECT_TRUE(estimators[1].find("next_component_note")->is_null());
    }
    EXPECT_NE(
        spiked("spectrum " + path + " --estimator svd:1").out.find("no intervals: this method estimates no noise"),
        std::string::npos);
    const Json bare = spectrum_of(path + " --estimator gd-shrink --intervals none");
    const Json& without = bare.find("estimators")->items()->front();
    EXPECT_TRUE(without.find("intervals")->is_null());
    EXPECT_GT(number(without, "next_component_p_value"), 0.0);
    EXPECT_NE(without.find("next_component_note")->string()->find("conditional on the rank"), std::string::npos);
    EXPECT_NE(spiked("spectrum " + path + " --estimator gd-shrink --confidence 0.99999999").out.find("99.999999 % int"),
              std::string::npos);
    arma::mat narrow = offset_data().head_cols(7);
    narrow.col(0) *= 30.0;
    EXPECT_NE(spiked("spectrum " + stored_matrix("narrow.npy", narrow) + " --estimator gd-shrink --center columns")
                  .out.find("no intervals: the noise has only 7 singular values (8 are needed)"),
              std::string::npos);
    const std::string text = spiked("spectrum " + path + " --estimator gd-shrink").out;
    EXPECT_NE(text.find("95 % intervals of strength and overlaps (theory)"), std::string::npos) << text;
    EXPECT_EQ(spiked("spectrum " + path + " --intervals none").out.find("% intervals"), std::string::npos);
    for (const char* wrong : {" --confidence 1", " --intervals jackknife", " --intervals none --confidence 0.9"})
        EXPECT_EQ(spiked("spectrum " + path + wrong).code, 2) << wrong;
    EXPECT_EQ(spiked("spectrum " + stored_matrix("cov48.npy", arma::cov(matrix)) +
                     " --covariance 59 --estimator eoptshrink:rank=pa")
                  .code,
              2)
        << "pa needs the samples";
}

TEST(PreparedSpectrum, HasTheSingularValuesOfNumpy) {
    if (std::system("/usr/bin/python3 -c 'import numpy' 2>/dev/null") != 0) GTEST_SKIP() << "python3-numpy is missing";
    const std::string path = stored_matrix("prepared.npy", offset_data());
    std::ofstream(scratch("prepare.py"))
        << "import sys, numpy as np\n"
           "x = np.load(sys.argv[1])\n"
           "c, r, g = x.mean(0), x.mean(1, keepdims=True), x.mean()\n"
           "y = {'columns': x - c, 'rows': x - r, 'both': x - c - r + g, 'scale': (x - c) / x.std(0, ddof=1),\n"
           "     'none': x}[sys.argv[2]]\n"
           "np.save(sys.argv[3], np.linalg.svd(y, compute_uv=False))\n";
    for (const auto& [name, options, centered] : {std::tuple{"columns", "--center columns", "columns"},
                                                  {"rows", "--center rows", "rows"},
                                                  {"both", "--center both", "both"},
                                                  {"scale", "--standardize columns", "columns"},
                                                  {"none", "--center none", "none"}}) {
        const std::string values = scratch(fmt::format("values-{}.npy", name));
        ASSERT_EQ(
            std::system(
                fmt::format("/usr/bin/python3 '{}' '{}' {} '{}'", scratch("prepare.py"), path, name, values).c_str()),
            0);
        const arma::vec expected = sim::read_matrix(values).col(0);
        const Json json = spectrum_of(path + " " + options);
        EXPECT_LE(arma::abs(values_in(json) - expected).max(), 1e-12 * expected[0]) << name;
        EXPECT_EQ(*json.find("centered")->string(), centered);
        EXPECT_EQ(*json.find("standardized")->string(), name == std::string("scale") ? "columns" : "none");
        EXPECT_EQ(notes_in(json).find("--center columns removes them") != std::string::npos,
                  name == std::string("none"));
    }
}

TEST(SpectrumText, ShowsRoundingErrorsAsZero) {
    const arma::mat low = offset_data().head_cols(3) * offset_data().submat(0, 0, 7, 2).t();
    const std::string path = stored_matrix("low_rank.npy", low);
    const std::string text = spiked("spectrum " + path + " --estimator svd:4").out;
    const std::size_t at = text.find("largest singular values:");
    ASSERT_NE(at, std::string::npos) << text;
    EXPECT_NE(text.substr(at, text.find('\n', at) - at).find(" 0 0 0 0 0"), std::string::npos) << text;
    EXPECT_EQ(text.find("e-1"), std::string::npos) << text;
    const arma::vec values = values_in(spectrum_of(path));
    EXPECT_GT(values[2], 1.0);
    EXPECT_NE(values[3], 0.0) << "JSON has the number itself";
    const Outcome small = spiked("spectrum " + stored_matrix("small.npy", 1e-20 * offset_data()));
    EXPECT_NE(small.out.find("e-1"), std::string::npos) << "small, but not beside the others: " << small.out;
}

TEST(SpectrumTails, AreANoteAndANumberWhereNoiseIsNotNormal) {
    arma::mat normal(120, 80);
    stream::fill_normal(stream::Stream({}, "tails of the noise", stream::Role::noise, 0),
                        {normal.memptr(), normal.n_elem});
    const Json of_normal = spectrum_of(stored_matrix("normal.npy", normal));
    // Entries z |z|^(1/2) have an excess kurtosis of 2.9.
    const std::string path = stored_matrix("heavy.npy", arma::mat(normal % arma::sqrt(arma::abs(normal))));
    const Json of_heavy = spectrum_of(path);
    const auto kurtosis = [](const Json& document, const char* key) {
        return number(document.find("estimators")->items()->front(), key);
    };
    EXPECT_NE(of_heavy.text().find("have an excess kurtosis of"), std::string::npos) << of_heavy.text();
    for (const auto& [document, expected] : {std::pair{&of_normal, 0.0}, std::pair{&of_heavy, 2.9}})
        EXPECT_NEAR(kurtosis(*document, "residual_kurtosis"), expected,
                    4.9 * kurtosis(*document, "residual_kurtosis_error"));
    EXPECT_LT(kurtosis(of_heavy, "residual_kurtosis_error"), 0.59);
    EXPECT_EQ(of_normal.text().find("have an excess kurtosis of"), std::string::npos) << of_normal.text();
    for (const char* options : {" --intervals none", " --estimator dyson+gd-shrink"})
        EXPECT_TRUE(
            spectrum_of(path + options).find("estimators")->items()->front().find("residual_kurtosis")->is_null())
            << options;
}

TEST(SpectrumText, HasFourDigitsAndTheirZerosInTablesAndIntervals) {
    const std::string text = spiked("spectrum " + stored_matrix("digits.npy", offset_data())).out;
    const std::size_t table = text.find("component ");
    ASSERT_NE(table, std::string::npos) << text;
    EXPECT_NE(text.find(" % intervals of strength"), std::string::npos) << text;
    std::size_t numbers = 0;
    const auto count_digits = [](const std::string& word) {
        const std::size_t first = word.find_first_not_of("0.");
        return std::count_if(word.begin() + static_cast<std::ptrdiff_t>(first), word.end(),
                             [](unsigned char c) { return std::isdigit(c) != 0; });
    };
    std::istringstream words(text.substr(table));
    for (std::string word; words >> word;) {
        if (word.back() == ';') word.pop_back();
        if (word.find('.') == std::string::npos || !std::isdigit(static_cast<unsigned char>(word.front()))) continue;
        EXPECT_EQ(count_digits(word), 4) << word << "\n" << text;
        ++numbers;
    }
    EXPECT_GE(numbers, 11U) << text;
}

TEST(Notes, AreWrappedBetweenWordsOnATerminalAndStayWholeInAFile) {
    const std::string path = stored_matrix("with_means.npy", offset_data());
    const Outcome file = spiked("spectrum " + path);
    const std::string note = file.err.substr(file.err.find("the first singular value"));
    ASSERT_GT(note.find('\n'), 80U) << file.err;
    const std::string screen = scratch("screen");
    if (std::system(("COLUMNS=60 script -qec \"'" SPIKED_BINARY "' spectrum '" + path + "'\" /dev/null >'" + screen +
                     "' </dev/null")
                        .c_str()) != 0)
        GTEST_SKIP() << "there are no terminals here";
    std::string shown = contents(screen);
    std::erase(shown, '\r');
    const std::size_t at = shown.find("the first singular value");
    ASSERT_NE(at, std::string::npos) << shown;
    for (const auto& line : split(shown.substr(at), '\n')) EXPECT_LE(line.size(), 60U) << line;
    std::string joined = shown.substr(at, note.size());
    std::replace(joined.begin(), joined.end(), '\n', ' ');
    EXPECT_EQ(joined.substr(0, note.find('\n')), note.substr(0, note.find('\n'))) << "no word is broken";
}

TEST(Spectrum, WritesTablesOfTextThatAreReadBackExactly) {
    const std::string path = stored_matrix("table_parts.npy", 1e-3 * offset_data());
    for (const char* suffix : {".npy", ".csv"}) {
        const std::string parts = " --denoised " + scratch("part" + std::string(suffix)) + " --residual " +
                                  scratch("remainder" + std::string(suffix));
        EXPECT_EQ(spiked("spectrum " + path + " --estimator svd:2" + parts).code, 0);
        EXPECT_EQ(spiked("quantize " + path + " --method tq-mse --bits 2 -o " + scratch("coded") + suffix).code, 0);
    }
    for (const char* name : {"part", "remainder", "coded"}) {
        const std::string text = contents(scratch(name) + ".csv");
        EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), static_cast<int>(offset_data().n_rows));
        EXPECT_TRUE(arma::approx_equal(sim::read_matrix(scratch(name) + ".csv"),
                                       sim::read_matrix(scratch(name) + ".npy"), "absdiff", 0.0))
            << name;
    }
    for (const char* name : {"part.txt", "part.xlsx", "part.csv.gz"}) {
        const Outcome other = spiked("spectrum " + path + " --denoised " + scratch(name));
        EXPECT_EQ(other.code, 2) << name;
        EXPECT_FALSE(std::filesystem::exists(scratch(name))) << name;
    }
    EXPECT_EQ(spiked("spectrum " + path + " --estimator svd:2 --denoised " + scratch("PART.CSV")).code, 0);
    EXPECT_EQ(contents(scratch("PART.CSV")), contents(scratch("part.csv")));
    const Outcome coded = spiked("quantize " + path + " --method tq-mse --bits 2 -o " + scratch("coded.xlsx"));
    EXPECT_EQ(coded.code, 2);
    EXPECT_NE(coded.err.find("not written as .xlsx: name it FILE.npy or FILE.csv"), std::string::npos) << coded.err;
}

TEST(PreparedSpectrum, WritesPartsOfThePreparedMatrix) {
    const std::string path = stored_matrix("parts.npy", offset_data());
    const Json json = spectrum_of(path + " --center columns --estimator svd:2 --denoised " + scratch("low.npy") +
                                  " --residual " + scratch("rest.npy"));
    const arma::mat sum = sim::read_matrix(scratch("low.npy")) + sim::read_matrix(scratch("rest.npy"));
    const arma::mat expected = offset_data().each_row() - arma::mean(offset_data(), 0);
    EXPECT_LE(arma::abs(sum - expected).max(), 1e-13);
    EXPECT_NE(notes_in(json).find("those of the centred matrix"), std::string::npos);
    const Outcome constant =
        spiked("spectrum " + stored_matrix("ones.npy", arma::mat(5, 4, arma::fill::ones)) + " --standardize columns");
    EXPECT_EQ(constant.code, 4);
    EXPECT_NE(constant.err.find("ones.npy: 4 constant columns"), std::string::npos) << constant.err;
}

TEST(PreparedSpectrum, LosesADegreeOfFreedomToEveryMean) {
    // Rows orthogonal to the vector of ones turn n centred rows into n - 1 rows of the same law and spectrum.
    const auto without_mean = [](const arma::mat& data) {
        const arma::uword n = data.n_rows;
        arma::mat contrasts(n - 1, n, arma::fill::zeros);
        for (arma::uword i = 1; i < n; ++i) {
            contrasts.row(i - 1).head(i).fill(1.0 / std::sqrt(static_cast<double>(i * (i + 1))));
            contrasts(i - 1, i) = -static_cast<double>(i) / std::sqrt(static_cast<double>(i * (i + 1)));
        }
        return arma::mat(contrasts * data);
    };
    const arma::mat wide = offset_data().head_rows(12);
    const std::string names = " --estimator tw-test:level=0.3 --estimator gd-shrink --estimator eoptshrink:rank=2";
    for (const auto& [centred, reduced] : {std::pair{"columns", without_mean(wide)},
                                           {"rows", arma::mat(without_mean(wide.t()).t())},
                                           {"both", without_mean(without_mean(wide.t()).t())}}) {
        const Json found = spectrum_of(stored_matrix("centred.npy", wide) + " --center " + centred + names);
        const Json expected = spectrum_of(stored_matrix("reduced.npy", reduced) + names);
        EXPECT_EQ(number(found, "independent_rows"), number(expected, "rows"));
        EXPECT_EQ(number(found, "independent_cols"), number(expected, "cols"));
        for (std::size_t i = 0; i < 3; ++i) {
            const Json& one = (*found.find("estimators")->items())[i];
            const Json& other = (*expected.find("estimators")->items())[i];
            ASSERT_EQ(number(one, "rank"), number(other, "rank")) << centred << i;
            EXPECT_NEAR(number(one, "bulk_edge"), number(other, "bulk_edge"), 1e-10) << centred << i;
            if (i < 2) {
                EXPECT_NEAR(number(one, "next_component_p_value"), number(other, "next_component_p_value"), 1e-9);
            }
            for (const char* key : {"strengths", "overlap_left", "overlap_right", "shrunk"})
                for (std::size_t k = 0; k < one.find(key)->items()->size(); ++k)
                    EXPECT_NEAR(number((*one.find(key)->items())[k]), number((*other.find(key)->items())[k]), 1e-9);
        }
    }
}

TEST(CovarianceSpectrumCommand, AgreesWithTheDataItself) {
    const std::string names = " --estimator eoptshrink --estimator gd-shrink --estimator tw-test --estimator svd:2";
    const Json data = spectrum_of(stored_matrix("rows.npy", offset_data()) + " --center columns" + names);
    const Json found = spectrum_of(stored_matrix("cov.npy", arma::cov(offset_data())) + " --covariance 59" + names);
    EXPECT_EQ(number(found, "rows"), 59);
    EXPECT_EQ(number(found, "cols"), 20);
    EXPECT_EQ(number(found, "covariance_of"), 59);
    EXPECT_TRUE(data.find("covariance_of")->is_null());
    EXPECT_LE(arma::abs(values_in(found) - values_in(data)).max(), 1e-9);
    EXPECT_TRUE(notes_in(found).empty()) << notes_in(found);
    for (std::size_t i = 0; i < 4; ++i)
        EXPECT_EQ(number((*found.find("estimators")->items())[i], "rank"),
                  number((*data.find("estimators")->items())[i], "rank"));
    EXPECT_EQ(number(data, "independent_rows"), 59);
    const Json bare = spectrum_of(scratch("cov.npy"));
    EXPECT_NE(notes_in(bare).find("looks like a covariance matrix"), std::string::npos);
    EXPECT_EQ(spiked("spectrum " + scratch("rows.npy") + " --covariance 59").code, 4) << "not square";
}

TEST(MatrixOfAnotherKind, IsNamedByItsContent) {
    for (const auto& [name, content, what] : {std::tuple{"list.json", "[[1, 2], [3, 4]]", "json.load"},
                                              {"page.html", "<html><body></body></html>", "a web page"},
                                              {"picture.png", "\x89PNG\r\n\x1a\n....", "a PNG image"},
                                              {"paper.pdf", "%PDF-1.7", "a PDF document"}}) {
        std::ofstream(scratch(name), std::ios::binary) << content;
        for (const char* command : {"spectrum ", "quantize "}) {
            const Outcome found = spiked(command + scratch(name));
            EXPECT_EQ(found.code, 4) << name;
            EXPECT_NE(found.err.find(what), std::string::npos) << found.err;
        }
    }
    EXPECT_NE(spiked("spectrum none.json").err.find("none.json stands where"), std::string::npos) << "no such file";
    EXPECT_NE(spiked("run " + scratch("list.json")).err.find("stands where STUDY.toml"), std::string::npos);
}

TEST(MatrixNotes, GoToStandardErrorAndJson) {
    arma::mat matrix = offset_data();
    matrix.col(0) = arma::regspace(0, 59);
    const std::string path = stored_matrix("index.npy", matrix);
    const Outcome found = spiked("spectrum " + path + " --json");
    ASSERT_EQ(found.code, 0) << found.err;
    for (const std::string& text : {notes_in(found.json()), found.err})
        EXPECT_NE(text.find("the first column counts 0, 1, 2, ...: if it is an index, leave it out"), std::string::npos)
            << text;
    EXPECT_TRUE(spiked("spectrum " + path + " --json --quiet").err.empty());
    const std::string zero = stored_matrix("zero.npy", arma::join_cols(offset_data(), arma::mat(2, 20)));
    const Outcome coded = spiked("quantize " + zero + " --center columns --json");
    ASSERT_EQ(coded.code, 0) << coded.err;
    EXPECT_EQ(*coded.json().find("centered")->string(), "columns");
    EXPECT_NE(notes_in(coded.json()).find("2 zero rows counted as data in the centring"), std::string::npos);
    EXPECT_NE(notes_in(spiked("quantize " + zero + " --json").json()).find("2 zero rows: they count in the bits"),
              std::string::npos);
    EXPECT_NE(coded.err.find("of the prepared matrix"), std::string::npos);
    EXPECT_EQ(notes_in(coded.json()).find("mostly the means"), std::string::npos);
    EXPECT_NE(notes_in(spiked("quantize " + zero + " --json").json()).find("mostly the means of the columns"),
              std::string::npos);
    const Json stripped = spectrum_of(scratch("zero.npy"));
    EXPECT_NE(notes_in(stripped).find("2 zero rows left out (--keep-empty keeps them)"), std::string::npos);
    EXPECT_EQ(number(stripped, "stripped_rows"), 2);
    const Json centred = spectrum_of(zero + " --center columns");
    EXPECT_EQ(number(centred, "stripped_rows"), 0);
    const arma::mat whole = arma::join_cols(offset_data(), arma::mat(2, 20));
    EXPECT_LE(arma::abs(values_in(centred) - arma::svd(arma::mat(whole.each_row() - arma::mean(whole, 0)))).max(),
              1e-11);
}

/// A dump without a layout of which all tokens are the same.
std::string dump_of_identical_tokens() {
    std::vector<sim::TensorSource> tensors;
    for (const char* side : {"key", "value"})
        tensors.push_back({fmt::format("layers.0.{}", side),
                           sim::DType::f64,
                           {2, 128, 16},
                           [](std::uint64_t first, std::span<double> out) {
                               for (std::size_t i = 0; i < out.size(); ++i)
                                   out[i] = offset_data()((first + i) / (128 * 16), (first + i) % 16);
                           }});
    const std::string path = scratch("same.safetensors");
    sim::write_safetensors(path, {}, tensors);
    return path;
}

TEST(MatrixOfATensor, IsReadByTheLayoutOfTheCommand) {
    const std::string tensor = dump_of_identical_tokens() + ":layers.0.key:1";
    EXPECT_EQ(spiked("spectrum " + tensor).code, 4) << "the file names no layout";
    const Json json = spectrum_of(tensor + " --layout head,token,dim");
    EXPECT_EQ(number(json, "rows"), 128);
    EXPECT_EQ(number(json, "cols"), 16);
    EXPECT_NEAR(values_in(json)[0], std::sqrt(128.0) * arma::norm(offset_data().submat(1, 0, 1, 15)), 1e-10);
    EXPECT_EQ(spiked("quantize " + tensor + " --layout head,token,dim").code, 0);
}

TEST(TablesOfDumps, ShowRoundingErrorsAsZero) {
    const std::string words =
        "kv run " + dump_of_identical_tokens() + " --layout head,token,dim --method tq-mse --bits 2";
    const Outcome found = spiked(words);
    ASSERT_EQ(found.code, 0) << found.err;
    EXPECT_EQ(found.out.find("0.0000000000"), std::string::npos) << found.out;
    EXPECT_NE(found.out.find("0 stands for rounding errors"), std::string::npos);
    const Json row = spiked(words + " --json").json().find("rows")->items()->front();
    EXPECT_GT(number(row, "ip_std"), 0.0) << "JSON has every number as it is";
    EXPECT_LT(number(row, "ip_std"), 1e-12);
}

}  // namespace
}  // namespace spiked::app
