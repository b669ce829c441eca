#include "sim/io/npy.hpp"

#include <fmt/format.h>
#include <zip.h>

#include <cstdlib>
#include <cstring>
#include <random>

#include "core/files/tests/scratch.hpp"
#include "sim/io/matrix_file.hpp"
#include "sim/io/npz.hpp"
#include "sim/io/tensor_container.hpp"

namespace spiked::sim {
namespace {

std::string header(const std::string& descr, const std::string& shape, const std::string& order = "False") {
    return "{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }\n";
}

std::string f64(std::initializer_list<double> values) {
    std::string bytes;
    for (const double value : values) {
        std::uint64_t bits = 0;
        std::memcpy(&bits, &value, sizeof bits);
        bytes += little_endian(bits, 8);
    }
    return bytes;
}

const std::string six = f64({1, 2, 3, 4, 5, 6});

void expect_array_rejected(const std::string& bytes, std::initializer_list<std::string_view> parts) {
    const ScratchFolder scratch;
    const auto path = scratch.write("a.npy", bytes);
    expect_error(ErrorKind::input, [&] { (void)read_matrix(path); }, {path});
    expect_error(
        ErrorKind::input, [&] { (void)read_matrix(path); }, parts);
}

arma::mat matrix_of(const std::string& bytes) {
    const ScratchFolder scratch;
    return read_matrix(scratch.write("a.npy", bytes));
}

void expect_same_entries(const arma::mat& found, const arma::mat& expected) {
    ASSERT_EQ(found.n_rows, expected.n_rows);
    ASSERT_EQ(found.n_cols, expected.n_cols);
    EXPECT_TRUE(arma::approx_equal(found, expected, "absdiff", 0.0)) << found;
}

TEST(Npy, ReadsBothOrdersAndAllVersions) {
    const arma::mat rows{{1, 2, 3}, {4, 5, 6}};
    const arma::mat columns{{1, 3, 5}, {2, 4, 6}};
    for (const int version : {1, 2, 3}) {
        expect_same_entries(matrix_of(npy_bytes(header("<f8", "(2, 3)"), six, version)), rows);
        expect_same_entries(matrix_of(npy_bytes(header("<f8", "(2, 3)", "True"), six, version)), columns);
    }
    expect_same_entries(matrix_of(npy_bytes(header("<f8", "(6,)"), six)), arma::mat(arma::vec{1, 2, 3, 4, 5, 6}));
    expect_same_entries(matrix_of(npy_bytes("{\"shape\":(2L,3L),'fortran_order':False,'descr':'=f8'}", six)), rows);
}

TEST(Npy, ReadsEveryNumberType) {
    const auto one = [](const std::string& descr, const std::string& bytes) {
        return matrix_of(npy_bytes(header(descr, "(1,)"), bytes))(0, 0);
    };
    EXPECT_EQ(one("<f2", std::string("\x00\x3e", 2)), 1.5);
    EXPECT_EQ(one(">f2", std::string("\x3e\x00", 2)), 1.5);
    EXPECT_EQ(one("<f4", std::string("\x00\x00\xc0\x3f", 4)), 1.5);
    EXPECT_EQ(one(">f8", std::string("\x3f\xf8\0\0\0\0\0\0", 8)), 1.5);
    EXPECT_EQ(one("|i1", "\xff"), -1.0);
    EXPECT_EQ(one("|u1", "\xff"), 255.0);
    EXPECT_EQ(one("|b1", "\x01"), 1.0);
    EXPECT_EQ(one("<i2", "\xfe\xff"), -2.0);
    EXPECT_EQ(one(">u4", std::string("\0\0\1\0", 4)), 256.0);
    EXPECT_EQ(one("<i8", std::string(8, '\xff')), -1.0);
}

TEST(Npy, WrittenMatricesAreReadBack) {
    const ScratchFolder scratch;
    const auto path = scratch.path("m.npy");
    arma::mat matrix(130, 170);
    for (std::size_t i = 0; i < matrix.n_elem; ++i) matrix[i] = 1.0 / static_cast<double>(i + 1);
    write_npy(path, matrix);
    expect_same_entries(read_matrix(path), matrix);
    const std::string bytes = bytes_of_file(path);
    EXPECT_EQ(bytes.size(), 128 + 8 * matrix.n_elem);
    EXPECT_EQ(bytes.substr(0, 10), std::string("\x93NUMPY\x01\x00\x76\x00", 10));
    EXPECT_EQ(bytes[127], '\n');
    EXPECT_EQ(scratch.files(), 1U);
    expect_error(ErrorKind::output, [&] { write_npy(scratch.path("no/m.npy"), matrix); }, {"no/m.npy"});
    expect_error(ErrorKind::output, [&] { write_npy("/dev/full", matrix); }, {"No space left"});
}

TEST(NpyBadInput, MalformedArraysAreRejected) {
    expect_array_rejected("", {"empty"});
    expect_array_rejected("\x93NUMPY", {"truncated", "found 6"});
    expect_array_rejected("1,2,3\n4,5,6\n", {"not a .npy file (its 12 bytes are text)", "name it FILE.txt"});
    expect_array_rejected("version https://git-lfs.github.com/spec/v1\nsize 12\n", {"git-lfs pointer", "12 bytes"});
    expect_array_rejected(npy_bytes(header("<f8", "(2, 3)"), six, 4), {"version 4"});
    expect_array_rejected(npy_bytes(header("<f8", "(2, 3)"), six.substr(1)),
                          {"truncated", "[2, 3]", "needs 48", "found 47"});
    expect_array_rejected(npy_bytes(header("<f8", "(2, 3)"), six + "xy"),
                          {"2 bytes after the array", "needs 48", "found 50"});
    expect_array_rejected(npy_bytes(header("<f8", "(4294967296, 4294967296)"), six), {"overflows"});
    expect_array_rejected(npy_bytes(header("<f8", "(2305843009213693952,)"), six), {"overflows"});
    expect_array_rejected(npy_bytes(header("<f8", "(99999999999999999999,)"), six), {"malformed", "below 2^64"});
    expect_array_rejected(npy_bytes(header("<f8", "(1, 2, 3)"), six),
                          {"[1, 2, 3]", "unknown layout", "save one head as a matrix"});
    expect_array_rejected(npy_bytes(header("<f8", "()"), f64({1})), {"[]", "2 axes"});
    expect_array_rejected(npy_bytes(header("<f8", "(0, 3)"), ""), {"is empty", "[0, 3]"});
}

TEST(Npy, AnArrayOfOneAxisIsOneColumnWithANote) {
    const ScratchFolder scratch;
    const auto column = read_noted_matrix(scratch.write("a.npy", npy_bytes(header("<f8", "(6,)"), six)));
    EXPECT_EQ(column.matrix.n_cols, 1U);
    ASSERT_EQ(column.notes.size(), 1U);
    EXPECT_NE(column.notes[0].find("one axis and is read as one column"), std::string::npos) << column.notes[0];
    EXPECT_TRUE(read_noted_matrix(scratch.write("b.npy", npy_bytes(header("<f8", "(6, 1)"), six))).notes.empty());
}

TEST(NpyBadInput, HeaderLength) {
    expect_array_rejected(std::string("\x93NUMPY\x01\x00\xff\xff", 10) + "{}",
                          {"truncated in its .npy header", "65545"});
    expect_array_rejected(std::string("\x93NUMPY\x02\x00\xff\xff\xff\xff", 12) + "{}", {"header of 4294967295 bytes"});
    expect_array_rejected(std::string("\x93NUMPY\x02\x00\x01\x00", 10), {"truncated", "found 10"});
}

TEST(NpyBadInput, UnsupportedDtypesNameAnAlternative) {
    expect_array_rejected(npy_bytes(header("|V2", "(3,)"), "abcdef"), {"bfloat16", "|V2", "astype(np.float32)"});
    expect_array_rejected(npy_bytes(header("|O", "(1,)"), "pickle"),
                          {"Python objects", "never read", "leave out columns of text, then"});
    expect_array_rejected(npy_bytes(header("<c16", "(3,)"), six), {"complex", "x.real"});
    expect_array_rejected(npy_bytes(header("<U3", "(1,)"), std::string(12, 'a')),
                          {"\"<U3\"", "holds text", "leave out columns"});
    expect_array_rejected(npy_bytes(header("", "(1,)"), "a"), {"is not read"});
    expect_array_rejected(npy_bytes("{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (6,), }", six),
                          {"named fields", "structured_to_unstructured(a)"});
    expect_array_rejected(
        npy_bytes("{'descr': [('a', '<f8'), ('b', '|S8')], 'fortran_order': False, 'shape': (3,), }", six),
        {"named fields", "a[\"field\"]"});
    expect_array_rejected(npy_bytes(header("|V1", "(6,)"), "abcdef"), {"FP8", "a.view(np.uint8)", "--codes e4m3"});
}

TEST(NpyBadInput, HeaderText) {
    for (const char* text : {"", "{", "{}", "[1]", "{'descr': '<f8'}", "{'descr': '<f8', 'descr': '<f8'}",
                             "{'descr': '<f8', 'fortran_order': False, 'shape': (6)}",
                             "{'descr': '<f8', 'fortran_order': 0, 'shape': (6,)}",
                             "{'descr': '<f8', 'fortran_order': False, 'shape': (-6,)}",
                             "{'descr': '<f8', 'fortran_order': False, 'shape': (6,)} import os",
                             "{'descr': '<f8', 'fortran_order': False, 'shape': (6,), 'more': 1}",
                             "{'descr': '<f8, 'fortran_order': False, 'shape': (6,)}",
                             "{'descr': '<f8' 'fortran_order': False, 'shape': (6,)}"})
        expect_array_rejected(npy_bytes(text, six), {"header malformed at its byte"});
}

TEST(NpyBadInput, DamageNeverCrashes) {
    const std::string good = npy_bytes(header("<f8", "(2, 3)"), six);
    const ScratchFolder scratch;
    std::mt19937 random(11);
    for (std::size_t round = 0; round < 3000; ++round) {
        std::string bad = good;
        if (round < good.size())
            bad.resize(round);
        else
            bad[random() % (good.size() - six.size())] =
                static_cast<char>(round % 2 == 0 ? random() : ' ' + random() % 95);
        try {
            (void)read_matrix(scratch.write("bad.npy", bad));
        } catch (const Error& error) {
            EXPECT_EQ(error.kind(), ErrorKind::input) << error.what();
        }
    }
}

TEST(NpyBadInput, FileThatShrinks) {
    const ScratchFolder scratch;
    const auto path = scratch.write("live.npy", npy_bytes(header("<f8", "(2, 3)"), six));
    const ByteFile file(path);
    const auto source = source_of(file);
    const auto read = read_npy_header(source);
    std::filesystem::resize_file(path, file.size() - 8);
    std::vector<double> out(6);
    expect_error(ErrorKind::input, [&] { read_npy_elements(source, read, 0, out); }, {path, "shrank"});
}

struct Member {
    std::string name;
    std::string bytes;
    zip_int32_t method = ZIP_CM_STORE;
};

std::string write_zip(const ScratchFolder& scratch, const std::vector<Member>& members) {
    auto path = scratch.path("a.npz");
    int code = 0;
    zip_t* archive = zip_open(path.c_str(), ZIP_CREATE | ZIP_TRUNCATE, &code);
    for (const auto& member : members) {
        zip_source_t* source = zip_source_buffer(archive, member.bytes.data(), member.bytes.size(), 0);
        const auto index = zip_file_add(archive, member.name.c_str(), source, 0);
        zip_set_file_compression(archive, static_cast<zip_uint64_t>(index), member.method, 0);
    }
    EXPECT_EQ(zip_close(archive), 0);
    return path;
}

TEST(Npz, ReadsMembers) {
    const ScratchFolder scratch;
    const auto a = npy_bytes(header("<f8", "(2, 3)"), six);
    const auto b = npy_bytes(header("<f8", "(2, 3)", "True"), six);
    const auto path = write_zip(scratch, {{"a.npy", a}, {"b.npy", b, ZIP_CM_DEFLATE}, {"note.txt", "hello"}});
    const arma::mat rows{{1, 2, 3}, {4, 5, 6}};
    expect_same_entries(read_matrix(path + ":a"), rows);
    expect_same_entries(read_matrix(path + ":b"), arma::mat{{1, 3, 5}, {2, 4, 6}});
    expect_error(ErrorKind::input, [&] { (void)read_matrix(path); }, {path, "2 tensors", "\"a\", \"b\"", "a.npz:NAME"});
    expect_error(ErrorKind::input, [&] { (void)read_matrix(path + ":aa"); }, {path, "\"aa\"", "did you mean \"a\""});
}

TEST(Npz, TheOnlyMemberNeedsNoName) {
    const ScratchFolder scratch;
    const auto path = write_zip(scratch, {{"x.npy", npy_bytes(header("<f8", "(2, 3)"), six), ZIP_CM_DEFLATE}});
    EXPECT_EQ(read_matrix(path)(1, 2), 6.0);
}

TEST(Npz, ReadsAHeadOfACacheInEitherOrder) {
    const ScratchFolder scratch;
    const auto path = write_zip(scratch, {{"c.npy", npy_bytes(header("<f8", "(3, 1, 2)"), six)},
                                          {"f.npy", npy_bytes(header("<f8", "(3, 1, 2)", "True"), six)}});
    expect_same_entries(read_matrix(path + ":c:1", "head,token,dim"), arma::mat{{3, 4}});
    expect_same_entries(read_matrix(path + ":f:1", "head,token,dim"), arma::mat{{2, 5}});
    expect_same_entries(read_matrix(path + ":f:0", "dim,head,token"), arma::mat{{1, 2, 3}, {4, 5, 6}});
    expect_error(ErrorKind::input, [&] { (void)read_matrix(path + ":c:1"); },
                 {path, "\"c\"", "unknown layout", "save one head as a matrix"});
}

/// The matrix is larger than the chunks that are read.
TEST(Npy, ReadsLongMatricesInEitherOrder) {
    constexpr std::size_t rows = 3001;
    constexpr std::size_t columns = 211;
    const auto entry = [](std::size_t i, std::size_t j) { return static_cast<double>(1000 * i + j); };
    arma::mat expected(rows, columns);
    std::string by_rows;
    for (std::size_t i = 0; i < rows; ++i)
        for (std::size_t j = 0; j < columns; ++j) {
            expected(i, j) = entry(i, j);
            by_rows += f64({entry(i, j)});
        }
    expect_same_entries(matrix_of(npy_bytes(header("<f8", "(3001, 211)"), by_rows)), expected);
    expect_same_entries(matrix_of(npy_bytes(header("<f8", "(211, 3001)", "True"), by_rows)), expected.t());
}

TEST(NpzBadInput, MalformedArchivesAreRejected) {
    const ScratchFolder scratch;
    const auto rejected = [&](const std::vector<Member>& members, std::initializer_list<std::string_view> parts) {
        const auto path = write_zip(scratch, members);
        expect_error(ErrorKind::input, [&] { (void)read_matrix(path); }, {path});
        expect_error(
            ErrorKind::input, [&] { (void)read_matrix(path); }, parts);
    };
    rejected({{"note.txt", "hello"}}, {"it holds no array"});
    rejected({{"a.npy", "hello, hello"}}, {"member \"a\"", "not a .npy array"});
    rejected({{"a.npy", npy_bytes(header("<f8", "(2, 3)"), six.substr(8))}}, {"member \"a\"", "truncated", "found 40"});
    rejected({{"a.npy", npy_bytes(header("|O", "(2, 3)"), six)}}, {"member \"a\"", "Python objects"});
    rejected({{"a.npy", npy_bytes(header("<f8", "(2, 3)"), six), ZIP_CM_BZIP2}}, {"member \"a\"", "zip method 12"});
    expect_error(ErrorKind::input, [&] { (void)read_matrix(scratch.path("none.npz")); }, {"no such file"});
    expect_error(ErrorKind::input, [&] { (void)read_matrix(scratch.write("b.npz", "PK\x03\x04 cut")); },
                 {"b.npz", "not a readable .npz", "incomplete download"});
}

/// The central directory claims sizes that the few compressed bytes cannot hold: the file is rejected before memory is
/// allocated.
TEST(NpzBadInput, CompressionBombIsRejected) {
    const ScratchFolder scratch;
    const auto array = npy_bytes(header("<f8", "(1000000000000,)"), std::string(4096, '\0'));
    const auto path = write_zip(scratch, {{"a.npy", array, ZIP_CM_DEFLATE}});
    expect_error(ErrorKind::input, [&] { (void)read_matrix(path); }, {"truncated", "8000000000000 bytes"});
    std::string bytes = bytes_of_file(path);
    const std::size_t entry = bytes.rfind("PK\x01\x02");
    const std::string huge = little_endian(0xFFFFFFF0U, 4);
    bytes.replace(entry + 24, 4, huge);
    const auto forged = scratch.write("bomb.npz", bytes);
    expect_error(ErrorKind::input, [&] { (void)read_matrix(forged); },
                 {"bomb.npz", "claims 4294967280 bytes (4.29 GB)"});
}

/// Zeros are compressed a thousand times. As a matrix 12 MiB are always read, of a dump 32 MiB of all members in total.
TEST(NpzBadInput, StronglyCompressedMembersAreReadUpToALimit) {
    const ScratchFolder scratch;
    const auto zeros = [](std::size_t megabytes) {
        return npy_bytes(header("<f8", fmt::format("(1, {}, 128)", megabytes * 1024)),
                         std::string(megabytes << 20, '\0'));
    };
    const auto fits = write_zip(
        scratch, {{"a.npy", npy_bytes(header("<f8", "(12288, 128)"), std::string(12 << 20, '\0')), ZIP_CM_DEFLATE}});
    EXPECT_EQ(read_matrix(fits).n_elem, std::size_t{12} << 17);
    const auto large = write_zip(
        scratch,
        {{"a.npy", npy_bytes(header("<f8", "(12289, 128)"), std::string((12 << 20) + 1024, '\0')), ZIP_CM_DEFLATE}});
    expect_error(ErrorKind::input, [&] { (void)read_matrix(large); }, {"compressed so strongly", "np.savez"});
    // The advice of the message works: uncompressed arrays are read.
    const auto stored =
        write_zip(scratch, {{"a.npy", npy_bytes(header("<f8", "(12289, 128)"), std::string((12 << 20) + 1024, '\0'))}});
    EXPECT_EQ(read_matrix(stored).n_rows, 12289U);
    const auto dump = write_zip(
        scratch, {{"layers.0.key.npy", zeros(20), ZIP_CM_DEFLATE}, {"layers.0.value.npy", zeros(20), ZIP_CM_DEFLATE}});
    const auto file = open_tensors(dump);
    std::vector<double> some(10);
    file->read(0, 0, some);
    file->read(0, 100, some);  // the same member counts once
    expect_error(ErrorKind::input, [&] { file->read(1, 0, some); }, {"layers.0.value", "with what was read before"});
}

/// The archive with `count` entries in its directory, which all refer to its first member under different names.
std::string with_entries(const std::string& archive, std::size_t count) {
    const std::size_t directory = archive.find("PK\x01\x02");
    const std::string entry = archive.substr(directory, archive.find("PK\x05\x06") - directory);
    std::string entries;
    for (std::size_t i = 0; i < count; ++i) {
        const std::string name = fmt::format("{}.npy", i);
        entries +=
            entry.substr(0, 28) + little_endian(name.size(), 2) + little_endian(0, 2) + entry.substr(32, 14) + name;
    }
    return archive.substr(0, directory) + entries + "PK\x05\x06" + little_endian(0, 4) + little_endian(count, 2) +
           little_endian(count, 2) + little_endian(entries.size(), 4) + little_endian(directory, 4) +
           little_endian(0, 2);
}

/// Each header is unpacked when the file is opened, and blanks in a header are compressed as strongly as zeros.
TEST(NpzBadInput, HeadersCountTowardsTheLimit) {
    const ScratchFolder scratch;
    std::string padded = header("<f8", "(2, 3)");
    padded.insert(padded.size() - 1, std::string(65000 - padded.size(), ' '));
    const std::string archive = bytes_of_file(write_zip(scratch, {{"a.npy", npy_bytes(padded, six), ZIP_CM_DEFLATE}}));
    EXPECT_EQ(NpzFile(scratch.write("some.npz", with_entries(archive, 500))).members().size(), 500U);
    const auto many = scratch.write("many.npz", with_entries(archive, 1000));
    expect_error(ErrorKind::input, [&] { (void)NpzFile(many); }, {"many.npz", "compressed so strongly"});
    // Headers that are not compressed are never rejected.
    const std::string plain = bytes_of_file(write_zip(scratch, {{"a.npy", npy_bytes(header("<f8", "(2, 3)"), six)}}));
    EXPECT_EQ(NpzFile(scratch.write("plain.npz", with_entries(plain, 4000))).members().size(), 4000U);
}

/// libzip compares all names of the same hash with each other before an archive is open.
TEST(NpzBadInput, DirectoriesOfThousandsOfMembersAreRejected) {
    const ScratchFolder scratch;
    const std::string archive = bytes_of_file(write_zip(scratch, {{"a.npy", npy_bytes(header("<f8", "(2, 3)"), six)}}));
    const auto rejected = [&](const std::string& bytes) {
        const auto path = scratch.write("many.npz", bytes);
        expect_error(ErrorKind::input, [&] { (void)NpzFile(path); }, {"many.npz", "at most 4096 members"});
    };
    const std::string many = with_entries(archive, 4097);
    EXPECT_EQ(NpzFile(scratch.write("some.npz", with_entries(archive, 4096))).members().size(), 4096U);
    rejected(many);
    rejected(many + std::string(10, 'x'));  // a comment
    // A zip64 end record states the number instead of the end record.
    const auto long_archive = [&](std::size_t count) {
        std::string bytes = with_entries(archive, count);
        const std::size_t end = bytes.rfind("PK\x05\x06");
        const std::size_t directory = archive.find("PK\x01\x02");
        std::string last = bytes.substr(end);
        bytes.resize(end);
        last.replace(8, 4, "\xff\xff\xff\xff");
        return bytes + "PK\x06\x06" + little_endian(44, 8) + little_endian(45, 2) + little_endian(45, 2) +
               little_endian(0, 8) + little_endian(count, 8) + little_endian(count, 8) +
               little_endian(end - directory, 8) + little_endian(directory, 8) + "PK\x06\x07" + little_endian(0, 4) +
               little_endian(end, 8) + little_endian(1, 4) + last;
    };
    EXPECT_EQ(NpzFile(scratch.write("some.npz", long_archive(300))).members().size(), 300U);
    rejected(long_archive(4097));
    // The record need not state more than 65536 members, and several end records may refer to one directory.
    std::string unstated = with_entries(archive, 65537);
    EXPECT_EQ(unstated.substr(unstated.rfind("PK\x05\x06") + 8, 2), little_endian(1, 2));
    rejected(unstated);
    const std::string some = with_entries(archive, 500);
    const std::string end = some.substr(some.rfind("PK\x05\x06"));
    std::string repeated = some;
    for (int i = 0; i < 10; ++i) repeated += end;
    rejected(repeated);
}

TEST(NpzBadInput, DamageIsFoundByTheChecksum) {
    const ScratchFolder scratch;
    const auto path = write_zip(scratch, {{"a.npy", npy_bytes(header("<f8", "(2, 3)"), six)}});
    std::string bytes = bytes_of_file(path);
    bytes[bytes.find(six) + 5] = '\x55';
    const auto damaged = scratch.write("damaged.npz", bytes);
    expect_error(ErrorKind::input, [&] { (void)read_matrix(damaged); },
                 {"damaged.npz", "member \"a\" is damaged", "CRC"});
}

TEST(Npz, ReadsTheOpenedFileAfterItWasReplaced) {
    const ScratchFolder scratch;
    const auto path = write_zip(scratch, {{"a.npy", npy_bytes(header("<f8", "(2, 3)"), six), ZIP_CM_DEFLATE}});
    const NpzFile file(path);
    std::filesystem::rename(path, scratch.path("old.npz"));
    write_zip(scratch, {{"a.npy", npy_bytes(header("<f8", "(2, 3)"), f64({9, 9, 9, 9, 9, 9}))}});
    const auto bytes = file.unpack(file.members().front());
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes.data()) + bytes.size() - six.size(), six.size()), six);
}

TEST(NpzBadInput, FileThatShrinksIsReportedAsSuch) {
    const ScratchFolder scratch;
    const auto path = write_zip(scratch, {{"a.npy", npy_bytes(header("<f8", "(2, 3)"), six)},
                                          {"b.npy", npy_bytes(header("<f8", "(2, 3)"), six)}});
    const NpzFile file(path);
    std::filesystem::resize_file(path, std::filesystem::file_size(path) - 150);
    expect_error(ErrorKind::input, [&] { (void)file.unpack(file.members().back()); },
                 {"a.npz: shrank while it was read"});
}

TEST(NpzBadInput, DamageNeverCrashes) {
    const ScratchFolder scratch;
    const std::string good =
        bytes_of_file(write_zip(scratch, {{"a.npy", npy_bytes(header("<f8", "(2, 3)"), six), ZIP_CM_DEFLATE},
                                          {"b.npy", npy_bytes(header("<f4", "(12,)"), six)}}));
    std::mt19937 random(13);
    for (std::size_t round = 0; round < 2000; ++round) {
        std::string bad = good;
        if (round < good.size())
            bad.resize(round);
        else
            bad[random() % bad.size()] = static_cast<char>(random());
        try {
            const NpzFile file(scratch.write("bad.npz", bad));
            for (const auto& member : file.members()) (void)file.unpack(member);
        } catch (const Error& error) {
            EXPECT_EQ(error.kind(), ErrorKind::input) << error.what();
        }
    }
}

bool has_numpy() { return std::system("/usr/bin/python3 -c 'import numpy' 2>/dev/null") == 0; }

int python(const std::string& folder, const std::string& program) {
    return std::system(("cd '" + folder + "' && /usr/bin/python3 -c '" + program + "'").c_str());
}

TEST(NumPy, ExchangesFilesInBothDirections) {
    if (!has_numpy()) GTEST_SKIP() << "no NumPy at /usr/bin/python3";
    const ScratchFolder scratch;
    arma::mat matrix(5, 7);
    for (std::size_t i = 0; i < 5; ++i)
        for (std::size_t j = 0; j < 7; ++j) matrix(i, j) = static_cast<double>(10 * i + j);
    write_npy(scratch.path("ours.npy"), matrix);
    ASSERT_EQ(python(scratch.path("."), R"(
import numpy as np
from numpy.lib import format
a = np.load("ours.npy")
assert a.shape == (5, 7) and a.dtype == np.float64 and a[3, 4] == 34 and a[0, 6] == 6
for t in "<f2 <f4 <f8 >f2 >f4 >f8 i1 i2 >i4 i8 u1 u2 >u4 u8".split():
    np.save("c-%s.npy" % t, a.astype(t)); np.save("f-%s.npy" % t, np.asfortranarray(a.astype(t)))
for v in ((1, 0), (2, 0), (3, 0)):
    with open("v%d.npy" % v[0], "wb") as f: format.write_array(f, a, version=v)
np.savez("plain.npz", a=a.astype("f2"), b=a.T, c=np.array("text"))
np.savez_compressed("packed.npz", a=a.astype("f4"), b=np.zeros((300, 300)))
np.save("bool.npy", a > 3)
)"),
              0);
    for (const char* t : {"<f2", "<f4", "<f8", ">f2", ">f4", ">f8", "i1", "i2", ">i4", "i8", "u1", "u2", ">u4", "u8"})
        for (const char* order : {"c-", "f-"}) {
            SCOPED_TRACE(std::string(order) + t);
            expect_same_entries(read_matrix(scratch.path(std::string(order) + t + ".npy")), matrix);
        }
    for (const char* version : {"v1.npy", "v2.npy", "v3.npy"})
        expect_same_entries(read_matrix(scratch.path(version)), matrix);
    expect_same_entries(read_matrix(scratch.path("plain.npz") + ":a"), matrix);
    expect_same_entries(read_matrix(scratch.path("plain.npz") + ":b"), matrix.t());
    expect_same_entries(read_matrix(scratch.path("packed.npz") + ":a"), matrix);
    expect_same_entries(read_matrix(scratch.path("packed.npz") + ":b"), arma::mat(300, 300, arma::fill::zeros));
    expect_same_entries(read_matrix(scratch.path("bool.npy")), arma::conv_to<arma::mat>::from(matrix > 3));
    expect_error(ErrorKind::input, [&] { (void)read_matrix(scratch.path("plain.npz") + ":c"); },
                 {"member \"c\"", "<U4"});
}

}  // namespace
}  // namespace spiked::sim
