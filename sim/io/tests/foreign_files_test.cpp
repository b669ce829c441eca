#include <fmt/format.h>
#include <zlib.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "core/files/tests/scratch.hpp"
#include "sim/io/file_formats.hpp"
#include "sim/io/matrix_file.hpp"
#include "sim/io/npy.hpp"
#include "sim/io/tensor_container.hpp"

// Files of MATLAB, Matrix Market and SciPy, and files of other programs that are recognised and not read.

namespace spiked::sim {
namespace {

std::string data_file(const std::string& name) { return std::string(SPIKED_SOURCE_DIR) + "/sim/io/tests/data/" + name; }

void expect_matrix(const std::string& spec, const arma::mat& expected) {
    const arma::mat found = read_matrix(spec);
    ASSERT_EQ(arma::size(found), arma::size(expected)) << spec;
    EXPECT_TRUE(arma::approx_equal(found, expected, "absdiff", 0.0)) << spec << "\n" << found;
}

void expect_rejected_matrix(const std::string& spec, std::initializer_list<std::string_view> parts) {
    expect_error(
        ErrorKind::input, [&] { (void)read_matrix(spec); }, parts);
}

/// An element of a MAT-file, padded to 8 bytes.
std::string mat_part(std::uint32_t type, const std::string& data) {
    return little_endian(type, 4) + little_endian(data.size(), 4) + data + std::string((8 - data.size() % 8) % 8, '\0');
}

/// A MAT-file with one variable `x` of a class, worked from "MAT-File Format", table 1-1.
std::string mat_bytes(std::uint32_t kind, std::uint32_t rows, std::uint32_t columns, const std::string& rest) {
    const std::string variable = mat_part(6, little_endian(kind, 4) + little_endian(0, 4)) +
                                 mat_part(5, little_endian(rows, 4) + little_endian(columns, 4)) +
                                 little_endian(1U << 16U | 1U, 4) + std::string("x\0\0\0", 4) + rest;
    std::string header = "MATLAB 5.0 MAT-file";
    header.resize(124, ' ');
    return header + std::string("\0\1IM", 4) + mat_part(14, variable);
}

const arma::mat half_numbers{{.5, 1.5, 2.5}, {3.5, 4.5, 5.5}};
const arma::mat sparse{{0, 2, 0}, {1, 0, 3}};

TEST(MatFile, ReadsFullAndSparseVariablesOfEveryVersion) {
    for (const auto& name : {"level5.mat", "deflated.mat", "hdf5.mat"}) {
        expect_matrix(data_file(name) + ":x", half_numbers);
        expect_matrix(data_file(name) + ":s", sparse);
    }
    expect_matrix(data_file("level5.mat") + ":b", arma::mat{{0, 0, 1}, {1, 1, 1}});
    expect_matrix(data_file("hdf5.mat") + ":g", arma::mat{{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9, 10, 11}});
}

TEST(MatFile, AnArrayOfThreeAxesIsATensorInFortranOrder) {
    const auto file = open_tensors(data_file("level5.mat"));
    const auto& k = file->tensors().at(2);
    EXPECT_EQ(k.shape, (std::vector<std::size_t>{2, 3, 2}));
    // Element (head, token, dim) of numpy.arange(12).reshape(2, 3, 2) is 6 head + 2 token + dim.
    const arma::mat head = read_matrix(data_file("level5.mat") + ":k:1", "head,token,dim");
    EXPECT_TRUE(arma::approx_equal(head, arma::mat{{6, 7}, {8, 9}, {10, 11}}, "absdiff", 0.0)) << head;
}

TEST(MatFile, WhatIsNoNumberIsListedAndNotRead) {
    expect_rejected_matrix(data_file("level5.mat") + ":t", {"\"t\"", "class char", "save the numbers"});
    expect_rejected_matrix(data_file("level5.mat") + ":c", {"\"c\"", "class cell"});
    const ScratchFolder scratch;
    const std::string number = mat_part(9, little_endian(0, 8));
    expect_rejected_matrix(scratch.write("z.mat", mat_bytes(0x806, 1, 1, number + number)),
                           {"complex numbers", "[real(x) -imag(x); imag(x) real(x)]"});
}

TEST(MatFile, ObjectsOfVersionSevenPointThreeAreNotTheirReferences) {
    const ScratchFolder scratch;
    const std::string bytes = bytes_of_file(data_file("hdf5.mat"));
    for (const std::string name : {"string", "table*", "sparse"}) {
        std::string object = bytes;
        for (std::size_t at = 0; (at = object.find("double", at)) != object.npos;) object.replace(at, 6, name);
        expect_rejected_matrix(scratch.write("o.mat", object) + ":x", {"is of class \"" + name, "save the numbers"});
    }
    if (std::system("/usr/bin/python3 -c 'import h5py' 2>/dev/null") != 0) GTEST_SKIP() << "no h5py";
    ASSERT_EQ(std::system(("cd '" + scratch.path(".") + R"(' && /usr/bin/python3 -c '
import h5py, numpy as np
with h5py.File("t.mat", "w", userblock_size=512) as f:
    for name, kind, data in (("T", "table", np.array([[0xdd000000, 2, 1, 1, 1, 1]], "u4")), ("i", "int8", np.eye(2, dtype="i1"))):
        d = f.create_dataset(name, data=data)
        d.attrs["MATLAB_class"] = np.bytes_(kind)
    f["T"].attrs["MATLAB_object_decode"] = np.int32(3)
with open("t.mat", "r+b") as f: f.write(b"MATLAB 7.3 MAT-file".ljust(124) + b"\0\2IM")
')")
                              .c_str()),
              0);
    expect_rejected_matrix(scratch.path("t.mat") + ":T", {"is of class \"opaque, table\""});
    expect_matrix(scratch.path("t.mat") + ":i", arma::mat{{1, 0}, {0, 1}});
}

/// Level 4: one variable, type and numbers as given.
std::string mat4_bytes(unsigned type, unsigned rows, unsigned columns, unsigned complex, const std::string& numbers) {
    std::string bytes;
    for (const unsigned word : {type, rows, columns, complex, 2U}) bytes += little_endian(word, 4);
    return bytes + std::string("x\0", 2) + numbers;
}

TEST(MatFile, OfLevelFourIsRead) {
    const ScratchFolder scratch;
    expect_matrix(scratch.write("a.mat", mat4_bytes(50, 2, 3, 0, "\1\2\3\4\5\xFF")), arma::mat{{1, 3, 5}, {2, 4, 255}});
    expect_matrix(scratch.write("b.mat", mat4_bytes(30, 1, 2, 0, std::string("\xFF\xFF\2\1", 4))),
                  arma::mat{{-1, 258}});
    // The other byte order, which the thousands of the type state.
    std::string other;
    for (const unsigned word : {1030U, 1U, 2U, 0U, 2U}) {
        std::string bytes = little_endian(word, 4);
        std::reverse(bytes.begin(), bytes.end());
        other += bytes;
    }
    expect_matrix(scratch.write("c.mat", other + std::string("x\0\xFF\xFF\1\2", 6)), arma::mat{{-1, 258}});
    // A sparse matrix of 2 x 3: entries (1, 2) = 7 and (2, 3) = 9, then its size.
    expect_matrix(scratch.write("d.mat", mat4_bytes(52, 3, 3, 0, "\1\2\2\2\3\3\7\x9" + std::string(1, '\0'))),
                  arma::mat{{0, 7, 0}, {0, 0, 9}});
    expect_rejected_matrix(scratch.write("e.mat", mat4_bytes(51, 1, 2, 0, "ab")), {"\"x\" holds text", "real numbers"});
    expect_rejected_matrix(scratch.write("f.mat", mat4_bytes(50, 1, 2, 1, "abcd")), {"holds complex numbers"});
    expect_rejected_matrix(scratch.write("g.mat", mat4_bytes(0, 1U << 30U, 1U << 30U, 0, "abcd")), {"truncated"});
    expect_rejected_matrix(scratch.write("h.mat", mat4_bytes(50, 1, 2, 0, "ab") + std::string(30, 'a')),
                           {"at byte 24: no variable begins"});
    expect_rejected_matrix(scratch.write("i.mat", mat4_bytes(52, 1, 3, 0, "\xff\xff" + std::string(1, '\0')) + "x"),
                           {"damaged"});
    // Known by its content whatever its name, and never a table.
    for (const char* name : {"table.csv", "table.txt"})
        expect_rejected_matrix(scratch.write(name, mat4_bytes(50, 1, 2, 0, "ab")),
                               {"a MATLAB or Octave file", "FILE.mat"});
}

TEST(MatFileReference, FilesOfSciPyOfLevelFourHoldTheirNumbers) {
    if (std::system("/usr/bin/python3 -c 'import scipy.io, scipy.sparse' 2>/dev/null") != 0) GTEST_SKIP() << "no SciPy";
    const ScratchFolder scratch;
    ASSERT_EQ(std::system(("cd '" + scratch.path(".") + R"(' && /usr/bin/python3 -c '
import numpy as np, scipy.io, scipy.sparse
r = np.random.default_rng(1); x = r.normal(size=(7, 3)); s = scipy.sparse.random(9, 4, .3, random_state=r)
np.save("x.npy", x); np.save("s.npy", s.toarray()); np.save("f.npy", x.astype("f4"))
scipy.io.savemat("a.mat", {"x": x, "s": s, "f": x.astype("f4"), "t": "text"}, format="4")
')")
                              .c_str()),
              0);
    for (const char* name : {"x", "s", "f"})
        expect_matrix(scratch.path("a.mat:") + name, read_matrix(scratch.path(name) + std::string(".npy")));
}

const char* const octave_file =
    "# Created by Octave 8.4.0, Mon Jan 01 10:00:00 2024 UTC <a@b>\n"
    "# name: a\n# type: matrix\n# rows: 2\n# columns: 3\n 1 2.5 -3\n 4 Inf 6e-1\n\n\n"
    "# name: t\n# type: string\n# elements: 1\n# length: 5\n1 2 3\n\n\n"
    "# name: k\n# type: int32 matrix\n# ndims: 3\n 2 1 2\n  1\n  2\n  3\n  4\n\n\n"
    "# name: b\n# type: bool matrix\n# ndims: 2\n 2 2\n 1\n 0\n 0\n 1\n\n\n"
    "# name: s\n# type: sparse matrix\n# nnz: 2\n# rows: 2\n# columns: 3\n2 1 5\n1 3 -7\n\n\n"
    "# name: x\n# type: scalar\n2.5\n\n\n"
    "# name: z\n# type: complex matrix\n# rows: 1\n# columns: 1\n (1,2)\n\n\n"
    "# name: last\n# type: float matrix\n# rows: 1\n# columns: 2\n 8 9\n";

TEST(OctaveText, MatricesAreRead) {
    const ScratchFolder scratch;
    std::string text = octave_file;
    const std::string path = scratch.write("a.mat", text);
    expect_matrix(path + ":s", arma::mat{{0, 0, -7}, {5, 0, 0}});
    expect_matrix(path + ":b", arma::mat{{1, 0}, {0, 1}});
    expect_matrix(path + ":x", arma::mat(1, 1, arma::fill::value(2.5)));
    expect_matrix(path + ":last", arma::mat{{8, 9}});
    text.replace(text.find("Inf"), 3, "5.0");
    expect_matrix(scratch.write("b.mat", text) + ":a", arma::mat{{1, 2.5, -3}, {4, 5, 0.6}});
    const auto file = open_tensors(path);
    ASSERT_EQ(file->tensors().size(), 8U);
    EXPECT_EQ(file->tensors()[2].shape, (std::vector<std::size_t>{2, 1, 2}));
    std::vector<double> third(1);
    file->read(2, 2, third);
    EXPECT_EQ(third[0], 3.0);
    expect_rejected_matrix(path + ":t", {"\"t\" is of type \"string\"", "real numbers"});
    expect_rejected_matrix(path + ":z", {"\"complex matrix\""});
    // Its comments are not those of a table.
    for (const char* name : {"table.csv", "table.txt", "table.dat"})
        expect_rejected_matrix(scratch.write(name, text), {"a MATLAB or Octave file", "FILE.mat"});
    // A comment that only looks like it.
    expect_matrix(scratch.write("c.txt", "# name: run 7\n1 2\n3 4.5\n"), arma::mat{{1, 2}, {3, 4.5}});
}

TEST(OctaveText, DamagedFilesAreRejected) {
    const ScratchFolder scratch;
    const std::string head = "# name: a\n# type: matrix\n";
    const auto rejected = [&](const std::string& text, std::initializer_list<std::string_view> parts) {
        expect_rejected_matrix(scratch.write("a.mat", text) + ":a", parts);
    };
    rejected(head + "# rows: 2\n# columns: 2\n 1 2\n 3\n", {"3 numbers", "[2, 2]"});
    rejected(head + "# rows: 2\n# columns: 2\n 1 2\n 3 x\n", {"line 6", "\"x\" is no number"});
    rejected(head + "# rows: 4000000000\n# columns: 2\n 1 2\n", {"impossible size"});
    rejected(head + "# ndims: 3\n 1 2\n 1\n 2\n", {"other axes"});
    rejected(head + "# rows: 2147483648\n# columns: 2147483648\n 1\n", {"1 numbers"});
    rejected(head + " 1 2\n", {"2 numbers"});
    std::string many = head;
    for (int i = 0; i < 4096; ++i) many += "# name: a\n";
    rejected(many, {"line 4098", "more than 4096 variables"});
    rejected("# name: a\n# type: sparse matrix\n# nnz: 1\n# ndims: 1\n 5\n 1 1 1\n", {"damaged"});
    rejected("# name: a\n# type: sparse matrix\n# nnz: 1\n# rows: 2\n# columns: 2\n3 1 1\n", {"row 2", "2 x 2"});
    rejected("# name: a\n# type: sparse matrix\n# nnz: 1\n# rows: 100000\n# columns: 100000\n3 1 1\n", {"sparse"});
    rejected(head + "# rows: 1\n# columns: 1\n 1\n# name: s\n# type: scalar struct\n# ndims: 2\n 1 1\n",
             {"\"s\" is a scalar struct", "save -text x.mat NAME"});
}

TEST(MatFile, ValuesAreKeptInNarrowTypesAndInEitherByteOrder) {
    const ScratchFolder scratch;
    expect_matrix(scratch.write("a.mat", mat_bytes(6, 2, 2, mat_part(1, std::string("\1\2\3\xFC", 4)))),
                  arma::mat{{1, 3}, {2, -4}});
}

TEST(MatFileBadInput, SizesThatTheFileDoesNotHoldAreRejected) {
    const ScratchFolder scratch;
    const std::string one = mat_part(9, little_endian(0, 8));
    expect_rejected_matrix(scratch.write("a.mat", mat_bytes(6, 1U << 30U, 1U << 30U, one)), {"a.mat", "damaged"});
    expect_rejected_matrix(scratch.write("b.mat", mat_bytes(6, 1, 2, one)), {"b.mat", "1 numbers", "[1, 2]"});
    expect_rejected_matrix(scratch.write("c.mat", mat_bytes(6, 1, 1, one).substr(0, 150)), {"c.mat", "truncated"});
    expect_rejected_matrix(
        scratch.write("d.mat", mat_bytes(5, 1U << 20U, 1U << 20U, mat_part(5, "") + mat_part(5, "") + one)),
        {"sparse", "dense"});
    const std::string row = mat_part(5, little_endian(7, 4));
    const std::string columns = mat_part(5, little_endian(0, 4) + little_endian(1, 4));
    expect_rejected_matrix(scratch.write("e.mat", mat_bytes(5, 2, 1, row + columns + one)), {"row 7", "2 x 1"});
    // A variable that unpacks to a gigabyte of zeros.
    std::string packed(1 << 20, '\0');
    uLongf size = packed.size();
    const std::string zeros(std::size_t{64} << 20U, '\0');
    const std::string large = mat_bytes(6, 8, 1U << 20U, mat_part(9, zeros)).substr(128);
    ASSERT_EQ(compress(reinterpret_cast<Bytef*>(packed.data()), &size, reinterpret_cast<const Bytef*>(large.data()),
                       large.size()),
              Z_OK);
    packed.resize(size);
    expect_rejected_matrix(scratch.write("f.mat", mat_bytes(6, 1, 1, one).substr(0, 128) + little_endian(15, 4) +
                                                      little_endian(size, 4) + packed),
                           {"unpacks"});
}

/// Each variable is within its limit, and all together are not.
TEST(MatFileBadInput, VariablesTogetherMayNotUnpackToMuchMoreThanTheirFile) {
    const ScratchFolder scratch;
    constexpr std::size_t variables = 40, megabyte = 1 << 20;
    const std::string zeros(megabyte, '\0');
    std::string file;
    for (std::size_t i = 0; i < variables; ++i) {
        std::string one = mat_bytes(6, 1, megabyte, mat_part(1, zeros));
        if (i == 0) file = one.substr(0, 128);
        one.erase(0, 128);
        one[one.find('x')] = static_cast<char>('A' + i);
        std::string packed(megabyte, '\0');
        uLongf size = packed.size();
        ASSERT_EQ(compress(reinterpret_cast<Bytef*>(packed.data()), &size, reinterpret_cast<const Bytef*>(one.data()),
                           one.size()),
                  Z_OK);
        file += little_endian(15, 4) + little_endian(size, 4) + packed.substr(0, size);
    }
    const auto tensors = open_tensors(scratch.write("a.mat", file));
    ASSERT_EQ(tensors->tensors().size(), variables);
    std::array<double, 1> value{1.0};
    for (std::size_t i = 0; i < 30; ++i) tensors->read(i, 0, value);
    EXPECT_EQ(value[0], 0.0);
    tensors->read(0, 0, value);  // counted once
    expect_error(ErrorKind::input,
                 [&] {
                     for (std::size_t i = 30; i < variables; ++i) tensors->read(i, 0, value);
                 },
                 {"a.mat", "unpacks, with what was read before"});
}

TEST(MatFileBadInput, TwoVariablesOfOneNameAreRejected) {
    const ScratchFolder scratch;
    const std::string one = mat_bytes(6, 1, 1, mat_part(9, little_endian(0, 8)));
    expect_rejected_matrix(scratch.write("a.mat", one + one.substr(128)) + ":x", {"two variables named \"x\""});
}

TEST(MatFileBadInput, CirclesInAnHdf5FileEnd) {
    const ScratchFolder scratch;
    std::string bytes = bytes_of_file(data_file("hdf5.mat"));
    const std::size_t tree = bytes.find("TREE");
    ASSERT_NE(tree, std::string::npos);
    // The root of the tree of names becomes its own child.
    bytes[tree + 5] = 1;
    bytes.replace(tree + 32, 8, little_endian(tree - 512, 8));
    expect_rejected_matrix(scratch.write("a.mat", bytes) + ":x", {"a.mat", "damaged HDF5 file", "circles"});
}

TEST(MatrixMarket, ReadsArraysAndCoordinates) {
    const ScratchFolder scratch;
    const auto read = [&](const std::string& text) { return scratch.write("m.mtx", "%%MatrixMarket matrix " + text); };
    expect_matrix(read("array real general\n% by columns\n2 2\n1\n2.5\n\n-3e1\n4\n"), arma::mat{{1, -30}, {2.5, 4}});
    expect_matrix(read("array real symmetric\n2 2\n1\n2\n3\n"), arma::mat{{1, 2}, {2, 3}});
    expect_matrix(read("array real skew-symmetric\n3 3\n1\n2\n3\n"), arma::mat{{0, -1, -2}, {1, 0, -3}, {2, 3, 0}});
    expect_matrix(read("coordinate integer general\n2 3 2\n2 3 5\n1 1 -4\n"), arma::mat{{-4, 0, 0}, {0, 0, 5}});
    expect_matrix(read("coordinate real skew-symmetric\n2 2 1\n2 1 7\n"), arma::mat{{0, -7}, {7, 0}});
    // Entries at the same place are summed.
    expect_matrix(read("coordinate real general\n1 2 3\n1 1 1.5\n1 1 2\n1 2 1\n"), arma::mat{{3.5, 1}});
    const auto pattern = read_noted_matrix(read("coordinate pattern symmetric\n2 2 2\n1 1\n2 1\n"));
    EXPECT_TRUE(arma::approx_equal(pattern.matrix, arma::mat{{1, 1}, {1, 0}}, "absdiff", 0.0));
    ASSERT_EQ(pattern.notes.size(), 1U);
    EXPECT_NE(pattern.notes[0].find("read as 1"), std::string::npos) << pattern.notes[0];
}

TEST(MatrixMarketBadInput, NamesTheLine) {
    const ScratchFolder scratch;
    const auto fails = [&](const std::string& text, std::initializer_list<std::string_view> parts) {
        expect_rejected_matrix(scratch.write("m.mtx", "%%MatrixMarket matrix " + text), parts);
    };
    fails("coordinate complex general\n1 1 1\n1 1 2 3\n", {"complex numbers", "each twice"});
    fails("coordinate real general\n2 2 1\n3 1 2\n", {"row 2, column 0", "2 x 2"});
    fails("coordinate real general\n2 2 1\n0 1 2\n", {"row -1"});
    fails("coordinate real general\n2 2 2\n1 1 2\n", {"1 entries", "2"});
    fails("array real general\n1 1\n1\n2\n", {"m.mtx:4:", "more entries"});
    fails("array real general\n1 1\nx\n", {"m.mtx:3:", "\"x\""});
    fails("array real symmetric\n1 2\n1\n2\n", {"m.mtx:2:", "not square"});
    fails("coordinate real general\n900000000 900000000 1\n1 1 2\n", {"900000000 x 900000000", "toarray"});
    fails("vector real general\n", {"m.mtx:1:"});
    fails("array real general\n", {"before its sizes"});
}

TEST(ScipySparse, IsReadAsTheMatrixAndNeverAsItsData) {
    const auto csr = read_noted_matrix(data_file("csr.npz"));
    EXPECT_TRUE(arma::approx_equal(csr.matrix, sparse, "absdiff", 0.0)) << csr.matrix;
    ASSERT_EQ(csr.notes.size(), 1U);
    EXPECT_NE(csr.notes[0].find("sparse matrix of SciPy (csr, 3 stored entries)"), std::string::npos) << csr.notes[0];
    expect_matrix(data_file("dia.npz") + ":matrix", sparse);
    expect_rejected_matrix(data_file("csr.npz") + ":data", {"no tensor \"data\""});
}

TEST(ScipySparse, WithoutItsFormatIsReadByTheLengthOfIndptr) {
    if (std::system("/usr/bin/python3 -c 'import numpy' 2>/dev/null") != 0) GTEST_SKIP() << "no NumPy";
    const ScratchFolder scratch;
    // The arrays of one matrix by rows and by columns.
    ASSERT_EQ(std::system(("cd '" + scratch.path(".") + R"(' && /usr/bin/python3 -c '
import numpy as np
np.savez("r.npz", data=np.array([2., 1, 3]), indices=np.array([1, 0, 2]), indptr=np.array([0, 1, 3]), shape=(2, 3))
np.savez("c.npz", data=np.array([1., 2, 3]), indices=np.array([1, 0, 1]), indptr=np.array([0, 1, 2, 3]), shape=(2, 3))
np.savez("x.npz", data=np.array([1., 2, 3]), indices=np.array([1, 0, 1]), indptr=np.array([0, 3]), shape=(2, 3))
')")
                              .c_str()),
              0);
    for (const std::string kind : {"r", "c"}) {
        const auto found = read_noted_matrix(scratch.path(kind + ".npz"));
        EXPECT_TRUE(arma::approx_equal(found.matrix, sparse, "absdiff", 0.0)) << found.matrix;
        ASSERT_EQ(found.notes.size(), 1U);
        EXPECT_NE(found.notes[0].find("(cs" + kind + " by the length of indptr, 3 stored entries)"), std::string::npos)
            << found.notes[0];
        expect_rejected_matrix(scratch.path(kind + ".npz") + ":data", {"no tensor \"data\""});
    }
    expect_error(ErrorKind::input, [&] { (void)read_matrix(scratch.path("x.npz")); }, {"x.npz"});
}

TEST(ScipySparseBadInput, ZerosThatArePackedStronglyDoNotBecomeALargeMatrix) {
    if (std::system("/usr/bin/python3 -c 'import numpy, scipy' 2>/dev/null") != 0) GTEST_SKIP() << "no SciPy";
    const ScratchFolder scratch;
    ASSERT_EQ(std::system(("cd '" + scratch.path(".") + R"(' && /usr/bin/python3 -c '
import numpy as np
n = 1000000
np.savez_compressed("z.npz", format=np.array(b"csr"), shape=np.array([4000, 4000]), data=np.zeros(n),
                    indices=np.zeros(n, "i4"), indptr=np.zeros(4001, "i4"))
')")
                              .c_str()),
              0);
    expect_rejected_matrix(scratch.path("z.npz"), {"4000 x 4000 and sparse", "toarray"});
}

TEST(SciPy, FilesThatItWritesAreReadAsItReadsThem) {
    if (std::system("/usr/bin/python3 -c 'import numpy, scipy' 2>/dev/null") != 0) GTEST_SKIP() << "no SciPy";
    const ScratchFolder scratch;
    ASSERT_EQ(std::system(("cd '" + scratch.path(".") + R"(' && /usr/bin/python3 -c '
import numpy as np, scipy.io as io, scipy.sparse as sp
s = sp.random(9, 7, .3, random_state=1, format="csc")
x = np.random.default_rng(1).standard_normal((9, 7))
io.savemat("p.mat", {"x": x, "f": x.astype("f4"), "s": s})
io.savemat("d.mat", {"x": x, "f": x.astype("f4"), "s": s}, do_compression=True)
for f in ["csr", "csc", "coo", "bsr", "dia"]: sp.save_npz(f + ".npz", s.asformat(f))
sp.save_npz("blocks.npz", sp.kron(s, np.array([[1., 2, 3], [4, 0, 5]]), format="bsr"))
io.mmwrite("s.mtx", s)
io.mmwrite("x.mtx", x)
io.mmwrite("sym.mtx", sp.coo_matrix(x.T @ x))
np.save("x.npy", x)
np.save("f.npy", x.astype("f4"))
np.save("s.npy", s.toarray())
np.save("blocks.npy", np.kron(s.toarray(), np.array([[1., 2, 3], [4, 0, 5]])))
np.save("sym.npy", io.mmread("sym.mtx").toarray())
np.save("mtx.npy", io.mmread("x.mtx"))
np.save("smtx.npy", io.mmread("s.mtx").toarray())
')")
                              .c_str()),
              0);
    for (const auto& [file, array] :
         std::initializer_list<std::pair<const char*, const char*>>{{"p.mat:x", "x.npy"},
                                                                    {"p.mat:f", "f.npy"},
                                                                    {"p.mat:s", "s.npy"},
                                                                    {"d.mat:x", "x.npy"},
                                                                    {"d.mat:f", "f.npy"},
                                                                    {"d.mat:s", "s.npy"},
                                                                    {"csr.npz", "s.npy"},
                                                                    {"csc.npz", "s.npy"},
                                                                    {"coo.npz", "s.npy"},
                                                                    {"bsr.npz", "s.npy"},
                                                                    {"dia.npz", "s.npy"},
                                                                    {"blocks.npz", "blocks.npy"},
                                                                    {"x.mtx", "mtx.npy"},
                                                                    {"s.mtx", "smtx.npy"},
                                                                    {"sym.mtx", "sym.npy"}})
        expect_matrix(scratch.path(file), read_matrix(scratch.path(array)));
}

TEST(ForeignFiles, AreNamedWithTheLineThatConvertsThem) {
    const ScratchFolder scratch;
    const auto zip = [](const std::string& name) { return "PK\x03\x04" + std::string(26, '\1') + name; };
    const auto gzip = [](const std::string& text) {
        std::string packed(text.size() + 100, '\0');
        z_stream stream{};
        EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
        std::string copy = text;
        stream.next_in = reinterpret_cast<Bytef*>(copy.data());
        stream.avail_in = static_cast<uInt>(copy.size());
        stream.next_out = reinterpret_cast<Bytef*>(packed.data());
        stream.avail_out = static_cast<uInt>(packed.size());
        EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
        packed.resize(stream.total_out);
        deflateEnd(&stream);
        return packed;
    };
    const std::string rds("X\n\0\0\0\3\0\4\3", 9);
    const std::string nifti = little_endian(348, 4) + std::string(340, '\0') + std::string("n+1\0", 4);
    const std::vector<std::pair<std::string, std::string>> cases = {
        {std::string("\x89HDF\r\n\x1a\n", 8), "h5py.File('FILE').visit(print)"},
        {std::string("\x89HDF\r\n\x1a\n", 8) + std::string(9000, '\0') + "OCTAVE_NEW_FORMAT", "['NAME/value'][()].T"},
        {std::string("\x89HDF\r\n\x1a\n", 8) + std::string(9000, '\0') + "pandas_type" + std::string(9000, '\0'),
         "pandas.read_hdf('FILE')"},
        {std::string("\x89HDF\r\n\x1a\n", 8) + std::string(600, '\0') + "encoding-type", "anndata.read_h5ad('FILE')"},
        {zip("a.csv"), "unzip -p FILE > x.csv"},
        {std::string("nsgg\x09\0\0\0", 8), "run the model in transformers"},
        {"PAR1xxxx", "read_parquet"},
        {"ARROW1\0\0", "read_feather"},
        {std::string("\x80\x04\x95\0\0\0\0", 7), "numpy.ma.filled(numpy.ma.asarray(pickle.load("},
        {"cnumpy.core.multiarray\n_reconstruct\np0\n", "pickle.load(open('FILE','rb'), encoding='latin1')"},
        {"ccopy_reg\n_reconstructor\n", "pickle.load("},
        {"(lp0\nF1.5\n", "pickle.load("},
        {"(dp1\nS'x'\n", "pickle.load("},
        {"\r\n\n <!DOCTYPE html>\n<html>", "fetch the file itself"},
        {zip("archive/data.pkl"), "f(torch.load('FILE', map_location='cpu', weights_only=True))"},
        {zip("[Content_Types].xml"), "read_excel"},
        {zip("mimetypeapplication/vnd.oasis.opendocument.spreadsheet"), "read_excel"},
        {rds, "readRDS"},
        {gzip(rds), "readRDS"},
        {"A\n3\n263169\n197888\n5\nUTF-8\n", "readRDS"},
        {gzip("A\n2\n262657\n131840\n526\n"), "readRDS"},
        {gzip("RDX3\nX\n"), "load('FILE', e <- new.env())"},
        {"RDA3\nA\n3\n263169\n", "load('FILE', e <- new.env())"},
        {nifti, "nibabel"},
        {gzip(nifti), "nibabel"},
        // Python's pickle, like most readers, does not unpack.
        {gzip(std::string("\x80\x04\x95\0\0\0\0", 7)), "inside a Python pickle): unpack it first: gzip -dc FILE > NEW"},
        {gzip("PAR1xxxx"), "inside a Parquet table): unpack it first: gzip -dc FILE > NEW"},
        {std::string("SQLite format 3\0\x10", 17), "\"SELECT * FROM NAME\" > x.csv"},
        {"GGUF\3\0\0\0", "GGUFReader"},
        {"<stata_dta><header>", "read_stata"},
        {"$FL2@(#) SPSS", "read_spss"},
        {std::string(12, '\0') + "\xc2\xea\x81\x60\xb3\x14\x11\xcf", "pyreadstat.read_sas7bdat('FILE')"},
        {"HEADER RECORD*******LIBRARY HEADER RECORD!!!!!!!", "pyreadstat.read_xport('FILE')"},
        {"SIMPLE  =                    T", "astropy"},
        {std::string("II*\0\x08\0\0\0", 8), "PIL.Image"},
        {"\x89PNG\r\n\x1a\n", "PIL.Image"},
        {"\xff\xd8\xff\xe0", "PIL.Image"},
        {"\x28\xb5\x2f\xfd....", "zstd -dc FILE > NEW"},
        {"BZh91AY", "bzip2 -dc FILE > NEW"},
        {std::string("\xfd\x37zXZ\0\0", 7), "xz -dc FILE > NEW"},
        {"<?xml version=\"1.0\"?>", "an XML file"},
        {"%PDF-1.7", "a PDF document"},
        {R"({"a": [1, 2]})", "pandas.read_json('FILE').to_csv"},
        {R"([{"a": 1, "b": 2}, {"a": 3, "b": 4}])", "pandas.read_json('FILE').to_csv"},
        {"{\"a\": 1}\n{\"a\": 2}\n", "pandas.read_json('FILE', lines=True).to_csv"},
        {R"({"columns":["a"],"index":[0],"data":[[1]]})", "pandas.read_json('FILE', orient='split').to_csv"},
        {R"({"schema":{"fields":[]},"data":[]})", "pandas.read_json('FILE', orient='table').to_csv"},
        {R"({"0":{"a":1,"b":2},"1":{"a":3,"b":4}})", "pandas.read_json('FILE', orient='index').to_csv"},
        {R"({"0":{"0":1,"1":2},"1":{"0":3,"1":4}})", "pandas.read_json('FILE').to_csv"},
        {R"({"a":{"0":1,"1":2}})", "pandas.read_json('FILE').to_csv"},
        {"[[1, 2], [3, 4]]", "json.load"},
        {"#1.2\n2\t1\nName\tDescription\ts1\ng1\tna\t1.5\n", "tail -n +3 FILE | cut -f 1,3- > x.tsv"},
        {"#1.3\r\n2\t1\t0\t0\r\n", "t.iloc[:,n[2]:].to_csv"},
        {"##TITLE= x\n##XYDATA=(X++(Y..Y))\n400 1 2 3\n403 4 5 6\n", "jcamp.readfile('FILE')"},
        {"P2\n3 2\n255\n0 10 20\n", "PIL.Image"},
        {"array([[1., 2.],\n       [3., 4.]])\n", "numpy.save"},
        {"tensor([[1., 2.]])\n", "a printed tensor"},
        {"ncols 2\nnrows 1\nNODATA_value -9999\n1 -9999\n", "an ESRI grid"},
        {"structure(c(1, 2), dim = c(1L, 2L))", "dget('FILE')"},
        {"ASCII SPSS PORT FILE      ", "read_por"},
        {std::string(40, '0') + "ASCII SPSS PORT FILE      ", "read_por"},
        {"HEADER RECORD*******LIBV8   HEADER RECORD!!!!!!!", "read_xport"},
        {"\x80\x02\x8a\nl\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.", "an old PyTorch file"},
        {"{{1., 2.}, {3.5, 4.*^-3}}\n", "ast.literal_eval"},
        {"1 1:0.5 3:2\n-1 2:1.5\n", "load_svmlight_file"},
        {"2 qid:1 1:0.5\n", "load_svmlight_file"},
        {"FID IID PAT MAT SEX PHENOTYPE rs1_A\nf1 i1 0 0 1 -9 2\n", "cut -d' ' -f7- FILE > x.txt"},
        {"FID\tIID\tPAT\tMAT\tSEX\tPHENOTYPE\trs1_A\n", "cut -f7- FILE > x.tsv"},
        {"\x6c\x1b\x01\xdc", "bed_reader.open_bed('FILE')"},
        {"##fileformat=VCFv4.2\n#CHROM\tPOS\n", "pandas.read_csv('FILE', sep='\\t', skiprows=n"},
        {"0       " + std::string(184, ' ') + "EDF+C", "pyedflib.highlevel.read_edf('FILE')"},
        {"\xff"
         "BIOSEMI",
         "pyedflib.highlevel.read_edf('FILE')"},
        {"NRRD0004\ntype: float\n", "nrrd.read('FILE')"},
        {"mrtrix image\ndim: 2,2\n", "mrconvert FILE x.nii"},
        {std::string("RIFF\x24\0\0\0WAVEfmt ", 16), "scipy.io.wavfile.read('FILE')"},
        {std::string(128, '\0') + "DICM", "pydicom.dcmread('FILE')"},
        {"\x04\x22\x4d\x18....", "lz4 -dc FILE > NEW"},
        {"7z\xbc\xaf\x27\x1c", "7z x FILE"},
    };
    for (const auto& [bytes, advice] : cases)
        for (const auto& name : {"m.npy", "m.csv", "m.mat", "m.safetensors", "m.unknown", "m"})
            expect_rejected_matrix(scratch.write(name, bytes), {name, advice});
    for (const auto& one : cases)
        expect_error(ErrorKind::input, [&] { (void)open_tensors(scratch.write("dump", one.first)); }, {one.second});
}

TEST(ForeignFiles, LinesThatConvertListsAndExpressionTablesWork) {
    if (std::system("/usr/bin/python3 -c 'import numpy' 2>/dev/null") != 0) GTEST_SKIP() << "no NumPy";
    const ScratchFolder scratch;
    const auto converted = [&](const std::string& text, const std::string& program, const char* written) {
        std::string line;
        try {
            (void)read_matrix(scratch.write("m.txt", text));
        } catch (const Error& error) {
            line = error.what();
        }
        line = line.substr(std::min(line.find("): " + program), line.size()));
        if (line.find("FILE") == line.npos) return testing::AssertionFailure() << "no line for " << text;
        line = line.substr(3).replace(line.substr(3).find("FILE"), 4, "m.txt");
        const std::string path = program == "python3" ? "/usr/bin/" : "";
        if (std::system(("cd '" + scratch.path(".") + "' && " + path + line).c_str()) != 0)
            return testing::AssertionFailure() << line;
        const auto found = read_noted_matrix(scratch.path(written)).matrix;
        const bool equal = arma::approx_equal(found, arma::mat{{1, 2}, {3.5, .004}}, "absdiff", 0.0);
        std::filesystem::remove(scratch.path(written));
        return equal ? testing::AssertionSuccess() : testing::AssertionFailure() << found;
    };
    EXPECT_TRUE(converted("{{1., 2.}, {3.5, 4.*^-3}}\n", "python3", "x.npy"));
    EXPECT_TRUE(converted("ncols 2\nnrows 2\nxllcorner 0\nNODATA_value -9999\n1 2\n3.5 .004\n", "python3", "x.npy"));
    EXPECT_TRUE(converted("#1.2\n2\t2\nName\tDescription\ts1\ts2\ng1\tna\t1\t2\ng2\tna\t3.5\t.004\n", "tail", "x.tsv"));
    EXPECT_TRUE(
        converted("# Program:featureCounts v2.0.1; Command:\"featureCounts\"\nGeneid\tChr\tStart\tEnd\tStrand\tLength\t"
                  "a.bam\tb.bam\ng1\t1;1\t1;9\t5;12\t+;+\t9\t1\t2\ng2\t1\t20\t30\t-\t11\t3.5\t.004\n",
                  "tail", "x.tsv"));
    // One channel of times, and none, where the first cell is empty.
    for (const auto& [first, second] : {std::pair("0,0", "0,1"), {"", ""}})
        EXPECT_TRUE(
            converted(fmt::format("LabVIEW Measurement\t\nWriter_Version\t2\nSeparator\tTab\n***End_of_Header***\t\n"
                                  "\t\nChannels\t2\t\t\nSamples\t2\t2\t\n***End_of_Header***\t\t\t\n"
                                  "X_Value\tVolt\tAmpere\tComment\n{}\t1,0\t2,0\n{}\t3,5\t0,004\n",
                                  first, second),
                      "sed", "x.tsv"));
    if (std::system("/usr/bin/python3 -c 'import pandas' 2>/dev/null") != 0) GTEST_SKIP() << "no pandas";
    EXPECT_TRUE(converted("freq,unit,geo\\TIME_PERIOD\t2020 \t2021 \nA,PC,AT\t1 \t2 b\nA,PC,BE\t3.5 e\t0.004 \n",
                          "python3", "x.csv"));
}

TEST(ForeignFiles, CommandsOfDatabasesAndOfRAreNoTables) {
    const ScratchFolder scratch;
    const auto rejected = [&](const std::string& text, std::initializer_list<std::string_view> parts) {
        expect_rejected_matrix(scratch.write("t.txt", text), parts);
    };
    rejected("CREATE TABLE t(a,b);\nINSERT INTO t VALUES(1,2);\n", {"commands of SQL", "sqlite3 -csv x.db"});
    rejected("INSERT INTO t VALUES(1,2);\nINSERT INTO t VALUES(3,4);\n", {"commands of SQL"});
    rejected("-- MySQL dump 10.13\n--\n", {"commands of SQL"});
    rejected("m <-\nstructure(c(1, 2), dim = 1:2)\n", {"an R object (dump)", "source('FILE'"});
    rejected("<table><tr><td>1</td></tr></table>\n", {"a table of HTML", "read_html"});
}

TEST(ForeignFiles, TheLineForObjectsOfRWritesSparseMatricesToo) {
    if (std::system("Rscript -e 'library(Matrix)' >/dev/null 2>&1") != 0) GTEST_SKIP() << "no R with Matrix";
    const ScratchFolder scratch;
    ASSERT_EQ(std::system(("cd '" + scratch.path(".") + R"(' && Rscript -e '
library(Matrix); m <- matrix(c(0, 1.5, 2, 0, 0, 3), 2); saveRDS(Matrix(m, sparse = TRUE), "s.rds"); saveRDS(m, "m.rds")
s <- Matrix(m, sparse = TRUE); save(s, m, file = "a.RData")
')")
                              .c_str()),
              0);
    for (const auto& [file, name] : {std::pair("s.rds", ""), {"m.rds", ""}, {"a.RData", "s"}, {"a.RData", "m"}}) {
        std::string line;
        try {
            (void)read_matrix(scratch.path(file));
        } catch (const Error& error) {
            line = error.what();
        }
        const auto put = [&](const std::string& word, const std::string& value) {
            if (const std::size_t at = line.find(word); at != line.npos) line.replace(at, word.size(), value);
        };
        line = line.substr(std::min(line.find("Rscript"), line.size()));
        put("FILE", file);
        put("NAME", name);
        ASSERT_EQ(std::system(("cd '" + scratch.path(".") + "' && " + line + " 2>/dev/null").c_str()), 0) << line;
        expect_matrix(scratch.path("x.csv"), arma::mat{{0, 2, 0}, {1.5, 0, 3}});
        std::filesystem::remove(scratch.path("x.csv"));
    }
}

TEST(ForeignFiles, ObjectsOfRInOtherPackagingAreLeftToR) {
    const ScratchFolder scratch;
    for (const std::string& bytes : {std::string("BZh91AY"), std::string("\xfd\x37zXZ\0\0", 7)}) {
        expect_rejected_matrix(scratch.write("m.rds", bytes), {"m.rds", "readRDS('FILE')"});
        for (const char* name : {"m.RData", "m.rda"})
            expect_rejected_matrix(scratch.write(name, bytes), {name, "load('FILE', e <- new.env())"});
    }
}

TEST(ForeignFiles, TextUnderTheNameOfAnotherFormatIsNamed) {
    const ScratchFolder scratch;
    for (const auto& name : {"m.npy", "m.npz", "m.mat", "m.mtx", "m.safetensors"})
        expect_rejected_matrix(scratch.write(name, "1.5,2.5\n3,4\n"), {name, "are text", "name it FILE.txt"});
    // A banner in lower case is one of Matrix Market.
    expect_rejected_matrix(scratch.write("m.txt", "%%matrixmarket matrix array real general\n1 1\n2\n"),
                           {"a Matrix Market file", "name it FILE.mtx"});
}

TEST(ForeignFiles, RawNumbersAreNotText) {
    const ScratchFolder scratch;
    std::string bytes;
    for (const double value : {0.25, -1.5, 3.0, 1e-3}) {
        const auto raw = std::bit_cast<std::array<char, sizeof(double)>>(value);
        bytes.append(raw.begin(), raw.end());
    }
    for (const char* name : {"raw.dat", "raw.txt", "raw.csv"})
        expect_rejected_matrix(scratch.write(name, bytes),
                               {name, "32 bytes", "binary data, not text", "numpy.fromfile"});
    expect_rejected_matrix(scratch.write("raw", bytes), {"unknown kind of file", "numpy.fromfile('FILE'"});
    expect_matrix(scratch.write("m.dat", "1 3.5\n2 7\n"), arma::mat{{1, 3.5}, {2, 7}});
}

/// The line that converts a pickled masked array keeps its mask, and that of an .npz names the array.
TEST(ForeignFiles, MasksAreNotDroppedInSilence) {
    if (std::system("/usr/bin/python3 -c 'import numpy' 2>/dev/null") != 0) GTEST_SKIP() << "no NumPy";
    const ScratchFolder scratch;
    const std::string in_folder = "cd '" + scratch.path(".") + "' && ";
    ASSERT_EQ(std::system((in_folder + R"(/usr/bin/python3 -c '
import numpy as np
m = np.ma.masked_array([[1.5, -999], [2, 3]], mask=[[0, 1], [0, 0]])
m.dump("m.pkl")
np.savez("m.npz", data=m.data, mask=m.mask)
np.savez("other.npz", data=m.data, mask=m.mask[0])
')")
                              .c_str()),
              0);
    std::string advice;
    try {
        (void)read_matrix(scratch.path("m.pkl"));
    } catch (const Error& error) {
        advice = error.what();
    }
    advice = advice.substr(std::min(advice.find("python3 -c"), advice.size()));
    ASSERT_NE(advice.find("FILE"), std::string::npos);
    advice.replace(advice.find("FILE"), 4, "m.pkl");
    ASSERT_EQ(std::system((in_folder + "/usr/bin/" + advice).c_str()), 0) << advice;
    const auto read = read_noted_matrix(scratch.path("x.npy"), {.layout = "", .table = {}, .keep_missing = true});
    EXPECT_TRUE(std::isnan(read.matrix(0, 1)));
    EXPECT_EQ(read.matrix(1, 1), 3.0);
    const auto noted = read_noted_matrix(scratch.path("m.npz") + ":data");
    ASSERT_EQ(noted.notes.size(), 1U);
    EXPECT_NE(noted.notes[0].find("its array \"mask\" has the same shape and is not applied"), std::string::npos);
    EXPECT_TRUE(read_noted_matrix(scratch.path("other.npz") + ":data").notes.empty());
}

TEST(ForeignFiles, SparseVariablesSayWhatTheOthersAre) {
    for (const auto& name : {"level5.mat:s", "hdf5.mat:s"}) {
        const auto found = read_noted_matrix(data_file(name));
        ASSERT_EQ(found.notes.size(), 1U) << name;
        EXPECT_NE(found.notes[0].find("entries that are not stored are read as 0"), std::string::npos);
    }
    EXPECT_TRUE(read_noted_matrix(data_file("level5.mat") + ":x").notes.empty());
    const ScratchFolder scratch;
    expect_matrix(scratch.write("d.mtx", "%%MatrixMarket matrix array real general\n2 1\n1.0D0\n2.5D+00\n"),
                  arma::mat(arma::vec{1, 2.5}));
}

TEST(ForeignFiles, WholeNumbersInSafetensorsAreThoseOfNpy) {
    const ScratchFolder scratch;
    const auto tensor = [](const std::string& dtype, std::size_t bytes) {
        return fmt::format(R"({{"w":{{"dtype":"{}","shape":[1,2],"data_offsets":[0,{}]}}}})", dtype, bytes);
    };
    expect_matrix(scratch.write("i.safetensors",
                                safetensors_bytes(tensor("I64", 16), little_endian(3, 8) + std::string(8, '\xFF'))),
                  arma::mat{{3, -1}});
    expect_matrix(scratch.write("b.safetensors", safetensors_bytes(tensor("BOOL", 2), std::string("\1\0", 2))),
                  arma::mat{{1, 0}});
    expect_rejected_matrix(scratch.write("p.safetensors", safetensors_bytes(tensor("I32", 8), std::string(8, '\1'))),
                           {"I32", "convert it first"});
}

TEST(ForeignFiles, ALayoutHasNoEffectOnATable) {
    const ScratchFolder scratch;
    const std::string path = scratch.write("m.csv", "1,3.5\n2,7\n");
    expect_error(ErrorKind::usage, [&] { (void)read_noted_matrix(path, {.layout = "head,token,dim", .table = {}}); },
                 {"m.csv", "--layout has no effect on a table", "leave it out"});
}

TEST(ForeignFiles, OnesThatAreReadNeedNoSuffix) {
    const ScratchFolder scratch;
    write_npy(scratch.path("m.npy"), half_numbers);
    const auto npy = read_noted_matrix(scratch.write("array", bytes_of_file(scratch.path("m.npy"))));
    EXPECT_TRUE(arma::approx_equal(npy.matrix, half_numbers, "absdiff", 0.0));
    ASSERT_EQ(npy.notes.size(), 1U);
    EXPECT_NE(npy.notes[0].find("read as a .npy array"), std::string::npos) << npy.notes[0];
    expect_matrix(scratch.write("m.foo", bytes_of_file(data_file("level5.mat"))) + ":x", half_numbers);
    expect_matrix(scratch.write("table", "1 3.5\n2 7\n"), arma::mat{{1, 3.5}, {2, 7}});
    // Under the suffix of another format the message names the right one.
    expect_rejected_matrix(scratch.write("m.csv", bytes_of_file(scratch.path("m.npy"))), {"name it FILE.npy"});
}

TEST(ForeignFiles, ComplexArraysSayWhatToDo) {
    const ScratchFolder scratch;
    const std::string header = "{'descr': '<c16', 'fortran_order': False, 'shape': (1, 1), }\n";
    expect_rejected_matrix(scratch.write("z.npy", npy_bytes(header, std::string(16, '\0'))),
                           {"complex numbers", "numpy.block([[x.real, -x.imag], [x.imag, x.real]])", "each twice"});
}

}  // namespace
}  // namespace spiked::sim
