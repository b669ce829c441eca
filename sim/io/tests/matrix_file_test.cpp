#include "sim/io/matrix_file.hpp"

#include <algorithm>
#include <cmath>

#include "core/files/tests/scratch.hpp"
#include "sim/io/file_formats.hpp"
#include "sim/io/npy.hpp"
#include "sim/io/safetensors.hpp"
#include "sim/io/table.hpp"

namespace spiked::sim {
namespace {

arma::mat csv(const std::string& text) {
    const ScratchFolder scratch;
    return read_table(scratch.write("m.csv", text)).matrix;
}

void expect_bad_csv(const std::string& text, std::initializer_list<std::string_view> parts) {
    const ScratchFolder scratch;
    const auto path = scratch.write("m.csv", text);
    expect_error(ErrorKind::input, [&] { (void)read_matrix(path); }, {path});
    expect_error(
        ErrorKind::input, [&] { (void)read_matrix(path); }, parts);
}

void expect_equal(const arma::mat& found, const arma::mat& expected) {
    ASSERT_EQ(found.n_rows, expected.n_rows);
    ASSERT_EQ(found.n_cols, expected.n_cols);
    EXPECT_TRUE(arma::approx_equal(found, expected, "absdiff", 0.0)) << found;
}

/// Values in layout head,token,dim: element (head, token, dim) is 100 head + 10 token + dim.
std::vector<double> counted(std::size_t heads, std::size_t tokens, std::size_t dim) {
    std::vector<double> values;
    for (std::size_t h = 0; h < heads; ++h)
        for (std::size_t t = 0; t < tokens; ++t)
            for (std::size_t j = 0; j < dim; ++j) values.push_back(static_cast<double>(100 * h + 10 * t + j));
    return values;
}

/// The beginning of a file of the format; empty where the format has none of its own.
std::string beginning_of(const FileFormat& format) {
    for (const std::string& sample : {little_endian(2, 8) + "{}", std::string("PK\x03\x04"), std::string("\x93NUMPY"),
                                      std::string(124, ' ') + std::string("\0\1IM", 4), std::string("%%MatrixMarket")})
        if (format.begins != nullptr && format.begins(sample)) return sample;
    return "";
}

// A new format needs a sample above.
TEST(FileFormats, AFileOfOneIsRejectedWhereAnotherIsExpected) {
    const ScratchFolder scratch;
    for (const auto& format : file_formats()) {
        const std::string beginning = beginning_of(format);
        EXPECT_EQ(beginning.empty(), format.begins == nullptr) << format.suffix;
        if (beginning.empty()) continue;
        const ByteFile file(scratch.write("a", beginning));
        for (const auto& expected : file_formats()) {
            const auto read = [&] { reject_other_format(file, expected.suffix); };
            if (&expected == &format)
                EXPECT_NO_THROW(read()) << format.suffix;
            else
                expect_error(ErrorKind::input, read, {"not a " + expected.name + " file", format.found, format.advice});
        }
    }
}

TEST(FileFormats, AreFoundBySuffixAndListedInHelpTexts) {
    EXPECT_EQ(format_of("folder.csv/DATA.NPZ")->suffix, ".npz");
    EXPECT_EQ(format_of("data.npz.doc"), nullptr);
    EXPECT_EQ(dump_suffixes(), (std::vector<std::string>{".safetensors", ".npz", ".npy", ".mat", ".mtx", ".mtx.gz"}));
    for (const auto& suffix : {".safetensors", ".npz", ".npy", ".csv", ".tsv", ".txt", ".dat", ".csv.gz", ".dat.gz"}) {
        EXPECT_EQ(std::count(matrix_suffixes().begin(), matrix_suffixes().end(), suffix), 1) << suffix;
        EXPECT_NE(format_of(std::string("m") + suffix), nullptr) << suffix;
    }
    EXPECT_EQ(matrix_forms(), "FILE(.safetensors:tensor[:head]|.npz:name|.npy|.mat:name|.mtx|.csv)");
}

TEST(Csv, ReadsNumbersInEverySpelling) {
    const arma::mat expected{{1, 2.5, -3}, {4e2, 0, 0.125}};
    expect_equal(csv("1,2.5,-3\n4e2,0,.125\n"), expected);
    expect_equal(csv("1,2.5,-3\r\n\r\n 4e2\t, +0 ,.125"), expected);
    expect_equal(csv("\xEF\xBB\xBF"
                     "alpha,beta,gamma\n# note\n\n1,2.5,-3\n4e2,0,.125\n"),
                 expected);
    expect_equal(csv("7"), arma::mat(1, 1).fill(7.0));
    expect_equal(csv("1e-400\n"), arma::mat(1, 1, arma::fill::zeros));
}

TEST(Csv, ReadsFilesOfSeveralChunks) {
    std::string text;
    constexpr std::size_t rows = 200000;
    for (std::size_t i = 0; i < rows; ++i) text += std::to_string(3 * i) + "," + std::to_string(2 * i) + "\n";
    const arma::mat matrix = csv(text);
    ASSERT_EQ(matrix.n_rows, rows);
    for (std::size_t i = 0; i < rows; ++i) {
        ASSERT_EQ(matrix(i, 0), static_cast<double>(3 * i));
        ASSERT_EQ(matrix(i, 1), static_cast<double>(2 * i));
    }
}

TEST(CsvBadInput, NamesLineAndColumn) {
    expect_bad_csv("1,2\n3,abc\n", {"m.csv:2:3: \"abc\" is not a number", "cell 2 of 2"});
    expect_bad_csv("1,2\n\n3,\n", {"m.csv:3:3: 1 missing", "an empty cell"});
    expect_bad_csv("1,2\n3,1e999\n", {":2:3:", "1e999"});
    expect_bad_csv("1,2,3\n4,5\n", {"m.csv:2:3: 2 cells (line 1 has 3;"});
    expect_bad_csv("a,b\n1,2\n4,5,6\n", {"m.csv:3:5: 3 cells (line 2 has 2;"});
    expect_bad_csv("1,+-2\n", {"m.csv:1:3: \"+-2\" is not a number"});
    expect_bad_csv("1:2\n", {":1:1:", "\"1:2\" is not a number"});
    expect_bad_csv("1,x\n2,3\n", {":1:3:", "\"x\""});
    expect_bad_csv("a,b\nc,d\n1,2\n", {":2:1:", "\"c\""});
    expect_bad_csv("\n\n", {"empty matrix"});
    expect_bad_csv("", {"empty (0 bytes"});
    expect_bad_csv(std::string("1,2\n\0,3\n", 8), {":2:", "not a text file"});
}

TEST(MatrixFile, ReadsEveryFormat) {
    const ScratchFolder scratch;
    const arma::mat expected{{1, 2, 3}, {4, 5, 6}};
    write_npy(scratch.path("m.npy"), expected);
    expect_equal(read_matrix(scratch.path("m.npy")), expected);
    expect_equal(read_matrix(scratch.write("m.csv", "1,2,3\n4,5,6\n")), expected);
    write_safetensors(
        scratch.path("m.safetensors"), {},
        {tensor_of("m", DType::f32, {2, 3}, {1, 2, 3, 4, 5, 6}), tensor_of("v", DType::f16, {2}, {7, 8})});
    expect_equal(read_matrix(scratch.path("m.safetensors:m")), expected);
    expect_equal(read_matrix(scratch.path("m.safetensors:v")), arma::mat(arma::vec{7, 8}));
    write_safetensors(scratch.path("one.safetensors"), {}, {tensor_of("m", DType::bf16, {2, 3}, {1, 2, 3, 4, 5, 6})});
    expect_equal(read_matrix(scratch.path("one.safetensors")), expected);
}

TEST(MatrixFile, ColonsInFileAndTensorNames) {
    const ScratchFolder scratch;
    const arma::mat expected{{1, 2}};
    expect_equal(read_matrix(scratch.write("run:3:b.csv", "1,2\n")), expected);
    write_safetensors(
        scratch.path("a:b.safetensors"), {{"layout", "head,token,dim"}},
        {tensor_of("x:1", DType::f32, {1, 2}, {1, 2}), tensor_of("k:0", DType::f32, {2, 1, 2}, {1, 2, 3, 4})});
    expect_equal(read_matrix(scratch.path("a:b.safetensors:x:1")), expected);
    expect_equal(read_matrix(scratch.path("a:b.safetensors:k:0:1")), arma::mat{{3, 4}});
}

TEST(MatrixFile, HeadOfACacheTensor) {
    const ScratchFolder scratch;
    const auto path = scratch.path("kv.safetensors");
    write_safetensors(
        path, {{"layout", "head,token,dim"}},
        {tensor_of("k", DType::f32, {2, 3, 4}, counted(2, 3, 4)), tensor_of("m", DType::f32, {1, 2}, {0, 1})});
    const arma::mat expected{{100, 101, 102, 103}, {110, 111, 112, 113}, {120, 121, 122, 123}};
    expect_equal(read_matrix(path + ":k:1"), expected);
    const auto fails = [](const std::string& spec, std::initializer_list<std::string_view> parts) {
        expect_error(
            ErrorKind::input, [&] { (void)read_matrix(spec); }, parts);
    };
    fails(path + ":k", {"\"k\"", "[2, 3, 4]", "2 heads", "k:0"});
    fails(path + ":k:2", {"\"k\"", "no head 2", "0 to 1"});
    fails(path + ":k:x", {"\"x\"", "\"k\"", "not a number"});
    fails(path + ":m:0", {"\"m\"", "[1, 2]", "without heads"});
    fails(path + ":kk", {"\"kk\"", "did you mean \"k\"?"});
    fails(path, {"2 tensors", "\"k\", \"m\""});
}

TEST(MatrixFile, LayoutIsNeverGuessed) {
    const ScratchFolder scratch;
    const auto path = scratch.path("kv.safetensors");
    write_safetensors(path, {}, {tensor_of("k", DType::f32, {2, 3, 4}, counted(2, 3, 4))});
    expect_error(ErrorKind::input, [&] { (void)read_matrix(path + ":k:0"); },
                 {path, "\"k\"", "unknown layout", "head,token,dim or head,dim,token"});
    expect_equal(read_matrix(path + ":k:0", "token,dim,head"), arma::mat{{0, 10, 20}, {100, 110, 120}});
    expect_error(ErrorKind::input, [&] { (void)read_matrix(path + ":k:0", "batch,head,token,dim"); },
                 {"does not fit layout \"batch,head,token,dim\""});
}

TEST(MatrixFileBadInput, UnusableFilesAreRejected) {
    const ScratchFolder scratch;
    const auto fails = [](const std::string& spec, std::initializer_list<std::string_view> parts) {
        expect_error(
            ErrorKind::input, [&] { (void)read_matrix(spec); }, parts);
    };
    fails(scratch.path("none.npy"), {"none.npy: no such file"});
    fails(scratch.path("none.safetensors:layers.0.key:1"), {"none.safetensors: no such file"});
    fails(scratch.path("none"), {"none: no such file"});
    fails(scratch.write("m.foo", std::string("\1\2\0\3", 4)), {"m.foo", "unknown kind of file", ".npz, .npy", ".csv"});
    fails(scratch.write("m.csv", "1,2") + ":x", {"m.csv", ":x"});
    fails(scratch.path("."), {"folder"});
    write_safetensors(scratch.path("e.safetensors"), {},
                      {tensor_of("e", DType::f32, {0, 3}, {}), tensor_of("s", DType::f32, {}, {1}),
                       tensor_of("d", DType::f32, {1, 1, 1, 1, 1}, {1})});
    fails(scratch.path("e.safetensors:e"), {"\"e\" is empty", "[0, 3]"});
    fails(scratch.path("e.safetensors:s"), {"\"s\" has shape []"});
    fails(scratch.path("e.safetensors:d"), {"\"d\" has shape [1, 1, 1, 1, 1]"});
}

TEST(MatrixFileBadInput, NanAndInfinity) {
    const ScratchFolder scratch;
    const auto path = scratch.write("m.csv", "1,2,3\n4,5,nan\n-inf,8,9\n");
    expect_error(ErrorKind::input, [&] { (void)read_matrix(path); },
                 {path + ":2:5: ", "2 missing or infinite values in 3 rows", "\"nan\""});
}

}  // namespace
}  // namespace spiked::sim
