#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>

#include "core/files/tests/scratch.hpp"
#include "sim/io/matrix_file.hpp"
#include "sim/tables/table_cells.hpp"
#include "sim/tables/table_dialect.hpp"

namespace spiked::sim {
namespace {

/// The bytes of a table, the matrix in them, and a part of its notes (no note holds it where it begins with '!').
struct BytesCase {
    std::string text;
    arma::mat expected;
    std::string note;
    TableDialect dialect = {};
    const char* file = "t.csv";
};

void expect_matrix(const BytesCase& table) {
    const ScratchFolder scratch;
    const auto found = read_noted_matrix(scratch.write(table.file, table.text), {.layout = "", .table = table.dialect});
    EXPECT_TRUE(arma::size(found.matrix) == arma::size(table.expected) &&
                arma::approx_equal(found.matrix, table.expected, "absdiff", 0.0))
        << table.text << found.matrix;
    const std::string all = fmt::format("{}", fmt::join(found.notes, "\n"));
    if (table.note.starts_with('!'))
        EXPECT_EQ(all.find(table.note.substr(1)), std::string::npos) << table.text << all;
    else
        EXPECT_NE(all.find(table.note), std::string::npos) << table.text << all;
}

void expect_rejected(const std::string& text, std::initializer_list<std::string_view> parts,
                     const TableDialect& dialect = {}, const char* file = "t.csv") {
    const ScratchFolder scratch;
    const auto path = scratch.write(file, text);
    expect_error(
        ErrorKind::input, [&] { (void)read_noted_matrix(path, {.layout = "", .table = dialect}); }, parts);
}

std::string repeated(const std::string& text, int times) {
    std::string all;
    for (int i = 0; i < times; ++i) all += text;
    return all;
}

TEST(TableSurroundings, RowsThatBeginLikeCommentsAreRows) {
    expect_matrix({"item,2019,2020,2021\nsales,1.5,2,3\n% change,2,3.5,4\n#emp,4,5,2\n",
                   arma::mat{{1.5, 2, 3}, {2, 3.5, 4}, {4, 5, 2}}, "a header line"});
    expect_matrix({"color,a,b\n#000000,1.5,2\n#0000ff,2,3\n#00ff00,7,3\n", arma::mat{{1.5, 2}, {2, 3}, {7, 3}},
                   "an index column"});
    expect_matrix({"#emp,1.5,2\nsales,2,3\ntax,3,4\n", arma::mat{{1.5, 2}, {2, 3}, {3, 4}}, "an index column"});
    std::string late = repeated("s,1.5,2\n", 70) + "#t,7,8\n";
    const ScratchFolder scratch;
    EXPECT_EQ(read_noted_matrix(scratch.write("late.csv", late)).matrix(70, 1), 8.0);
    expect_matrix({"#\ta\tb\n1\t.5\t2\n2\t3\t4\n", arma::mat{{.5, 2}, {3, 4}}, "it counts 1 to 2"});
}

TEST(TableSurroundings, CommentsBehindTheFirstRowAreCounted) {
    expect_matrix({"1,2\n#5,6\n3,4\n% end\n", arma::mat{{1, 2}, {3, 4}},
                   "2 lines behind its first row begin like comments and are left out (the first is line 2)"});
    expect_matrix({"x,a,b\ns1,1.5,2\n# note, with commas\ns2,2,3\n", arma::mat{{1.5, 2}, {2, 3}},
                   "1 line behind its first row begins like a comment and is left out (the first is line 3)"});
    expect_matrix({"# a\na,b\n# units: m\n1,2\n3,4\n", arma::mat{{1, 2}, {3, 4}}, "!left out"});
}

TEST(TableSurroundings, CommentsOfManyProgramsAreLeftOut) {
    const arma::mat rows{{1, 2}, {3, 4.5}};
    for (const std::string mark : {"#", "%", "//", "!", "@", ";", ";;"}) {
        expect_matrix({mark + " measured by x\n1,2\n3,4.5\n", rows, "!header"});
        expect_matrix({"1,2\n" + mark + " end\n3,4.5\n", rows, "1 line behind its first row begins like a comment"});
    }
    expect_matrix({"! freq re\n1 2\n3 4.5\n", rows, "a header line", {}, "t.txt"});
    // A series matrix of GEO, a plot of GROMACS, and a table of Weka.
    expect_matrix(
        {"!Series_title\t\"x\"\n!series_matrix_table_begin\n\"ID_REF\"\t\"GSM1\"\t\"GSM2\"\n"
         "\"1007_s_at\"\t1\t2\n\"1053_at\"\t3\t4.5\n!series_matrix_table_end\n",
         rows,
         "a header line and an index column",
         {},
         "t.txt"});
    expect_matrix(
        {"# made by gmx\n@    title \"RMSD\"\n@ s0 legend \"a\"\n1 2\n3 4.5\n", rows, "!header", {}, "t.txt"});
    expect_matrix({"@relation r\n@attribute a numeric\n@attribute b numeric\n@data\n1,2\n3,4.5\n", rows, "!header"});
    // An empty first cell in front of the delimiter is none.
    expect_rejected("; 2,5\n1,5; 3\n2; 4\n", {":1:1: 1 missing"});
    expect_matrix({";a\nx;1,5\ny;2\n", arma::mat(arma::vec{1.5, 2}), "an index column"});
}

TEST(TableSurroundings, CommentsBehindTheNumbersAreNamed) {
    const auto rejected = [](const std::string& text, const std::string& mark, const char* file) {
        expect_rejected(text,
                        {":1: a comment behind the numbers, which begins with \"" + mark + "\"",
                         "sed 's|[[:blank:]]" + mark + ".*||' FILE > NEW"},
                        {}, file);
    };
    rejected("1.5 2 # first\n3 4\n", "#", "t.txt");
    rejected("1,2.5 // a\n3,4 // b\n", "//", "t.csv");
    rejected("a 1 2 ! x\nb 3 4 ! y\n", "!", "t.txt");
    expect_rejected("a,b\n1,12 %\n2,13 %\n", {"(a percentage"});
    expect_rejected("1,apt #3\n2,apt #4\n", {"column 2 of 2 holds text"});
    EXPECT_EQ(comment_behind("x #1 2"), "");
    EXPECT_EQ(comment_behind("1 #N/A 2"), "");
}

TEST(TableSurroundings, WhatMatlabPrintsIsRead) {
    expect_matrix({"A =\n\n   1.0e+03 *\n\n    0.0010    1.5000\n    2.0000    0.2500\n",
                   arma::mat{{1, 1500}, {2000, 250}},
                   "its numbers are multiplied by 1000, as its line 3 says",
                   {},
                   "t.txt"});
    expect_matrix({"   1.0e-03 *\n\n   0.5\n   0.25\n",
                   arma::mat(arma::vec{.0005, .00025}),
                   "multiplied by 0.001, as its line 1 says",
                   {},
                   "t.txt"});
    for (const char* name : {"A =", "ans =", "x_1 = "})
        expect_matrix(
            {std::string(name) + "\n\n 1 2 3.5\n 4 5 6\n", arma::mat{{1, 2, 3.5}, {4, 5, 6}}, "!header", {}, "t.txt"});
    for (const char* line : {"1.0e+03", "a *", "1000 *", "1.0e+03 2 *", "*", "1.0e+999 *"})
        EXPECT_FALSE(printed_factor(line)) << line;
    for (const char* line : {"=", "a b =", "1 =", "a = 1"}) EXPECT_FALSE(names_variable(line)) << line;
}

TEST(TableSurroundings, WhatJuliaPrintsAndCommandsOfMatlab) {
    expect_matrix({"2\u00D73 Matrix{Float64}:\n 1.5  2.0  3.0\n 3.5  4.0  6.0\n",
                   arma::mat{{1.5, 2, 3}, {3.5, 4, 6}},
                   "!header",
                   {},
                   "t.txt"});
    const ScratchFolder scratch;
    for (const char* text : {"A = [1 2 3; 4 5 6.5];\n", "A = [\n1 2 3;\n4 5 6.5;\n];\n"}) {
        std::string line;
        try {
            (void)read_noted_matrix(scratch.write("t.txt", text));
        } catch (const Error& error) {
            line = error.what();
        }
        ASSERT_NE(line.find(":1: a command of a program"), std::string::npos) << line;
        line = line.substr(line.find("sed"));
        line.replace(line.find("FILE"), 4, "t.txt");
        ASSERT_EQ(std::system(("cd '" + scratch.path(".") + "' && " + line).c_str()), 0) << line;
        const auto found = read_noted_matrix(scratch.path("x.txt")).matrix;
        EXPECT_TRUE(arma::approx_equal(found, arma::mat{{1, 2, 3}, {4, 5, 6.5}}, "absdiff", 0.0)) << found;
    }
}

TEST(TableSurroundings, ATitleAboveNumbersIsNoHeaderWithoutTheIndex) {
    expect_rejected("My data\n1.5 2 3\n4 5 6\n", {":1: 2 names above 3 cells", "--index yes", "where it is a title"},
                    {}, "t.txt");
    expect_matrix(
        {"a b\n17 .5 2\n23 .7 4\n", arma::mat{{.5, 2}, {.7, 4}}, "an index column", {.index = true}, "t.txt"});
    expect_matrix({"a,b\n17,.5,2\n23,.7,4\n", arma::mat{{.5, 2}, {.7, 4}}, "an index column"});
    expect_matrix({"a b\n1 .5 2\n2 .7 4\n", arma::mat{{.5, 2}, {.7, 4}}, "an index column", {}, "t.txt"});
    expect_rejected("[Data]\n1.5,2\n4,5\n", {"where it is a title"});
    expect_rejected("[Data]\nx,y,z\n1.5,2,3\n4,5,7\n", {":1: lines of text above the table", "tail -n +2"});
}

TEST(TableSurroundings, LinesOfAnInstrumentAboveTheTableAreNamed) {
    expect_rejected("Instrument,X-100\nSerial,12345\nDate,2024-01-05\n\nWavelength,Abs\n400,0.5\n401,0.6\n402,0.7\n",
                    {"\"Serial\" is not a number (rows of numbers begin at line 6)", "tail -n +5 FILE > NEW"});
    expect_rejected("a,b\n1,x\n3,4\n5,6\n", {":2:3: \"x\"", "correct the cell"});
    expect_rejected("Logger 7\nSite A\nt,h,p\n1.5,2,3\n2.5,3,4\n",
                    {":1: lines of text above the table", "begin at line 4", "tail -n +3 FILE"});
    // An oscilloscope, the World Bank (with a comma at the end of each line), monthly returns.
    expect_rejected("Model,X54\nPoint Format,Y\nRecord Length,3\n\nTIME,CH1,CH2\n1e-9,.5,2\n2e-9,.7,3\n3e-9,.2,4\n",
                    {"rows of numbers begin at line 6", "tail -n +5 FILE"});
    expect_rejected(
        "\"Data Source\",\"Indicators\",\n\"Last Updated\",\"2024-01-01\",\n\"Name\",\"Code\",\"1960\","
        "\"1961\",\"1962\",\n\"Aruba\",\"ABW\",\"1.5\",\"2.5\",\"3\",\n\"Chad\",\"TCD\",\"2.5\",\"3\",\"4\",\n",
        {"tail -n +3 FILE"});
    expect_rejected(
        "This file holds monthly returns\nThe rate is from X\n\n,Mkt,SMB\n192607,2.5,-2.25\n192608,2.5,1.5\n",
        {"rows of numbers begin at line 5", "tail -n +4 FILE"});
    // Two words in the first line, as of the names of two columns behind an index.
    expect_rejected("Logger Seven\nSite A 2\nt h p\n1.5 2 3\n2.5 3 4\n", {"begin at line 4", "tail -n +3"}, {},
                    "t.txt");
    expect_rejected("a,b,c\n1,2,3\n4,5\n7,8,9\n", {":3:3: 2 cells (line 2 has 3"});
}

TEST(TableSurroundings, NumbersInQuotesNameRowsWhereNoOthersAreQuoted) {
    // R, where rows were chosen and the header is left out.
    const arma::mat rows{{2.5, 4.5}, {3.5, 4}, {1.5, 2}};
    const std::string note = "an index column (its numbers are in quotes, unlike the others";
    expect_matrix({"\"5\" 2.5 4.5\n\"2\" 3.5 4\n\"9\" 1.5 2\n", rows, note, {}, "t.txt"});
    expect_matrix({"\"id\",\"a\",\"b\"\n\"105\",2.5,4.5\n\"102\",3.5,4\n\"109\",1.5,2\n", rows, note});
    expect_matrix({"\"5\",2.5,4.5\n\"2\",3.5,4\n\"9\",1.5,2\n",
                   arma::mat{{5, 2.5, 4.5}, {2, 3.5, 4}, {9, 1.5, 2}},
                   "!quotes, unlike",
                   {.index = false}});
    expect_matrix({"\"5\",\"2.5\"\n\"2\",\"3.5\"\n\"9\",\"1.5\"\n", arma::mat{{5, 2.5}, {2, 3.5}, {9, 1.5}},
                   "numbers in quotes"});
}

TEST(TableSurroundings, SecondHeadersBelowRepeatedNamesAreNoted) {
    const std::string rows = "1,2,1,2\n.5,1.5,.25,2\n.75,3.5,.5,1\n1.5,.25,2.5,3\n";
    const arma::mat all{{1, 2, 1, 2}, {.5, 1.5, .25, 2}, {.75, 3.5, .5, 1}, {1.5, .25, 2.5, 3}};
    expect_matrix({"a,a,b,b\n" + rows, all, "whole numbers, unlike the others, and is read as data"});
    expect_matrix({"a,b,c,d\n" + rows, all, "!second header"});
}

TEST(TableSurroundings, WholeNumbersBehindTheNameOfARowAreNoHeader) {
    expect_matrix({"rs1 A G 0 1 2\nrs2 C T 1 1 2\nrs3 G A 2 0 1\n",
                   arma::mat{{0, 1, 2}, {1, 1, 2}, {2, 0, 1}},
                   "its first line counts 0, 1, 2 and is read as data",
                   {},
                   "t.txt"});
    expect_matrix({"gene,0,1,2\nTP53,5,3,2\nMYC,4,4,1\n", arma::mat{{5, 3, 2}, {4, 4, 1}}, "a header line"});
    // STAR counts reads without a gene first.
    expect_matrix({"N_unmapped\t30\t30\nN_noFeature\t7\t9\nENSG1\t5\t3\nENSG2\t6\t4\n",
                   arma::mat{{30, 30}, {7, 9}, {5, 3}, {6, 4}},
                   "\"N_unmapped\" (line 1) and 1 more",
                   {},
                   "t.tsv"});
}

TEST(TableSurroundings, ASecondIndexAboveCountedColumnsIsNamed) {
    expect_rejected("g,i,0,1,2\na,1,.5,.7,1.5\na,2,.1,.3,2.5\nb,1,.2,.9,3\n",
                    {":1: the header counts behind \"i\"", "a second index", "leave that column, number 2, out"});
}

TEST(TableSurroundings, TimesBehindTheFirstColumnAreNoted) {
    const arma::mat rows{{1.5, 1577836800, 2}, {2.5, 1577836860, 3}, {4.5, 1577836925, 1}};
    expect_matrix({"x,timestamp,y\n1.5,1577836800,2\n2.5,1577836860,3\n4.5,1577836925,1\n", rows,
                   "\"timestamp\" (column 2) is named like parts of a date or a time and read as data"});
    expect_matrix({"gnp,min,y\n1.5,3,2\n2.5,4,3\n4.5,6,1\n", arma::mat{{1.5, 3, 2}, {2.5, 4, 3}, {4.5, 6, 1}},
                   "!a date or a time"});
}

TEST(TableSurroundings, DrawnTablesAreNamed) {
    for (const char* text :
         {"shape: (2, 2)\n\u250C\u2500\u2510\n\u2502 a \u2506 b \u2502\n\u2502 1.5 \u2506 2 \u2502\n",
          "2x2 DataFrame\n Row \u2502 a    b\n   1 \u2502 1.5  2\n"})
        expect_rejected(text, {"a printed table (its lines are drawn)", "write_csv"}, {}, "t.txt");
}

TEST(TableSurroundings, PricesBehindANameAreNoIndex) {
    expect_rejected("name,price,n\nA,\"$1,234.50\",3\nB,\"$2,000.00\",4\n",
                    {":2:3: \"$1,234.50\" is not a number (with a currency"});
    expect_rejected("name,kept,n\nA,TRUE,3\nB,FALSE,4\n", {":2:3: \"TRUE\" is not a number (a truth value"});
    // Excel in Germany, with separators of thousands.
    expect_rejected("Produkt;Umsatz;Kosten\nA;1.234,56;987,00\nB;12.345,00;1.000,50\n",
                    {":2:3: \"1.234,56\" is not a number", "delimiter ';'", "with the decimal mark only"});
    expect_rejected("a,b\n\"1,234.50\",3\n\"2,000.00\",4\n", {"\"1,234.50\" have two marks", "decimal mark only"});
}

TEST(TableSurroundings, DatesAndTimesInTwoColumnsAreAnIndex) {
    const arma::mat rows{{1.5, 2}, {3, 4}};
    for (const char* text :
         {"2024-01-05,10:30:00,1.5,2\n2024-01-05,10:31:00,3,4\n", "05.01.2024;10:30;1,5;2\n05.01.2024;10:31;3;4\n",
          "date,time,t,h\n01/05/2024,9:05 PM,1.5,2\n01/05/2024,9:06 PM,3,4\n",
          "no;date;t;h\nx1;05-Jan-24;1.5;2\nx2;06-Jan-24;3;4\n"})
        expect_matrix({text, rows, "2 index columns"});
    expect_matrix({"1/5/2024 09:05 PM 1.5 2\n1/5/2024 09:06 PM 3 4\n", rows, "3 index columns", {}, "t.txt"});
    for (const char* text : {"2024-01-05", "5.1.2024", "05-Jan-24", "1/5/24", "10:30", "9:05 PM", "10:30:00,125",
                             "2024-01-05 10:30", "2024-01-05T10:30:00Z"})
        EXPECT_TRUE(is_date_or_time(text)) << text;
    for (const char* text :
         {"1:0.5", "1007_s_at", "3/8", "1.5", "1-2", "192.168.0.1", "20240105", "-1-2-3", "x", "12:5"})
        EXPECT_FALSE(is_date_or_time(text)) << text;
    // In columns of numbers they are noted: a buoy of NDBC.
    expect_matrix({"#YY MM DD hh mm WSPD\n2024 01 05 10 30 1.5\n2024 01 05 10 40 2.5\n",
                   arma::mat{{2024, 1, 5, 10, 30, 1.5}, {2024, 1, 5, 10, 40, 2.5}},
                   "its column \"YY\" (column 1) and 4 more are named like parts of a date or a time and read as data",
                   {},
                   "t.txt"});
    expect_matrix({"mm,b\n1,2.5\n3,4\n", arma::mat{{1, 2.5}, {3, 4}}, "!a date"});
}

TEST(TableSurroundings, LongTablesAreNotOneColumn) {
    const std::string rows = "g1,s1,.5\ng1,s2,.75\ng2,s1,.25\ng2,s2,2\n";
    expect_rejected("gene,sample,value\n" + rows, {"(a long table): write the matrix: python3 -c", "--index yes"});
    expect_rejected(rows, {"pandas.read_csv('FILE',header=None)"});
    expect_rejected("s1,0,.5\ns1,1,.7\ns2,0,.2\ns2,1,.4\n", {"a long table"});
    expect_matrix({rows, arma::mat(arma::vec{.5, .75, .25, 2}), "2 index columns", {.index = true}});
    // A pair twice, names that do not repeat, fractions in the second column, and a log of times.
    expect_matrix({"g1,s1,.5\ng1,s1,.7\ng2,s2,.2\ng2,s2,.4\n", arma::mat(arma::vec{.5, .7, .2, .4}), "2 index"});
    expect_matrix({"r,x,1\nr,y,2\ns,z,3\nt,x,4\n", arma::mat(arma::vec{1, 2, 3, 4}), "2 index"});
    expect_matrix(
        {"s1,.5,.5\ns1,1,.7\ns2,.5,.2\ns2,1,.4\n", arma::mat{{.5, .5}, {1, .7}, {.5, .2}, {1, .4}}, "an index"});
    expect_matrix({"2024-01-05,10:30,1.5\n2024-01-05,10:31,3\n2024-01-06,10:30,2\n2024-01-06,10:31,4\n",
                   arma::mat(arma::vec{1.5, 3, 2, 4}), "2 index"});
    if (std::system("/usr/bin/python3 -c 'import pandas' 2>/dev/null") != 0) GTEST_SKIP() << "no pandas";
    const ScratchFolder scratch;
    std::string line;
    try {
        (void)read_noted_matrix(scratch.write("t.csv", rows));
    } catch (const Error& error) {
        line = error.what();
    }
    line = line.substr(line.find("-c \""));
    line = line.substr(0, line.find("\", with") + 1);
    line.replace(line.find("FILE"), 4, "t.csv");
    ASSERT_EQ(std::system(fmt::format("cd '{}' && /usr/bin/python3 {}", scratch.path("."), line).c_str()), 0) << line;
    EXPECT_TRUE(arma::approx_equal(read_matrix(scratch.path("x.csv")), arma::mat{{.5, .75}, {.25, 2}}, "absdiff", 0.0));
}

TEST(TableSurroundings, ARowOfLabelsIsNoDataInSilence) {
    const arma::mat all{{1, 1, 2}, {.5, .7, .1}, {.2, .4, .3}};
    expect_matrix({"gene,s1,s2,s3\nbatch,1,1,2\ng1,.5,.7,.1\ng2,.2,.4,.3\n", all,
                   "its first row \"batch\" (line 2) is named like labels of the columns and read as data"});
    expect_matrix({"gene,s1,s2,s3\ng0,1,1,2\nbatch,.5,.7,.1\ng2,.2,.4,.3\n", all, "!labels"});
}

TEST(TableSurroundings, TablesOfLatexAreConverted) {
    const ScratchFolder scratch;
    const auto path = scratch.write("t.txt",
                                    "\\begin{tabular}{cc}\n\\hline\n$1.5$ & 2 \\\\\n3 & 4 \\\\ \\hline\n"
                                    "\\end{tabular}\n");
    std::string line;
    try {
        (void)read_noted_matrix(path);
    } catch (const Error& error) {
        line = error.what();
    }
    ASSERT_NE(line.find(":1: a table of LaTeX: sed"), std::string::npos) << line;
    line = line.substr(line.find("sed"));
    line.replace(line.find("FILE"), 4, "t.txt");
    ASSERT_EQ(std::system(("cd '" + scratch.path(".") + "' && " + line).c_str()), 0) << line;
    EXPECT_TRUE(arma::approx_equal(read_matrix(scratch.path("x.csv")), arma::mat{{1.5, 2}, {3, 4}}, "absdiff", 0.0));
    expect_rejected("1 & 2 \\\\\n3 & 4 \\\\\n", {":1: a table of LaTeX"}, {}, "t.txt");
}

TEST(TableSurroundings, ErrorsOfSpreadsheetsAreMissing) {
    expect_rejected("a,b\n1,2\n#N/A,3\n#DIV/0!,4\n", {":3:1: 2 missing or infinite values in 3 rows", "\"#N/A\""});
    expect_rejected("#VALUE!;0,5\n1;2,5\n", {":1:1: 1 missing", "\"#VALUE!\""});
    expect_rejected(repeated("1,2\n", 70) + "#REF!,2\n", {":71:1: 1 missing"});
}

TEST(TableSurroundings, HeadersOfWholeNumbersAboveWholeNumbers) {
    expect_matrix({"Country,2019,2020,2021\nAruba,106,107,108\nChad,15946,16425,16912\nPeru,32510,32971,33359\n",
                   arma::mat{{106, 107, 108}, {15946, 16425, 16912}, {32510, 32971, 33359}},
                   "a header line (years from 2019 on, --header no reads them as data) and an index column"});
    expect_matrix({"gene,101,205,309\ng0,7,3,9\ng1,4,8,1\ng2,5,5,5\n", arma::mat{{7, 3, 9}, {4, 8, 1}, {5, 5, 5}},
                   "a header line (numbers from 101 on, --header no reads them as data)"});
    expect_matrix({"gene,0,1\nq,5,3\nr,1,1\n", arma::mat{{5, 3}, {1, 1}}, "numbers from 0 on"});
    expect_matrix({"2019,2020,2021,2022\n5,3,2,9\n1,2,8,3\n", arma::mat{{5, 3, 2, 9}, {1, 2, 8, 3}},
                   "a header line (years from 2019 on"});
    expect_matrix({"2019,2020,2021\n5,3,2\n", arma::mat{{2019, 2020, 2021}, {5, 3, 2}}, "", {.header = false}});
    expect_matrix({"101\t205\t309\ng0\t7\t3\t9\ng1\t4\t8\t1\n", arma::mat{{7, 3, 9}, {4, 8, 1}}, "a header line"});
    // The first line is like the others.
    expect_matrix({"2001,2002,2003\n2002,2003,2004\n2004,2005,2006\n",
                   arma::mat{{2001, 2002, 2003}, {2002, 2003, 2004}, {2004, 2005, 2006}}, "!header"});
    expect_matrix({"s0,101,205,309\ns1,7,3,9\ns2,4,8,1\n", arma::mat{{101, 205, 309}, {7, 3, 9}, {4, 8, 1}},
                   "its first line increases from 101 on, unlike the others, and is read as data"});
    const ScratchFolder scratch;
    expect_error(ErrorKind::input, [&] { (void)read_matrix(scratch.write("t.csv", "2019,2020,2021\n5,3,2\n")); },
                 {"a guess", "years"});
}

TEST(TableSurroundings, HeadersOfPlacesOnAnAxis) {
    const arma::mat expected{{.1, .2}, {.4, .3}};
    expect_matrix({",400.5,401.0\ns0,.1,.2\ns1,.4,.3\n", expected, "a header line and an index column"});
    expect_matrix({",400.5,401.0\n0,.1,.2\n1,.4,.3\n", expected, "a header line and an index column"});
    expect_matrix({"wavelength,400.5,401.0\ns0,.1,.2\ns1,.4,.3\n", expected, "numbers from 400.5 on"});
    expect_matrix(
        {"time,400.5,401.0,401.5\n0.1,5,6,2\n0.2,4,4,3\n", arma::mat{{.1, 5, 6, 2}, {.2, 4, 4, 3}}, "a header line"});
    expect_matrix({"400.5,401.2,402.1,403.6\n.1,.5,.2,.4\n.3,.2,.1,.7\n.3,.2,.1,.7\n",
                   arma::mat{{400.5, 401.2, 402.1, 403.6}, {.1, .5, .2, .4}, {.3, .2, .1, .7}, {.3, .2, .1, .7}},
                   "its first line increases from 400.5 on, unlike the others"});
    expect_rejected(",0.5,0.25\n0.3,0.2,0.1\n", {":1:1: 1 missing"});
}

TEST(TableSurroundings, NumbersInOtherNotationsAreNoIndex) {
    const auto rejected = [](const char* text, const char* cell, const char* why) {
        expect_rejected(text, {cell, "is not a number", why, "--index yes"});
    };
    rejected("growth,a,b\n12%,1,2\n3%,4,5\n", ":2:1: \"12%\"", "a percentage");
    rejected("pop;area\n1 234;1,5\n2 345;2,5\n", "\"1 234\"", "separators of thousands");
    rejected("pop;area\n1,234,567;2,5\n2,345,678;3,5\n", "\"1,234,567\"", "separators of thousands");
    rejected("p,a\n$3.50,1\n$4.50,2\n", "\"$3.50\"", "a currency");
    rejected("c,a,b\n<5,1,2\n<6,3,4\n", "\"<5\"", "a bound");
    rejected("v,a,b\n\u22121.5,2,3\n\u22122.5,3,4\n", ":2:1: ", "U+2212");
    rejected("inch,a\n3/8,.5\n5/8,.6\n", "\"3/8\"", "a fraction");
    rejected("t,a\nTrue,1\nFalse,2\n", "\"True\"", "a truth value");
    rejected("z,a\n1+2j,1\n3-1j,2\n", "\"1+2j\"", "a complex number");
    rejected("dose,a\n5 mg,1\n6 mg,2\n", "\"5 mg\"", "a unit");
    expect_matrix({"dose,a\n5 mg,1\n6 mg,2\n", arma::mat(arma::vec{1, 2}), "an index column", {.index = true}});
    expect_rejected("a,b\n1,12%\n2,13%\n", {":2:3: \"12%\" is not a number (a percentage"});
    for (const std::string name : {"2024-03-01", "01.03.2024", "03/01/2024", "10:00:05", "1007_s_at", "192.168.0.1"})
        expect_matrix({"d;a\n" + name + ";1\n" + name + ";2\n", arma::mat(arma::vec{1, 2}), "an index column"});
}

TEST(TableSurroundings, ExponentsOfFortranAreNumbers) {
    expect_matrix({"1.5D+00 2.0D+00\n-1.5d0 3.25D-01\n", arma::mat{{1.5, 2}, {-1.5, .325}}, "blanks", {}, "t.txt"});
    expect_matrix({"0,5;1,5D+01\n1;2\n", arma::mat{{.5, 15}, {1, 2}}, "decimal comma"});
    for (const char* text : {"12d4", "1.5D", "D5", "1.5D+0x"}) EXPECT_FALSE(number_with_point(text)) << text;
}

TEST(TableSurroundings, MarksThatMaySeparateThousandsAreNotGuessed) {
    expect_rejected("1,234;25\n3,456;7\n", {"\"3,456\"", "--decimal comma"});
    expect_rejected("1.234;5\n12.345;6\n999;7\n", {"\"12.345\"", "--decimal point"});
    expect_matrix({"1.234;5\n12.345;6\n", arma::mat{{1.234, 5}, {12.345, 6}}, "", {.decimal = '.'}});
    expect_rejected(repeated("7;8\n", 70) + "1,234;2\n", {":71:1: ", "\"1,234\"", "--decimal comma"});
    expect_rejected(repeated("7;8\n", 70) + "1.234;2\n", {":71:1: ", "\"1.234\"", "--decimal point"});
    expect_rejected("a,b\n" + repeated("7,8\n", 70) + "\"1,234\",2\n", {":72:1: ", "\"1,234\"", "--decimal comma"});
    const ScratchFolder scratch;
    const auto shown = scratch.write("t.csv", repeated("7;8\n", 70) + "1,234;2\n1,5;3\n");
    EXPECT_EQ(read_noted_matrix(shown).matrix(70, 0), 1.234);
    expect_matrix({"0,123;2,456\n3,789;4,500\n", arma::mat{{.123, 2.456}, {3.789, 4.5}}, "decimal comma"});
}

TEST(TableSurroundings, SecondMatricesAreNotStacked) {
    expect_rejected("# name: x\n# type: matrix\n1 2\n3 4.5\n\n\n# name: y\n# type: matrix\n5 6\n7 8\n",
                    {"a MATLAB or Octave file", "name it FILE.mat"}, {}, "t.txt");
    expect_rejected("# name: x\n1 2\n3 4.5\n\n\n# name: y\n5 6\n7 8\n", {":7: a second matrix begins here (line 6"}, {},
                    "t.txt");
    expect_rejected("# Array shape: (2, 2, 2)\n1 2\n3 4.5\n# New slice\n5 6\n7 8\n# New slice\n",
                    {":5: a second matrix begins here (line 4"}, {}, "t.txt");
    const arma::mat four{{1, 2.5}, {3, 4.5}, {5, 6.5}, {7, 8}};
    expect_matrix({"1 2.5\n3 4.5\n\n5 6.5\n7 8\n",
                   four,
                   "empty lines between its rows are left out (1, such as line 3",
                   {},
                   "t.txt"});
    expect_matrix({"a b\n\n1 2.5\n3 4.5\n5 6.5\n7 8\n", four, "!empty lines", {}, "t.txt"});
    expect_matrix({"1,2.5\n\n3,4.5\n\n5,6.5\n\n7,8\n", four, "!empty lines"});
}

/// pandas saves its index as a column without a name, and calls that "Unnamed: 0" when it reads it again.
TEST(TableSurroundings, OldIndexesOfPandasAreNoDataInSilence) {
    for (const std::string header : {",Unnamed: 0,a", "Unnamed: 0.1,Unnamed: 0,a"})
        expect_rejected(header + "\n0,0,.5\n1,1,.7\n2,2,.2\n", {":1: ", "no name for column 2", "saves a table again"});
    const arma::mat rows{{0, .5}, {1, .7}, {2, .2}};
    expect_matrix({",index,a\n0,0,.5\n1,1,.7\n2,2,.2\n", rows, "its column 2 counts the rows and is read as data"});
    expect_matrix({"no,index,a\n0,0,.5\n1,1,.7\n2,2,.2\n", rows, "its column 2 counts the rows and is read as data"});
    expect_matrix({",a,level\ns,.5,1\nt,.7,2\nu,.2,3\n", arma::mat{{.5, 1}, {.7, 2}, {.2, 3}}, "its column 3 counts"});
    expect_matrix({",b,a\n0,2,.5\n1,3,.7\n2,4,.2\n", arma::mat{{2, .5}, {3, .7}, {4, .2}}, "!counts the rows"});
    expect_matrix({"a,b\n.5,0\n.7,1\n.2,2\n", arma::mat{{.5, 0}, {.7, 1}, {.2, 2}}, "its column 2 counts the rows"});
}

TEST(TableSurroundings, ColumnsThatIdentifyRowsAreNotedWhereverTheyAre) {
    expect_matrix({"a,n,b\n.5,1,3\n.7,2,4.5\n.2,3,1\n", arma::mat{{.5, 1, 3}, {.7, 2, 4.5}, {.2, 3, 1}},
                   "its column 2 counts the rows and is read as data"});
    expect_matrix({".5,2\n.7,4\n.2,6\n.1,8\n", arma::mat{{.5, 2}, {.7, 4}, {.2, 6}, {.1, 8}},
                   "its last column is evenly spaced and is read as data"});
    expect_matrix({"1.5,2\n2,4\n2.5,6\n3,8\n", arma::mat{{1.5, 2}, {2, 4}, {2.5, 6}, {3, 8}}, "!its last column"});
    expect_matrix({"zip,a\n01234,.5\n00501,.7\n90210,.2\n", arma::mat{{1234, .5}, {501, .7}, {90210, .2}},
                   "its first column, \"zip\", holds numbers with zeros in front and is read as data"});
    expect_matrix({"z,a\n1234,.5\n501,.7\n90210,.2\n", arma::mat{{1234, .5}, {501, .7}, {90210, .2}}, "!first column"});
}

TEST(TableSurroundings, TotalsAreNoDataInSilence) {
    const std::string rows = "x,1,2.5\ny,3,4\nz,7,8\n";
    const arma::mat all{{1, 2.5}, {3, 4}, {7, 8}, {11, 14.5}};
    const std::string noted = " named like a total or a statistic of the others and read as data";
    for (const std::string name :
         {"Total", "grand total", "SUM", "Mean", "sd", "count", "min", "Max.", "North Total", "75%", "__no_feature"})
        expect_matrix({",a,b\n" + rows + name + ",11,14.5\n", all, "its row \"" + name + "\" (line 5) is" + noted});
    expect_matrix({",a,b\n" + rows + "Mean,11,14.5\n", all, "!sum of the other"});  // one note for a row
    expect_matrix({",a,b\nMean,1,2.5\nSD,3,4\nz,7,8\n", all.head_rows(3), "\"Mean\" (line 2) and 1 more are" + noted});
    expect_matrix({",a,b\n" + rows + "Totalis,11,14.5\n", all, "!named like"});
    expect_matrix({"a,b,Total\n1,2.5,3.5\n3,1,4\n", arma::mat{{1, 2.5, 3.5}, {3, 1, 4}},
                   "its column \"Total\" (column 3) is" + noted});
    expect_matrix({"a,mean,b\nx,1,2.5,3.5\ny,2,1,3\n", arma::mat{{1, 2.5, 3.5}, {2, 1, 3}}, "(column 3) is" + noted});
    // Without a name.
    expect_matrix({"a,b\n1,2.5\n3,4\n7,8\n11,14.5\n", all, "its last row is the sum of the other rows"});
    expect_matrix({"a,b\n1,2.5\n3,4\n7,8\n11,14.6\n", arma::mat{{1, 2.5}, {3, 4}, {7, 8}, {11, 14.6}}, "!last row"});
    expect_matrix({"1,2,5\n3,4,9\n8,3,4\n4,3,6\n", arma::mat{{1, 2, 5}, {3, 4, 9}, {8, 3, 4}, {4, 3, 6}},
                   "its last row is the mean of the other rows"});
    expect_matrix({"1,2,4,7\n3,4,1,8\n8,3,3,14\n", arma::mat{{1, 2, 4, 7}, {3, 4, 1, 8}, {8, 3, 3, 14}},
                   "its last column is the sum of the other columns"});
    expect_matrix({"0,0\n0,0\n0,0\n0,0\n", arma::mat(4, 2, arma::fill::zeros), "!last row"});
    // A rule of dashes may be left out, but not in silence what it parts.
    expect_rejected("1 2.5\n3 4\n7 8\n----- -----\n11 14.5\n", {":4: a rule", "what is below it", "totals"}, {},
                    "t.txt");
}

TEST(TableSurroundings, SecondHeadersOfWholeNumbersAreNoted) {
    const std::string note = "its first row below the header holds whole numbers that increase";
    expect_matrix({"A,A,A\n0,1,2\n.5,.7,.1\n.2,.4,.3\n", arma::mat{{0, 1, 2}, {.5, .7, .1}, {.2, .4, .3}}, note});
    expect_matrix({"A,A,B\n2019,2020,2021\n.5,.7,.1\n.2,.4,.3\n.2,.1,.3\n",
                   arma::mat{{2019, 2020, 2021}, {.5, .7, .1}, {.2, .4, .3}, {.2, .1, .3}}, note});
    expect_matrix({"a,b,c\n0,1,2\n3,4,5\n6,7,9\n", arma::mat{{0, 1, 2}, {3, 4, 5}, {6, 7, 9}}, "!" + note});
    expect_matrix({"a,b,c\n3,1,2\n.3,.4,.5\n.6,.7,.9\n.1,.4,.2\n",
                   arma::mat{{3, 1, 2}, {.3, .4, .5}, {.6, .7, .9}, {.1, .4, .2}}, "!" + note});
}

TEST(TableSurroundings, PlacesOfEntriesAreNoted) {
    const arma::mat entries{{0, 0, .5}, {0, 1, .7}, {1, 0, .2}, {1, 1, .4}};
    const std::string note = "write the matrix: python3 -c \"import pandas; t=pandas.read_csv('FILE'";
    expect_matrix(
        {"0 0 .5\n0 1 .7\n1 0 .2\n1 1 .4\n", entries, note + ",sep=r'\\s+',header=None); t.pivot", {}, "t.txt"});
    expect_matrix({"row,col,value\n0,0,.5\n0,1,.7\n1,0,.2\n1,1,.4\n", entries, note + "); t.pivot"});
    expect_matrix({"row,col,value\n0,0,.5\n0,1,.7\n1,0,.2\n1,1,.4\n", entries, "!--index yes"});
    expect_matrix({"1;2;5\n1;4;7\n2;2;1\n3;4;8\n", arma::mat{{1, 2, 5}, {1, 4, 7}, {2, 2, 1}, {3, 4, 8}},
                   note + ",sep=';',header=None)"});
    // A pair twice, no row or column with two entries, and counts in no order.
    expect_matrix(
        {"0,0,.5\n0,1,.7\n0,0,.2\n1,1,.4\n", arma::mat{{0, 0, .5}, {0, 1, .7}, {0, 0, .2}, {1, 1, .4}}, "!pivot"});
    expect_matrix(
        {"0,5,.5\n3,1,.7\n1,0,.2\n9,4,.4\n", arma::mat{{0, 5, .5}, {3, 1, .7}, {1, 0, .2}, {9, 4, .4}}, "!pivot"});
    expect_matrix({"5,5,1\n0,1,7\n5,1,2\n0,4,9\n", arma::mat{{5, 5, 1}, {0, 1, 7}, {5, 1, 2}, {0, 4, 9}}, "!pivot"});
}

TEST(TableSurroundings, PlacesOfEntriesInFourColumnsAreNoted) {
    // Ratings with their time, in no order; a relationship matrix of GCTA, whose third column counts.
    expect_matrix(
        {"19\t24\t3\t881250949\n18\t30\t3\t891717742\n19\t30\t1\t878887116\n18\t24\t2\t880606923\n",
         arma::mat{{19, 24, 3, 881250949}, {18, 30, 3, 891717742}, {19, 30, 1, 878887116}, {18, 24, 2, 880606923}},
         "column of the third, write the matrix: python3 -c \"import pandas; t=pandas.read_csv('FILE',sep='\\t',"
         "header=None); t.pivot(index=t.columns[-4],columns=t.columns[-3],values=t.columns[-2])",
         {},
         "t.tsv"});
    expect_matrix({"1,1,100,1.01\n2,1,100,.1\n2,2,100,.99\n3,1,100,.2\n",
                   arma::mat{{1, 1, 100, 1.01}, {2, 1, 100, .1}, {2, 2, 100, .99}, {3, 1, 100, .2}},
                   "column of the fourth"});
    expect_matrix({"5,5,1,3\n0,1,7,2\n5,1,2,8\n0,4,9,1\n",
                   arma::mat{{5, 5, 1, 3}, {0, 1, 7, 2}, {5, 1, 2, 8}, {0, 4, 9, 1}}, "!pivot"});
    expect_matrix({"year,month,a,b\n2001,1,.5,2\n2001,2,.7,3\n2002,1,.2,4\n2002,2,.1,5\n",
                   arma::mat{{2001, 1, .5, 2}, {2001, 2, .7, 3}, {2002, 1, .2, 4}, {2002, 2, .1, 5}}, "!pivot"});
}

TEST(TableSurroundings, PrintedPartsOfATableAreNotTheTable) {
    const auto in_text = [](const std::string& text, std::initializer_list<std::string_view> parts) {
        expect_rejected(text, parts, {}, "t.txt");
    };
    const std::string rows = "    a   b\n0  .5  1\n1  .7  2.5\n";
    in_text(rows + "..  ..  ...\n98  1   2\n99  3   4\n", {":4: rows or columns are left out here", "whole table"});
    in_text(rows + "98  1   2\n99  3   4\n\n[100 rows x 2 columns]\n", {": rows or columns are left out here"});
    in_text(repeated("1 2.5\n", 70) + ".. ..\n3 4\n", {":71: rows or columns are left out here"});
    in_text("     [,1] [,2]\n[1,] 1.5  2\n[2,] 3  4\n [ reached getOption(\"max.print\") -- omitted 95 rows ]\n",
            {":4: rows or columns are left out here"});
    in_text("   a  ...  e\n0  .5  ...  1\n1  .7  ...  2\n", {"rows or columns are left out here"});
    in_text("a b\n1 2.5\n3 4\n# \u2139 90 more rows\n", {":4: rows or columns are left out here"});
    in_text("     [,1] [,2]\n[1,] 1.5  2\n[2,] 3  4\n     [,3] [,4]\n[1,] 1.5  2\n[2,] 3  4\n",
            {":4: the columns are printed in several parts", "write.csv"});
    in_text("  Columns 1 through 2\n\n  1.5 2\n  3 4\n\n  Columns 3 through 4\n\n  1.5 2\n  3 4\n",
            {":1: the columns are printed in several parts"});
    in_text("    aa    bb  \\\n0  .5  1\n1  .7  2.5\n\n   cc\n0  3\n1  4\n",
            {":1: the columns are printed in several parts"});
    in_text("  1.50   2.00\n  3.00  -4.00\n-10.00-100.00\n",
            {":3: \"-10.00-100.00\" is more than one number", "wider"});
    in_text("[[ 1.5  2. ]\n [ 3.   4. ]]\n", {":1: brackets, as NumPy prints", "numpy.save"});
    in_text("<<<<<<< HEAD\n1 2.5\n=======\n1 3.5\n>>>>>>> b\n", {":1: a conflict of git"});
    expect_matrix({"0.5-1.0 1 2.5\n1.0-1.5 3 4\n", arma::mat{{1, 2.5}, {3, 4}}, "an index column", {}, "t.txt"});
    for (const char* text : {"1.5-2", "-1.5", "1.5e-3", "2024-01-02", "a1.5-2.5", "1.5e-3-"})
        EXPECT_FALSE(has_touching_numbers(text)) << text;
    EXPECT_TRUE(has_touching_numbers("1.5e-3-2.5-1."));
    EXPECT_FALSE(has_touching_numbers("1.5" + repeated("-1.5", 100)));  // too long to be cells of a field
}

TEST(TableSurroundings, AdviceIsNotGivenTwice) {
    const std::string units = "a,b\nmV,s\n1.5,2\n3,4\n";
    expect_rejected(units, {":2:1: \"mV\"", "line 2 holds units or a second header: leave it out, or line 1 where"});
    expect_rejected("My experiment,,\na,b,c\n1.5,2,3\n3,4,4\n", {"or line 1 where that is a title"});
    const ScratchFolder scratch;
    const auto message = [&](const std::string& text, const TableDialect& dialect) -> std::string {
        try {
            (void)read_noted_matrix(scratch.write("t.csv", text), {.layout = "", .table = dialect});
        } catch (const Error& error) {
            return error.what();
        }
        return "";
    };
    const std::string text = "x,a\ny,b\nz,c\n";
    EXPECT_NE(message(text, {}).find("say with --delimiter and --decimal how"), std::string::npos);
    EXPECT_NE(message(text, {.delimiter = ','}).find("say with --decimal how"), std::string::npos);
    const std::string both = message(text, {.delimiter = ',', .decimal = '.'});
    EXPECT_NE(both.find("leave out what holds no numbers"), std::string::npos);
    EXPECT_EQ(both.find("--"), std::string::npos) << both;
    const std::string column = message("1.5,x\n2,y\n3,z\n", {.delimiter = ',', .decimal = '.'});
    EXPECT_NE(column.find("leave that column out"), std::string::npos);
    EXPECT_EQ(column.find("--"), std::string::npos) << column;
    const std::string marks = message("a;b\n1.234,5;2\n3;4\n", {.decimal = ','});
    EXPECT_NE(marks.find("with the decimal mark only"), std::string::npos) << marks;
    EXPECT_EQ(marks.find("--"), std::string::npos) << marks;
}

TEST(TableSurroundings, MissingValuesAsProgramsWriteThem) {
    for (const char* word : {"#NV", "#N/D", "#WERT!", "#ZAHL!", "#VALEUR!", "#BEZUG!", "#\u00A1VALOR!", "\\N", "..",
                             ":", "N.A.", "(null)", "\u2013", "n.d.", ".A", ".z", "1.#IND"})
        expect_rejected(fmt::format("a;b\n1.5;{}\n2.5;3\n4;5\n", word),
                        {":2:5: 1 missing or infinite value in 3 rows"});
    expect_rejected("a;b\n1.5;.ab\n2.5;3\n4;5\n", {"\".ab\" is not a number"});
}

TEST(TableSurroundings, ComplexNumbersAreNamed) {
    for (const char* cell : {"(0.446+1j)", "0.8 + 1.0i", "(-1-2j)", "1+2j"})
        expect_rejected(fmt::format("{0},{0}\n{0},{0}\n", cell), {"is not a number (a complex number"});
}

TEST(TableSurroundings, NumbersBehindAnEmptyCellNameColumns) {
    const arma::mat rows{{.1, .2}, {.4, .3}};
    for (const std::string header : {",-0.5,1.25", "Unnamed: 0,-0.5,1.25"})
        expect_matrix(
            {header + "\n0.3,.1,.2\n0.7,.4,.3\n", rows, "a header line (numbers from -0.5 on behind an empty"});
    const ScratchFolder scratch;
    expect_error(ErrorKind::input, [&] { (void)read_matrix(scratch.write("t.csv", ",.5,1.5\n.3,.1,.2\n.7,.4,.3\n")); },
                 {"a guess"});
    // Others lack their first cell too, or one row does not tell: the advice works.
    for (const std::string text : {",0.5,0.25\n0.3,0.2,0.1\n,0.4,0.3\n0.1,.2,.3\n", ",0.5,0.25\n0.3,0.2,0.1\n"})
        expect_rejected(text, {":1:1: ", " missing", "say --header yes --index yes"});
    expect_matrix({",0.5,0.25\n0.3,0.2,0.1\n", arma::mat{{.2, .1}}, "a header line", {.header = true, .index = true}});
    expect_rejected("1,2\n,3\n4,5\n",
                    {":2:1: 1 missing or infinite value in 3 rows (the first, here, is an empty cell): leave out"});
}

TEST(TableSurroundings, BlanksWithinNamesAreNamed) {
    expect_rejected("mpg cyl\nMazda RX4 Wag 21 6\nHornet Sportabout V8 18 8\n",
                    {":1: the header has 2 cells (line 2 has 5", "names in quotes or tabs"}, {}, "t.txt");
    // The line that is named has so many cells.
    expect_rejected("a,b\n1,2\n4,5,6,1\n7,8,9,2\n4,2,9,3\n", {":1: the header has 2 cells (line 3 has 4"});
}

TEST(TableSurroundings, AFirstColumnThatMayBeAnAxisIsNoted) {
    const auto table = [](const std::string& name, const std::string& cells) {
        std::string text = name + ",a\n";
        std::size_t at = 0;
        for (const double value : {.31, .17, .54, .22}) {
            const std::size_t end = cells.find(' ', at);
            text += cells.substr(at, end - at) + fmt::format(",{}\n", value);
            at = end + 1;
        }
        return text;
    };
    const auto noted = [&](const std::string& name, const std::string& cells) {
        const ScratchFolder scratch;
        const auto found = read_noted_matrix(scratch.write("t.csv", table(name, cells)));
        EXPECT_EQ(found.matrix.n_cols, 2U) << name << cells;
        return fmt::format("{}", fmt::join(found.notes, "\n"));
    };
    const std::string kept = "is read as data (--index yes leaves it out)";
    EXPECT_NE(noted("x", "0.5 0.75 1.0 1.25").find("\"x\", is evenly spaced and " + kept), std::string::npos);
    EXPECT_NE(noted("x", "0.033 0.067 0.1 0.133").find("is evenly"), std::string::npos);
    EXPECT_NE(noted("x", "9.5 9.0 8.5 8.0").find("is evenly"), std::string::npos);
    EXPECT_NE(noted("x", "400 300 200 100").find("holds whole numbers and " + kept), std::string::npos);
    EXPECT_EQ(noted("x", "0.5 0.75 1.0 1.3").find(kept), std::string::npos);
    EXPECT_EQ(noted("x", "0.5 0.5 0.5 0.5").find(kept), std::string::npos);
    for (const char* name : {"time (s)", "Wavenumber", "t", "Date", "PatientID", "rowId", "frequency_Hz"})
        EXPECT_NE(noted(name, "0.5 0.71 0.9 1.3").find("may name the rows and " + kept), std::string::npos) << name;
    EXPECT_EQ(noted("times", "0.5 0.71 0.9 1.3").find(kept), std::string::npos);
    const auto spectra = [](const std::string& first) { return first + "\n.1,.5,.2,.4,.1\n.3,.2,.1,.7,.2\n"; };
    expect_matrix(
        {spectra("s,4000,3999,3998,3997"), arma::mat{{.1, .5, .2, .4, .1}, {.3, .2, .1, .7, .2}}, "a header line"});
    expect_matrix({spectra("900.5,800,700.5,600,500"),
                   arma::mat{{900.5, 800, 700.5, 600, 500}, {.1, .5, .2, .4, .1}, {.3, .2, .1, .7, .2}},
                   "its first line decreases from 900.5 on"});
}

TEST(TableSurroundings, ACommentInFrontOfTheRowsMayNameTheColumns) {
    const arma::mat rows{{.5, 2}, {3, 4}};
    expect_matrix({"##x\n#FID IID PC1 PC2\nF1 I1 .5 2\nF2 I2 3 4\n", rows, "a header line and 2 index", {}, "t.txt"});
    expect_matrix({"# time, b\n.5,2\n3,4\n", rows, "its first column, \"time\", may name the rows"});
    expect_matrix({"#chrom\tstart\tend\nchr1\t.5\t2\nchr2\t3\t4\n", rows, "a header line and an index", {}, "t.tsv"});
    // Not with another number of cells, a number, a line between, or a header of its own.
    for (const std::string front : {"# a b c\n", "# a 2\n", "# a b\n# 5\n", "# c d\na b\n"})
        expect_matrix(
            {front + ".5 2\n3 4\n", rows, front.ends_with("a b\n") ? "a header line" : "!a header", {}, "t.txt"});
}

TEST(TableSurroundings, SecondHeadersOfPandasAreNoData) {
    for (const std::string second : {",1,2\n", ",1,2\n,3,4\n"})
        expect_rejected(",q,q\n" + second + "0,.5,.6\n1,.7,.8\n2,.2,.1\n",
                        {":2: a second header line (its index is empty", "df.columns.map(str)"});
    expect_matrix({",q,r\n,1,2\nb,.5,.6\n,.7,.8\n", arma::mat{{1, 2}, {.5, .6}, {.7, .8}}, "an index column"});
}

TEST(TableSurroundings, SecondIndexOfPandasIsNoData) {
    expect_rejected(",,a,b\nx,1,.5,.6\nx,2,.7,.8\ny,1,.9,1\n",
                    {":1: ", "no name for column 2", "leave that column out"});
    expect_matrix({",n,a\nx,1,.5\nx,2,.7\n", arma::mat{{1, .5}, {2, .7}}, "an index column"});
    // Columns without names of their own are counted.
    for (const char* rows : {"x,1,.5,.6\nx,2,.7,.8\ny,1,.9,1\n", "0,1,.5,.6\n0,2,.7,.8\n1,1,.9,1\n"})
        expect_rejected(std::string(",,0,1\n") + rows, {":1: ", "no name for column 2", "leave that column out"});
    expect_rejected(",,3,7\n1,2,.5,.6\n2,2,.7,.8\n", {":1:1: 2 missing"});
}

/// Named columns were added to others, which pandas counts.
TEST(TableSurroundings, CountedNamesInFrontOfWordsAreAHeader) {
    const std::string numbers = "0,1,2,x\n.5,1,7,.1\n.7,2,8,.2\n.9,3,9,.3\n";
    const arma::mat expected{{.5, 1, 7, .1}, {.7, 2, 8, .2}, {.9, 3, 9, .3}};
    expect_matrix({numbers, expected, "a header line"});
    expect_matrix({",0,1,2,x\n0,.5,1,7,.1\n1,.7,2,8,.2\n2,.9,3,9,.3\n", expected, "a header line and an index"});
    const std::string line = "read_csv('FILE').select_dtypes('number')";
    expect_rejected("0,1,kind\n.5,1,a\n.7,2,b\n.9,3,a\n", {"\"a\" is not a number", line});
    expect_rejected(",0,1,kind\n0,.5,1,a\n1,.7,2,b\n2,.9,3,a\n", {"\"a\" is not a number", line});
    expect_rejected("0,1,yes\n2,3,no\n4,5,no\n", {"\"yes\" is not a number", "header=None"});
    expect_rejected("0,1,2,3,a\n0,1,2,3,b\n0,1,2,3,a\n", {"\"a\" is not a number", "header=None"});
}

TEST(TableSurroundings, ListsOfYamlSayHowTheyBecomeRows) {
    expect_rejected("- [1.5, 2]\n- [3, 4]\n", {":1: a list of YAML: sed"});
}

/// Several columns of names in front, with a header, without one, and with one that has no names for them.
TEST(TableSurroundings, SeveralColumnsOfNamesAreAnIndex) {
    const arma::mat expected{{1.5, 2}, {2, 3}, {4, 5}};
    const std::string rows = "north,a,1.5,2\nnorth,b,2,3\nsouth,a,4,5\n";
    for (const char* header : {"", "region,name,u,v\n", ",,u,v\n"})
        expect_matrix({header + rows, expected, "2 index columns"});
    expect_matrix({"region,name,2019,2020\n" + rows, expected, "2 index columns"});
    expect_matrix({"region,name,u,v\n" + rows, expected, "2 index columns", {.index = true}});
    expect_matrix({"group u v\nr1 a 1.5 2\nr2 b 2 3\nr3 a 4 5\n", expected, "2 index columns", {}, "t.txt"});
    expect_matrix({"a,b,c,1\nd,e,f,2\ng,h,i,4\n", arma::mat(arma::vec{1, 2, 4}), "3 index columns"});
    expect_matrix(
        {"a,b,1,2\nd,NA,3,4\ng,i,5,6\nh,j,7,8\n", arma::mat{{1, 2}, {3, 4}, {5, 6}, {7, 8}}, "2 index columns"});
    // Numbers in a notation that is not read are no names, and text behind numbers is none either.
    expect_rejected("a,12%,1\nb,13%,2\nc,14%,2\n", {"\"12%\" is not a number"});
    expect_rejected("a,1,x\nb,2,y\nc,3,z\n", {"\"x\" is not a number", "column 3 of 3 holds text"});
    expect_rejected("a,b\nc,d\ne,f\n", {"is not a number"});
    expect_rejected(rows, {"\"north\" is not a number", "--index yes"}, {.index = false});
}

TEST(TableSurroundings, RowsOfMatlabAndOfR) {
    expect_matrix({"1,2;\n4,5;\n7,8;\n", arma::mat{{1, 2}, {4, 5}, {7, 8}}, "a semicolon at the end of each line"});
    expect_matrix({"1,2;\n4,5;\n7,8;\n", arma::mat{{1, 2}, {4, 5}, {7, 8}}, "a semicolon", {}, "t.txt"});
    expect_matrix({"1,5;\n2,5;\n", arma::mat(arma::vec{1.5, 2.5}), "decimal comma", {.decimal = ','}});
    expect_matrix({"1 2 3;\n4 5 6.5;\n", arma::mat{{1, 2, 3}, {4, 5, 6.5}}, "a semicolon", {}, "t.txt"});
    const ScratchFolder scratch;
    EXPECT_EQ(read_noted_matrix(scratch.write("t.csv", repeated("1,2;\n", 70))).matrix.n_cols, 2U);
    const arma::mat expected{{1.5, 2}, {3, 4}};
    expect_matrix({"     [,1] [,2]\n[1,] 1.5  2\n[2,] 3  4\n", expected, "a header line and an index", {}, "t.txt"});
    expect_matrix({"[1,] 1.5 2\n[2,] 3 4\n", expected, "an index column", {}, "t.txt"});
    for (const char* text : {"[1, 2, 3]\n", "[[1,2],[3,4]]\n", "[\"a\", 1]\n", "{\"a\": 1}\n"})
        expect_rejected(text, {"JSON"}, {}, "t.txt");
}

TEST(TableSurroundings, BarsAtBothEndsAreNoCells) {
    const arma::mat expected{{1.5, 2, 3}, {3, 4.5, 6}, {0, 1, 7}};
    const std::string rows = "| 1.5 | 2 | 3 |\n| 3 | 4.5 | 6 |\n| 0 | 1 | 7 |\n";
    const char* note = "read with delimiter '|' and bars at both ends of each line";
    for (const char* name : {"t.csv", "t.txt"}) expect_matrix({rows, expected, note, {}, name});
    expect_matrix({rows, expected, note, {.delimiter = '|'}});
    expect_matrix({"|a|b|c|\n" + rows, expected, "delimiter '|', bars at both ends of each line and a header line"});
    expect_matrix({"| 1.5 |\n| 2 |\n", arma::mat(arma::vec{1.5, 2}), "read with bars at both ends of each line"});
    // Places count the bar; a row behind the first lines may lack it.
    expect_rejected("| 1.5 | 2 |\n| 3 | x4 |\n| 5 | 6 |\n", {":2:7: \"x4\""});
    expect_matrix({repeated("|1|2|\n", 70) + "3|4.5\n",
                   arma::join_cols(arma::repmat(arma::mat{{1, 2}}, 70, 1), arma::mat{{3, 4.5}}), note});
    // Where the first column is stated to be an index, an empty one is meant.
    expect_matrix({rows, expected, "an index column", {.index = true}});
}

TEST(TableSurroundings, WeatherStationsWriteMmWhereNothingWasMeasured) {
    const std::string rows =
        "2024 01 05 00 50 120 5.1\n2024 01 05 01 50 130 MM\n2024 01 05 02 50 140 4.9\n2024 01 05 03 50 150 4.2\n";
    // MM in the header is the month.
    for (const char* header : {"#YY  MM DD hh mm WDIR WSPD\n#yr  mo dy hr mn degT m/s\n",
                               "#YY  MM DD hh mm WDIR WSPD\n", "YYYY MM DD hh mm WDIR WSPD\n"})
        expect_rejected(header + rows, {"1 missing or infinite value", "the first, here, is \"MM\""}, {}, "t.txt");
    const std::string complete = rows.substr(0, rows.find("2024 01 05 01")) + rows.substr(rows.find("2024 01 05 02"));
    expect_matrix(
        {"YYYY MM DD hh mm WDIR WSPD\n" + complete,
         arma::mat{{2024, 1, 5, 0, 50, 120, 5.1}, {2024, 1, 5, 2, 50, 140, 4.9}, {2024, 1, 5, 3, 50, 150, 4.2}},
         "a header line",
         {},
         "t.txt"});
    EXPECT_FALSE(is_missing("mm"));
}

TEST(TableSurroundings, EmptyCellsOfSpreadsheetsAreNoData) {
    expect_matrix({"a,b\n1,2\n3,4.5\n,\n,\n", arma::mat{{1, 2}, {3, 4.5}}, "a header line"});
    expect_matrix({"a,b,,\n1,2,,\n3,4.5,,\n", arma::mat{{1, 2}, {3, 4.5}}, "a delimiter at the end of each line"});
    expect_rejected("1,2,,\n3,4.5,,\n5,6,,7\n", {":1:5: 5 missing"});
    expect_rejected(repeated("1,2,\n", 70) + "1,2,,5\n", {":71:6: ", "line 1 has 2"});
    expect_matrix({"a,\"x\ny\",c\n1,2,3\n4,5,6.5\n", arma::mat{{1, 2, 3}, {4, 5, 6.5}}, "a header line"});
    expect_rejected("a,\"x\n1,2\n4,5\n", {":1: a quote opens here"});
    expect_rejected("a,b\n1,2\n3,4.5\n5,6\nEnd,of data\n", {":5:1: \"End\"", "leave out line 5"});
    expect_rejected("a,b\n1,2\n3,4.5\n5,6\nc,d\n7,8\n", {":5:1: \"c\"", "leave out line 5, or", "its own file"});
}

}  // namespace
}  // namespace spiked::sim
