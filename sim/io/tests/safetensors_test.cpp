#include "sim/io/safetensors.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmath>
#include <random>

#include "core/files/sha256.hpp"
#include "core/files/tests/scratch.hpp"

namespace spiked::sim {
namespace {

const std::string zeros(64, '\0');

/// Expects that opening a file of these bytes fails with a one-line message that holds the path and every part.
void expect_file_rejected(const std::string& bytes, std::initializer_list<std::string_view> parts) {
    const ScratchFolder scratch;
    const auto path = scratch.write("dump.safetensors", bytes);
    expect_error(ErrorKind::input, [&] { SafetensorsFile file(path); }, {path});
    expect_error(
        ErrorKind::input, [&] { SafetensorsFile file(path); }, parts);
}

/// It only appends, because GCC 12 wrongly warns about `"{" + std::string()` at -O3.
std::string braces(const std::string& inside) {
    std::string text("{");
    text += inside;
    text += '}';
    return text;
}

std::string entry(const std::string& name, const std::string& dtype, const std::string& shape,
                  const std::string& offsets) {
    return "\"" + name + R"(":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}";
}

// The first bytes are the length of the header: 640 = 80 02 are the magic bytes of a pickle, 35615 = 1f 8b those of
// gzip.
TEST(Safetensors, HeaderLengthsThatEqualAnotherMagicAreRead) {
    const ScratchFolder scratch;
    for (const std::size_t length : {640U, 896U, 1152U, 1408U, 35615U}) {
        std::string header = braces(entry("k", "F16", "[1,2]", "[0,4]"));
        header.resize(length, ' ');
        const std::string bytes = safetensors_bytes(header, std::string("\x00\x3e\x80\xc0", 4));
        const SafetensorsFile file(scratch.write("k.safetensors", bytes));
        EXPECT_EQ(file.tensor("k").elements(), 2U) << length;
    }
}

TEST(Safetensors, ReadsTheHundredByteExample) {
    const std::string header =
        R"({"__metadata__":{"format":"pt"},"k":{"dtype":"F16","shape":[1,2],"data_offsets":[0,4]}} )";
    const std::string bytes = safetensors_bytes(header, std::string("\x00\x3e\x80\xc0", 4));
    ASSERT_EQ(bytes.size(), 100U);
    EXPECT_EQ(hex(sha256(bytes)), "af7ea5291479dbb2e51abd54a3925c2543fada68457ac944e6c4e79ae2b3d6a4");
    const ScratchFolder scratch;
    const SafetensorsFile file(scratch.write("k.safetensors", bytes));
    ASSERT_EQ(file.metadata().size(), 1U);
    EXPECT_EQ(*find_metadata(file.metadata(), "format"), "pt");
    EXPECT_EQ(find_metadata(file.metadata(), "layout"), nullptr);
    const auto& k = file.tensor("k");
    EXPECT_EQ(k.dtype, DType::f16);
    EXPECT_EQ(k.shape, (std::vector<std::size_t>{1, 2}));
    EXPECT_EQ(k.offset, 96U);
    EXPECT_EQ(k.elements(), 2U);
    std::vector<double> values(2);
    file.read(k, 0, values);
    EXPECT_EQ(values, (std::vector<double>{1.5, -2.25}));
    file.read(k, 1, std::span(values).first(1));
    EXPECT_EQ(values[0], -2.25);
}

TEST(Safetensors, WriterReproducesTheHundredByteExample) {
    const ScratchFolder scratch;
    const auto path = scratch.path("k.safetensors");
    write_safetensors(path, {{"format", "pt"}}, {tensor_of("k", DType::f16, {1, 2}, {1.5, -2.25})});
    EXPECT_EQ(hex(sha256_of_file(path)), "af7ea5291479dbb2e51abd54a3925c2543fada68457ac944e6c4e79ae2b3d6a4");
    EXPECT_EQ(scratch.files(), 1U);
}

TEST(Safetensors, RoundTripKeepsOrderMetadataAndValues) {
    const ScratchFolder scratch;
    const auto path = scratch.path("all.safetensors");
    std::vector<double> many(20000);  // more than one chunk
    for (std::size_t i = 0; i < many.size(); ++i) many[i] = std::ldexp(static_cast<double>(i % 2000) - 1000.0, -4);
    const Metadata metadata{{"z", "last first"}, {"a", "line\nbreak \"quoted\" \u00e9"}};
    write_safetensors(path, metadata,
                      {tensor_of("half", DType::f16, {100, 200}, many), tensor_of("none", DType::f32, {0, 3}, {}),
                       tensor_of("brain", DType::bf16, {2}, {3.140625, -2.5}), tensor_of("one", DType::f64, {}, {0.1}),
                       tensor_of("single", DType::f32, {4, 5000}, many)});
    const SafetensorsFile file(path);
    EXPECT_EQ(file.metadata(), metadata);
    std::vector<std::string> names;
    for (const auto& tensor : file.tensors()) {
        names.push_back(tensor.name);
        EXPECT_EQ(tensor.offset % (dtype_bits(tensor.dtype) / 8), 0U) << tensor.name << " is not aligned";
    }
    EXPECT_EQ(names, (std::vector<std::string>{"half", "none", "brain", "one", "single"}));
    for (const char* name : {"half", "single"}) {
        std::vector<double> back(many.size());
        file.read(file.tensor(name), 0, back);
        EXPECT_EQ(back, many) << name;
        std::vector<double> part(9000);
        file.read(file.tensor(name), 777, part);
        EXPECT_TRUE(std::equal(part.begin(), part.end(), many.begin() + 777)) << name;
    }
    double one = 0.0;
    file.read(file.tensor("one"), 0, {&one, 1});
    EXPECT_EQ(one, 0.1);
    EXPECT_EQ(file.tensor("none").bytes, 0U);
}

TEST(Safetensors, EmptyFilesAndTensorsAreLegal) {
    const ScratchFolder scratch;
    EXPECT_TRUE(SafetensorsFile(scratch.write("a", safetensors_bytes("{}", ""))).tensors().empty());
    const auto path = scratch.write(
        "b", safetensors_bytes(braces(entry("a", "F32", "[2]", "[0,8]") + "," + entry("e", "F32", "[0]", "[8,8]") +
                                      "," + entry("s", "F32", "[]", "[8,12]")) +
                                   "   ",
                               zeros.substr(0, 12)));
    EXPECT_EQ(SafetensorsFile(path).tensor("s").elements(), 1U);
}

TEST(Safetensors, OtherDtypesAreListedButNotReadAsNumbers) {
    const ScratchFolder scratch;
    const auto path = scratch.write("q.safetensors", safetensors_bytes(braces(entry("codes", "I32", "[1]", "[0,4]") +
                                                                              "," + entry("f4", "F4", "[8]", "[4,8]")),
                                                                       zeros.substr(0, 8)));
    const SafetensorsFile file(path);
    std::vector<double> out(1);
    expect_error(ErrorKind::input, [&] { file.read(file.tensor("codes"), 0, out); },
                 {path, "\"codes\"", "I32", "F16, BF16, F32, F64, F8_E4M3"});
    EXPECT_EQ(file.tensor("f4").elements(), 8U);
}

TEST(Safetensors, CodesAreReadWithoutTheirScale) {
    const ScratchFolder scratch;
    const auto path = scratch.write(
        "codes.safetensors",
        safetensors_bytes(braces(entry("a", "I8", "[2]", "[0,2]") + "," + entry("b", "U8", "[2]", "[2,4]") + "," +
                                 entry("c", "F8_E4M3", "[2]", "[4,6]") + "," + entry("d", "F8_E5M2", "[2]", "[6,8]")),
                          "\xff\x02\xff\x02\x38\xc4\x38\xc4"));
    const SafetensorsFile file(path);
    std::vector<std::vector<double>> found;
    for (const char* name : {"a", "b", "c", "d"}) {
        found.emplace_back(2);
        file.read(file.tensor(name), 0, found.back());
    }
    EXPECT_EQ(found, (std::vector<std::vector<double>>{{-1.0, 2.0}, {255.0, 2.0}, {1.0, -3.0}, {0.5, -4.0}}));
}

TEST(Safetensors, UnknownTensorSuggestsTheNearest) {
    const ScratchFolder scratch;
    const std::string header = braces(entry("layers.0.key", "F16", "[2]", "[0,4]"));
    const SafetensorsFile file(scratch.write("a.safetensors", safetensors_bytes(header, zeros.substr(0, 4))));
    expect_error(ErrorKind::input, [&] { (void)file.tensor("layers.0.kye"); },
                 {"a.safetensors", "\"layers.0.kye\"", "did you mean \"layers.0.key\"?"});
}

TEST(SafetensorsBadInput, Missing) {
    expect_error(ErrorKind::input, [] { SafetensorsFile file("/nowhere/dump.safetensors"); },
                 {"/nowhere/dump.safetensors: no such file"});
}

TEST(SafetensorsBadInput, Folder) {
    const ScratchFolder scratch;
    expect_error(ErrorKind::input, [&] { SafetensorsFile file(scratch.path(".")); }, {"is a folder"});
}

TEST(SafetensorsBadInput, NamedPipeDoesNotHang) {
    const ScratchFolder scratch;
    ASSERT_EQ(::mkfifo(scratch.path("pipe").c_str(), 0600), 0);
    expect_error(ErrorKind::input, [&] { SafetensorsFile file(scratch.path("pipe")); }, {"not a regular file"});
}

TEST(SafetensorsBadInput, Unreadable) {
    if (::geteuid() == 0) GTEST_SKIP() << "root may read everything";
    const ScratchFolder scratch;
    const auto path = scratch.write("secret.safetensors", "x");
    std::filesystem::permissions(path, std::filesystem::perms::none);
    expect_error(ErrorKind::input, [&] { SafetensorsFile file(path); }, {path, "Permission denied"});
}

TEST(SafetensorsBadInput, Empty) { expect_file_rejected("", {"empty (0 bytes"}); }

TEST(SafetensorsBadInput, ShorterThanTheLength) {
    expect_file_rejected("\x58", {"truncated", "at least 8", "found 1"});
}

TEST(SafetensorsBadInput, GitLfsPointer) {
    expect_file_rejected("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146\nsize 4976698672\n",
                         {"git-lfs pointer", "4976698672 bytes (4.98 GB)", "git lfs pull"});
}

TEST(SafetensorsBadInput, WebPage) { expect_file_rejected("<!DOCTYPE html><html></html>", {"web page"}); }

TEST(SafetensorsBadInput, OtherFormats) {
    expect_file_rejected("\x93NUMPY\x01\x00", {".npy array"});
    expect_file_rejected("PK\x03\x04 more", {"zip archive", "unpack it first"});
    expect_file_rejected(zeros, {"zero bytes", "incomplete download"});
    expect_file_rejected("\x80\x02}q", {"pickle"});
}

TEST(SafetensorsBadInput, HeaderLongerThanTheFile) {
    expect_file_rejected(little_endian(5000, 8) + "{}",
                         {"truncated in its header", "expected 5000", "found 2", "likely an incomplete download"});
}

TEST(SafetensorsBadInput, HeaderAboveTheLimit) {
    expect_file_rejected(little_endian(100'000'001, 8) + "{}", {"header of 100000001 bytes", "100000000"});
    expect_file_rejected(little_endian(~std::uint64_t{0}, 8) + "{}", {"header of 18446744073709551615 bytes"});
}

TEST(SafetensorsBadInput, HeaderNotJson) {
    expect_file_rejected(safetensors_bytes(R"({"a":)", ""), {"not valid JSON"});
}

TEST(SafetensorsBadInput, HeaderNotAnObject) {
    expect_file_rejected(safetensors_bytes("[1,2,3]", ""), {"header is not a JSON object"});
    expect_file_rejected(safetensors_bytes("", ""), {""});
}

TEST(SafetensorsBadInput, DeepNesting) {
    std::string deep = R"({"a":)";
    for (int i = 0; i < 100000; ++i) deep += '[';
    expect_file_rejected(safetensors_bytes(deep, ""), {"nested deeper than"});
}

TEST(SafetensorsBadInput, DuplicateNames) {
    expect_file_rejected(
        safetensors_bytes(braces(entry("twice", "F16", "[1]", "[0,2]") + "," + entry("twice", "F16", "[1]", "[2,4]")),
                          zeros.substr(0, 4)),
        {"duplicate name \"twice\""});
}

TEST(SafetensorsBadInput, ReversedOffsets) {
    expect_file_rejected(safetensors_bytes(braces(entry("k", "F16", "[2]", "[4,0]")), zeros.substr(0, 4)),
                         {"tensor \"k\"", "reversed data_offsets [4, 0]"});
}

TEST(SafetensorsBadInput, OutOfRangeOffsets) {
    expect_file_rejected(safetensors_bytes(braces(entry("k", "F16", "[2]", "[100,104]")), zeros.substr(0, 4)),
                         {"tensor \"k\" is out of range", "[100, 104]", "4 bytes of data"});
}

TEST(SafetensorsBadInput, OverlappingOffsets) {
    expect_file_rejected(
        safetensors_bytes(braces(entry("k", "F16", "[4]", "[0,8]") + "," + entry("v", "F16", "[4]", "[4,12]")),
                          zeros.substr(0, 12)),
        {"tensors \"k\" and \"v\" overlap", "ends at 8", "begins at 4"});
}

TEST(SafetensorsBadInput, Holes) {
    expect_file_rejected(
        safetensors_bytes(braces(entry("k", "F16", "[2]", "[0,4]") + "," + entry("v", "F16", "[2]", "[8,12]")),
                          zeros.substr(0, 12)),
        {"hole of 4 bytes before tensor \"v\"", "4 to 8"});
}

TEST(SafetensorsBadInput, TruncatedData) {
    expect_file_rejected(
        safetensors_bytes(braces(entry("k", "F16", "[2]", "[0,4]") + "," + entry("v", "F16", "[4]", "[4,12]")),
                          zeros.substr(0, 9)),
        {"truncated in tensor \"v\"", "expected 128 bytes", "found 125 bytes", "incomplete download"});
}

TEST(SafetensorsBadInput, TrailingBytes) {
    expect_file_rejected(safetensors_bytes(braces(entry("k", "F16", "[2]", "[0,4]")), zeros.substr(0, 7)),
                         {"3 bytes after the last tensor", "expected 66 bytes", "found 69 bytes"});
}

TEST(SafetensorsBadInput, ShapeOverflow) {
    expect_file_rejected(
        safetensors_bytes(braces(entry("k", "F16", "[4294967296,4294967296]", "[0,4]")), zeros.substr(0, 4)),
        {"tensor \"k\"", "[4294967296, 4294967296]", "overflows"});
    expect_file_rejected(
        safetensors_bytes(braces(entry("k", "F64", "[4611686018427387904]", "[0,4]")), zeros.substr(0, 4)),
        {"tensor \"k\"", "overflows"});
}

TEST(SafetensorsBadInput, ShapeAndBytesDisagree) {
    expect_file_rejected(safetensors_bytes(braces(entry("k", "F16", "[2,3]", "[0,10]")), zeros.substr(0, 10)),
                         {"tensor \"k\" of shape [2, 3] and dtype F16 needs 12 bytes", "[0, 10] hold 10"});
}

TEST(SafetensorsBadInput, FractionOfAByte) {
    expect_file_rejected(safetensors_bytes(braces(entry("k", "F4", "[3]", "[0,2]")), zeros.substr(0, 2)),
                         {"tensor \"k\"", "F4", "not a whole number of bytes"});
}

TEST(SafetensorsBadInput, UnknownDtype) {
    expect_file_rejected(safetensors_bytes(braces(entry("k", "F128", "[1]", "[0,16]")), zeros.substr(0, 16)),
                         {"tensor \"k\" has unknown dtype \"F128\""});
}

TEST(SafetensorsBadInput, FieldsMissingOrOfAnotherType) {
    expect_file_rejected(safetensors_bytes(R"({"k":{"shape":[1],"data_offsets":[0,2]}})", "\0\0"),
                         {"\"k\" has no dtype"});
    expect_file_rejected(safetensors_bytes(R"({"k":7})", ""), {"\"k\" has no dtype"});
    expect_file_rejected(safetensors_bytes(braces(entry("k", "F16", "[-1]", "[0,2]")), "\0\0"), {"no usable shape"});
    expect_file_rejected(safetensors_bytes(braces(entry("k", "F16", "[1.0]", "[0,2]")), "\0\0"), {"no usable shape"});
    expect_file_rejected(safetensors_bytes(braces(entry("k", "F16", "[1]", "[0,2,4]")), "\0\0"),
                         {"no usable data_offsets"});
    expect_file_rejected(safetensors_bytes(braces(entry("k", "F16", "[18446744073709551616]", "[0,2]")), "\0\0"), {""});
}

TEST(SafetensorsBadInput, MetadataOfTheWrongType) {
    expect_file_rejected(safetensors_bytes(R"({"__metadata__":[]})", ""), {"__metadata__ is not an object"});
    expect_file_rejected(safetensors_bytes(R"({"__metadata__":{"tokens":512}})", ""),
                         {"metadata \"tokens\" is not a text"});
}

TEST(SafetensorsBadInput, NamesAreEscapedInMessages) {
    expect_file_rejected(
        safetensors_bytes(braces(entry("a\\nb\\u001b[31m", "F17", "[1]", "[0,2]")), zeros.substr(0, 2)),
        {"\"a\\x0ab\\x1b[31m\""});
}

TEST(SafetensorsBadInput, FileThatShrinksBetweenOpenAndRead) {
    const ScratchFolder scratch;
    const auto path = scratch.path("live.safetensors");
    write_safetensors(path, {}, {tensor_of("k", DType::f32, {1000}, std::vector<double>(1000, 1.0))});
    const SafetensorsFile file(path);
    std::filesystem::resize_file(path, 2000);
    std::vector<double> out(1000);
    expect_error(ErrorKind::input, [&] { file.read(file.tensor("k"), 0, out); },
                 {path, "shrank while it was read", "2001"});
}

/// A damaged file must open or be rejected by an Error.
TEST(SafetensorsBadInput, DamageNeverCrashes) {
    const ScratchFolder scratch;
    const auto path = scratch.path("good.safetensors");
    write_safetensors(path, {{"layout", "head,token,dim"}},
                      {tensor_of("layers.0.key", DType::f16, {1, 2, 3}, std::vector<double>(6, 1.0)),
                       tensor_of("layers.0.value", DType::f32, {1, 2, 3}, std::vector<double>(6, 1.0))});
    const std::string good = bytes_of_file(path);
    std::mt19937 random(7);
    std::size_t rejected = 0;
    for (std::size_t round = 0; round < 3000; ++round) {
        std::string bad = good;
        if (round < good.size())
            bad.resize(round);
        else
            for (std::size_t i = 0; i < 1 + round % 3; ++i)
                bad[random() % bad.size()] = static_cast<char>(round % 2 == 0 ? random() : '0' + random() % 75);
        const auto damaged = scratch.write("bad.safetensors", bad);
        try {
            const SafetensorsFile file(damaged);
            for (const auto& tensor : file.tensors()) {
                std::vector<double> out(tensor.elements());
                if (is_block_dtype(tensor.dtype) || is_code_dtype(tensor.dtype)) file.read(tensor, 0, out);
            }
        } catch (const Error& error) {
            EXPECT_EQ(error.kind(), ErrorKind::input) << error.what();
            EXPECT_EQ(std::string_view(error.what()).find('\n'), std::string_view::npos) << error.what();
            ++rejected;
        }
    }
    EXPECT_GT(rejected, good.size());
}

TEST(SafetensorsWriting, FailuresNameThePathAndLeaveNothingBehind) {
    const ScratchFolder scratch;
    const std::vector<TensorSource> tensors{tensor_of("k", DType::f32, {2}, {1.0, 2.0})};
    expect_error(ErrorKind::output, [&] { write_safetensors(scratch.path("no/such/x"), {}, tensors); },
                 {"no/such/x", "folder does not exist"});
    expect_error(ErrorKind::output, [&] { write_safetensors(scratch.path("."), {}, tensors); }, {"is a folder"});
    expect_error(ErrorKind::output, [&] { write_safetensors("/dev/full", {}, tensors); },
                 {"/dev/full", "No space left", "bytes are needed"});
    EXPECT_EQ(scratch.files(), 0U);
}

TEST(SafetensorsWriting, ValueTooLargeForItsDtype) {
    const ScratchFolder scratch;
    const auto path = scratch.write("old.safetensors", "old");
    expect_error(ErrorKind::output,
                 [&] {
                     write_safetensors(path, {}, {tensor_of("k", DType::f16, {3}, {1.0, 65519.0, 70000.0})});
                 },
                 {path, "\"k\"", "F16", "element 2 is 70000"});
    EXPECT_EQ(bytes_of_file(path), "old") << "a failed write must keep the old file";
    EXPECT_EQ(scratch.files(), 1U);
}

TEST(SafetensorsWriting, FollowsLinksAndKeepsDevices) {
    const ScratchFolder scratch;
    const auto target = scratch.write("target.safetensors", "old");
    std::filesystem::create_symlink(target, scratch.path("link"));
    const std::vector<TensorSource> tensors{tensor_of("k", DType::f32, {1}, {1.0})};
    write_safetensors(scratch.path("link"), {}, tensors);
    EXPECT_TRUE(std::filesystem::is_symlink(scratch.path("link")));
    EXPECT_EQ(SafetensorsFile(target).tensors().size(), 1U);
    write_safetensors("/dev/null", {}, tensors);
    EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
}

}  // namespace
}  // namespace spiked::sim
