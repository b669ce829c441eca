#include "sim/io/table.hpp"

#include <zlib.h>

#include <cstdlib>

#include "core/files/tests/scratch.hpp"
#include "sim/io/matrix_file.hpp"
#include "sim/spiked/spectrum_spec.hpp"
#include "sim/tables/table_cells.hpp"

namespace spiked::sim {
namespace {

/// A table as it stands in a file, how it is read, and the only note without the path (none if empty).
struct TableCase {
    const char* text;
    arma::mat expected;
    std::string note;
    const char* file = "t.csv";
    TableDialect dialect = {};
};

void expect_table(const TableCase& table) {
    const ScratchFolder scratch;
    const auto path = scratch.write(table.file, table.text);
    const auto found = read_noted_matrix(path, {.layout = "", .table = table.dialect});
    EXPECT_TRUE(arma::size(found.matrix) == arma::size(table.expected) &&
                arma::approx_equal(found.matrix, table.expected, "absdiff", 0.0))
        << table.text << found.matrix;
    std::vector<std::string> notes;
    if (!table.note.empty()) notes.push_back(path + ": " + table.note);
    EXPECT_EQ(found.notes, notes) << table.text;
}

void expect_bad_table(const std::string& text, std::initializer_list<std::string_view> parts,
                      const std::string& file = "t.csv", const TableDialect& dialect = {}) {
    const ScratchFolder scratch;
    const auto path = scratch.write(file, text);
    const auto read = [&] { (void)read_noted_matrix(path, {.layout = "", .table = dialect}); };
    expect_error(ErrorKind::input, read, {path});
    expect_error(ErrorKind::input, read, parts);
}

const arma::mat halves{{0.5, 0.25}, {0.75, 1}};

TEST(Table, OfRIsReadWithoutItsNames) {
    // write.csv, write.csv2, write.table with its defaults, with sep = "\t" and without quotes.
    expect_table(
        {"\"\",\"V1\",\"V2\"\n\"1\",0.5,0.25\n\"2\",0.75,1\n", halves, "read with a header line and an index column"});
    expect_table({"\"\";\"V1\";\"V2\"\n\"1\";0,5;0,25\n\"2\";0,75;1\n", halves,
                  "read with delimiter ';', decimal comma, a header line and an index column"});
    expect_table({"\"V1\" \"V2\"\n\"1\" 0.5 0.25\n\"2\" 0.75 1\n", halves,
                  "read with blanks between cells, a header line and an index column", "t.txt"});
    expect_table({"\"V1\"\t\"V2\"\n\"a b\"\t0.5\t0.25\n\"c\"\t0.75\t1\n", halves,
                  "read with delimiter tab, a header line and an index column", "t.tsv"});
    expect_table({"V1 V2\nx 0.5 0.25\ny 0.75 1\n", halves,
                  "read with blanks between cells, a header line and an index column", "t.dat"});
    expect_table({"\"x\"\n\"1\",0.5\n\"2\",0.75\n", arma::mat(arma::vec{0.5, 0.75}),
                  "read with a header line and an index column"});
}

TEST(Table, HeaderOfNumbersIsNoData) {
    const arma::mat expected{{.1, .2, .35}, {.4, .5, .7}};
    const char* counted = "read with a header line (it counts 0, 1, 2; --header no reads it as data)";
    expect_table({"0,1,2\n.1,.2,.35\n.4,.5,.7\n", expected, counted});
    expect_table({"1,2,3\n.1,.2,.35\n.4,.5,.7\n", expected,
                  "read with a header line (it counts 1, 2, 3; --header no reads it as data)"});
    expect_table({"0,1,2\n5,3,2\n", arma::mat{{5, 3, 2}}, counted});
    expect_table({",0,1,2\n0,.1,.2,.35\n1,.4,.5,.7\n", expected, "read with a header line and an index column"});
    expect_table({"\"7\",\"8\",\"9\"\n.1,.2,.35\n.4,.5,.7\n", expected, "read with a header line"});
    expect_table({"name,0,1,2\na,.1,.2,.35\nb,.4,.5,.7\n", expected, std::string(counted) + " and an index column"});
    expect_table(
        {"name,17,18,19\na,.1,.2,.35\nb,.4,.5,.7\n", expected,
         "read with a header line (whole numbers from 17 on, --header no reads them as data) and an index column"});
    expect_table({"a,1\nb,3\nc,3.5\n", arma::mat(arma::vec{1, 3, 3.5}), "read with an index column"});
    expect_table({"a,1\nb,2\n", arma::mat(arma::vec{1, 2}), "read with an index column"});
    expect_table({"0,1,2\n.1,.2,.35\n", arma::mat{{0, 1, 2}, {.1, .2, .35}}, "", "t.csv", {.header = false}});
    // The lines go on counting, or the first one is like the others.
    expect_table({"0,1\n2,3\n4,5\n", arma::mat{{0, 1}, {2, 3}, {4, 5}}, ""});
    expect_table({"1,2\n1,2\n7,5\n", arma::mat{{1, 2}, {1, 2}, {7, 5}}, ""});
    expect_table({"0,1\n1,0\n", arma::mat{{0, 1}, {1, 0}},
                  "its first line counts 0, 1 and is read as data (--header yes: as a header)"});
    expect_table({"2019,2020\n.5,.6\n", arma::mat{{2019, 2020}, {.5, .6}},
                  "its first line holds whole numbers, unlike the others, and is read as data (--header yes: as a "
                  "header)"});
    expect_table({"year,2019,2020\n5,.5,.6\n", arma::mat{{5, .5, .6}}, "read with a header line"});
}

TEST(Table, IndexIsNoData) {
    const arma::mat expected{{.5, .6}, {.7, .8}, {.9, 1}};
    expect_table({"0,.5,.6\n1,.7,.8\n2,.9,1\n", expected,
                  "read with an index column (it counts 0 to 2; --index no reads it as data)"});
    expect_table({"1,.5,.6\n2,.7,.8\n3,.9,1\n", expected,
                  "read with an index column (it counts 1 to 3; --index no reads it as data)"});
    expect_table({"n,a,b\n1,.5,.6\n2,.7,.8\n3,.9,1\n", expected,
                  "read with a header line and an index column (it counts 1 to 3; --index no reads it as data)"});
    expect_table({"g1,.5,.6\ng2,.7,.8\ng3,.9,1\n", expected, "read with an index column"});
    expect_table(
        {"Unnamed: 0,a,b\n8,.5,.6\n4,.7,.8\n6,.9,1\n", expected, "read with a header line and an index column"});
    const arma::mat whole{{17, .5}, {23, .7}, {31, .9}};
    expect_table({"17,.5\n23,.7\n31,.9\n", whole,
                  "its first column holds whole numbers and is read as data (--index yes leaves it out)"});
    expect_table({"17,.5\n23,.7\n31,.9\n",
                  arma::mat(arma::vec{.5, .7, .9}),
                  "read with an index column",
                  "t.csv",
                  {.index = true}});
    expect_table({"0,.5\n1,.7\n2,.9\n", arma::mat{{0, .5}, {1, .7}, {2, .9}}, "", "t.csv", {.index = false}});
    // An index that counts may end after the lines by which the form is recognised.
    std::string text;
    for (int i = 0; i < 100; ++i) text += std::to_string(i == 99 ? 200 : i) + ",0.5\n";
    const ScratchFolder scratch;
    EXPECT_EQ(read_noted_matrix(scratch.write("t.csv", text)).matrix.n_cols, 2U);
}

TEST(Table, IdOfWholeNumbersIsReadAsDataWithANote) {
    const ScratchFolder scratch;
    const auto found = read_noted_matrix(scratch.write("t.csv", "id,x\n23,.7\n17,.5\n"));
    EXPECT_TRUE(arma::approx_equal(found.matrix, arma::mat{{23, .7}, {17, .5}}, "absdiff", 0.0));
    ASSERT_EQ(found.notes.size(), 2U);
    EXPECT_NE(found.notes[1].find("\"id\", holds whole numbers and is read as data"), std::string::npos);
}

TEST(Table, DelimitersAndDecimalMarksAreRecognised) {
    const arma::mat expected{{1.5, 2}, {3, 4.25}};
    expect_table({"1,5;2\n3;4,25\n", expected, "read with delimiter ';' and decimal comma"});
    expect_table({"1.5;2\n3;4.25\n", expected, "read with delimiter ';'"});
    expect_table({"1,5\t2\n3\t4,25\n", expected, "read with delimiter tab and decimal comma", "t.tsv"});
    expect_table({"1.5 2\n3 4.25\n", expected, "read with blanks between cells", "t.txt"});
    expect_table({"  1,5   2\n 3\t4,25 \n", expected, "read with blanks between cells and decimal comma", "t.dat"});
    expect_table({"1.5|2\n3|4.25\n", expected, "read with delimiter '|'"});
    expect_table({"\"1,5\",\"2\"\n\"3\",\"4,25\"\n", expected, "read with decimal comma and numbers in quotes"});
    expect_table({"\"1.5\",\"2\"\n\"3\",\"4.25\"\n", expected, "read with numbers in quotes"});
    expect_table({"'1.5';'2'\n'3';'4.25'\n", expected, "read with delimiter ';' and numbers in quotes"});
    expect_table({"sep=;\n1,5;2\n3;4,25\n", expected, "read with delimiter ';' and decimal comma"});
    expect_table({"1.5, 2\n3, 4.25\n", expected, ""});
    expect_table({"1\t\t2\n3\t\t4\n", arma::mat{{1, 2}, {3, 4}}, "read with blanks between cells", "t.tsv"});
    // A mark that appears only behind the first lines.
    std::string text;
    for (int i = 0; i < 100; ++i) text += "7;8\n";
    const ScratchFolder scratch;
    EXPECT_EQ(read_noted_matrix(scratch.write("t.csv", text + "7;8,5\n")).matrix(100, 1), 8.5);
    expect_bad_table(text + "7;8.5\n7;8,5\n", {":102:3: \"8,5\" is not a number", "decimal point", "--decimal"});
}

TEST(Table, CommentsTrailingDelimitersAndLineEndsAreAccepted) {
    const arma::mat expected{{1, 2}, {3, 4.5}};
    expect_table({"# a\n% b\n1,2\n\n3,4.5\n", expected, ""});
    expect_table({"1,2,\n3,4.5,\n", expected, "read with a delimiter at the end of each line"});
    expect_table({"a,b,\n1,2,\n3,4.5,\n", expected, "read with a delimiter at the end of each line and a header line"});
    expect_table({"a,b\n1,2,\n3,4.5,\n", expected, "read with a delimiter at the end of each line and a header line"});
    expect_table(
        {"\xEF\xBB\xBF"
         "a,b\r\n1,2\r\n3,4.5\r\n",
         expected, "read with a header line"});
    expect_table({"a,b\r1,2\r3,4.5\r", expected, "read with a header line"});
}

TEST(TableBadInput, TwoReadingsAreNotGuessed) {
    expect_bad_table("1,2\n3,4\n", {"two ways", "--delimiter comma or --decimal comma"}, "t.txt");
    expect_table({"1,2\n3,4\n", arma::mat{{1, 2}, {3, 4}}, "", "t.txt", {.delimiter = ','}});
    expect_table({"1,2\n3,4\n", arma::mat(arma::vec{1.2, 3.4}), "read with decimal comma", "t.txt", {.decimal = ','}});
    expect_bad_table("1,50\n3,07\n", {"two ways", "--delimiter comma or --decimal comma"});
    expect_table({"1,50\n3,70\n", arma::mat{{1, 50}, {3, 70}}, ""});
    expect_table({"1,0\n3,0\n", arma::mat{{1, 0}, {3, 0}}, ""});
    expect_bad_table("x\n1,5\n2,5\n", {":1:", "--index yes or --decimal comma"});
    expect_table({"x\n1,5\n2,5\n",
                  arma::mat(arma::vec{1.5, 2.5}),
                  "read with decimal comma and a header line",
                  "t.csv",
                  {.decimal = ','}});
    expect_table({"x\n1,5\n2,5\n",
                  arma::mat(arma::vec{5, 5}),
                  "read with a header line and an index column",
                  "t.csv",
                  {.index = true}});
    expect_bad_table("1,5, 2,5\n1,5, 3,5\n", {"with and without a blank", "--delimiter comma"});
    expect_bad_table("\"1,234\",\"2,500\"\n\"3,000\",\"4,100\"\n", {"thousands", "--decimal comma"});
    expect_bad_table("1.5;2\n1,5;2\n2.5;3\n", {"commas and with points", "\"1,5\"", "\"2.5\""});
    expect_bad_table("title\n1.5\t2\n3\t4\n", {":1: one name above two cells", "where it is a title"}, "t.tsv");
    expect_bad_table("1.234,5;2\n3,5;4\n", {":1:1: \"1.234,5\" is not a number", "decimal comma"});
}

TEST(TableBadInput, MissingValuesAreCountedAndFound) {
    expect_bad_table("1,NA,3\n4,5,6\nNaN,,7\n", {":1:3: 3 missing or infinite values in 3 rows", "\"NA\""});
    for (const std::string missing :
         {"NA", "NaN", "nan", "?", "NULL", "null", "Inf", "-inf", "N/A", "#N/A", "None", ""})
        expect_bad_table("a,b\n1,2\n3," + missing + "\n5,6\n", {":3:3: 1 missing or infinite value in 3 rows"});
    expect_bad_table("a,b,c\n1,2,\n3,4,\n", {":2:5: 2 missing", "an empty cell"});
    expect_bad_table("1;NA\n0,5;2\n", {":1:3: 1 missing"});
}

TEST(TableBadInput, AdviceNamesWhatIsWrong) {
    expect_bad_table("a,b,kind\n1,2,x\n2,3,y\n",
                     {":2:5: \"x\" is not a number", "column 3 of 3 holds text", "leave that"});
    expect_bad_table("a;b\n1;2\n3;4\n", {":2:1: \"1;2\"", "no cell of the line", "--delimiter"}, "t.csv",
                     {.delimiter = ','});
    expect_bad_table("x,.5\ny,.6\n", {":1:1: \"x\"", "--index yes"}, "t.csv", {.index = false});
    expect_bad_table("a,b\n.5,1\n.7,2\n", {":1:1: \"a\"", "--header yes"}, "t.csv", {.header = false});
    expect_bad_table("1.5,2\n3,4\n", {":1:1: \"1.5,2\" is not a number"}, "t.csv", {.delimiter = ';'});
    expect_bad_table("1.5m,2m\n3,4\n", {":1:1: \"1.5m\"", "--header yes"});
    expect_bad_table("Title\n1,2,3\n4,5,6\n", {":1: the header has 1 cell (line 2 has 3)"});
    expect_bad_table("a,b\n", {"no line of numbers"});
    expect_bad_table("g1\ng2\n", {"no cell of the line is one"});
    expect_bad_table(std::string("\xFF\xFE"
                                 "1\0,\0",
                                 6),
                     {"UTF-16", "iconv -f UTF-16 -t UTF-8 FILE > NEW"});
    expect_bad_table(std::string("\xFF\xFE\0\0"
                                 "1\0\0\0",
                                 8),
                     {"UTF-32", "iconv -f UTF-32 -t UTF-8"});
    expect_bad_table(std::string("a\0,\0b\0\n\0"
                                 "1\0,\0"
                                 "2\0",
                                 14),
                     {"text in UTF-16LE", "iconv -f UTF-16LE"});
    expect_bad_table(std::string("\0a\0,\0b\0\n", 8), {"text in UTF-16BE"});
    expect_bad_table(std::string("a\0\0\0,\0\0\0", 8), {"text in UTF-32LE"});
    const ScratchFolder scratch;
    const auto text = scratch.write("t.npy", "\x93NUMPY");
    expect_error(ErrorKind::usage, [&] { (void)read_noted_matrix(text, {.layout = "", .table = {.header = true}}); },
                 {"no effect on a .npy file", "leave them out"});
}

TEST(TableBadInput, TabsPartCellsWithBlanksInsideAndEmptyCells) {
    expect_bad_table("1 000,5\t2,5\n2 000,25\t1,5\n", {":2:1: \"2 000,25\"", "separators of thousands"}, "t.tsv");
    expect_bad_table("1 000.5\t2\n2 000\t1\n", {":2:1: \"2 000\"", "separators of thousands"}, "t.tsv");
    expect_bad_table("1\t2\t\n\t3\t4\n5\t\t6\n", {":1:5: 3 missing or infinite values in 3 rows", "an empty cell"},
                     "t.tsv");
    // Columns that are aligned with tabs.
    expect_table({"1.5\t\t2\n3\t\t4\n", arma::mat{{1.5, 2}, {3, 4}}, "read with blanks between cells", "t.tsv"});
    expect_table(
        {"1.5\t\t2\n3.00000001\t4\n", arma::mat{{1.5, 2}, {3.00000001, 4}}, "read with blanks between cells", "t.tsv"});
}

TEST(TableBadInput, LinesOfDigitsAreNoColumnOfNumbers) {
    expect_bad_table("012012\n211021\n001900\n", {":1: each line is 6 digits", "sed 's/./& /g'"}, "t.geno");
    expect_bad_table("1122112211221122\n2211221122112211\n", {"each line is 16 digits"});
    expect_table({"112211\n221122\n", arma::mat(arma::vec{112211, 221122}), ""});
    expect_table({"0.1250\n1.2500\n", arma::mat(arma::vec{.125, 1.25}), ""});
}

TEST(TableBadInput, OtherNotationsAndFormsAreNamed) {
    expect_bad_table("a,b\n0x1F,2\n0x20,3\n", {":2:1: \"0x1F\"", "a hexadecimal number"});
    expect_bad_table("a,b\n2,1.5-101\n3,2.5\n", {":2:3: \"1.5-101\"", "an exponent without its E"});
    expect_bad_table("a,b\n2,1.5e400\n3,2.5\n", {":2:3: \"1.5e400\"", "beyond the largest number"});
    expect_bad_table("a,b\n0x1.8p+0,2\n0x1p+1,3\n", {":2:1: \"0x1.8p+0\"", "a hexadecimal number"});
    expect_bad_table("a,b\n2,1.52(3)\n3,2.51(2)\n", {":2:3: \"1.52(3)\"", "with its uncertainty"});
    for (const std::string uncertain : {"1.5 (0.2)", "1.5 (.2)", "1.5(12)", "1.5 [1.2; 1.8]", "\"1.5 [1.2, 1.8]\""})
        expect_bad_table("a,b\n" + uncertain + ",2\n" + uncertain + ",4\n", {":2:1:", "with its uncertainty"});
    expect_table(
        {"a,b\n1 (left),2\n1 (right),4\n", arma::mat(arma::vec{2, 4}), "read with a header line and an index column"});
    expect_bad_table("a,b\n2,1.5x10^3\n3,2.5x10^3\n", {":2:3: \"1.5x10^3\"", "with a power of ten"});
    expect_bad_table("a,b\n2,np.float64(1.5)\n3,np.float64(-2)\n", {":2:3: ", "a number as NumPy prints it"});
    expect_bad_table("a,b\n2,\u200B1.5\n3,2.5\n", {":2:3: ", "it holds U+200B, which is not seen"});
    expect_bad_table(
        "a;b\n2;1\xA0"
        "234,5\n3;2,5\n",
        {":2:3: ", "separators of thousands"});
    expect_bad_table("1.0\n0.5 1.0\n0.1 0.2 1.0\n", {"the lower triangle of a symmetric matrix"}, "t.txt");
    // As R prints a distance.
    expect_bad_table("   a  b  c\nb .5\nc .1 .2\nd .3 .7 .9\n", {"the lower triangle", "as.matrix(d)"}, "t.txt");
    expect_bad_table("x y z\n1 2 3\n4 5 6.5\nMean 2 3 4\n", {":4:1: \"Mean\"", "a name in front of 3 cells"}, "t.txt");
    expect_bad_table("g\tchr\tstart\tstrand\tn\ng1\tc1\t1\t+\t5\ng2\tc1\t20\t-\t7\n",
                     {":2:9: \"+\"", "column 4 of 5 holds text", "leave that column out"}, "t.tsv");
    expect_bad_table("group,a,a,b\nsub,1,2,1\nid,,,\nr1,.1,.2,.3\nr2,.5,.1,.2\n",
                     {":3: a line with a name and no numbers", "df.columns.map(str)"});
}

TEST(TableBadInput, OtherSeparatorsAreNamedWithTheLineThatReplacesThem) {
    const auto in_text = [](const std::string& text, std::initializer_list<std::string_view> parts) {
        expect_bad_table(text, parts, "t.txt");
    };
    in_text("1.5:2:3\n4:5:6.5\n", {":1:1: ", "numbers with \":\" between them", "tr ':' , < FILE > x.csv"});
    in_text("a^b\n1.5^2\n3^4.5\n", {":2:1: ", "tr '^' , < FILE"});
    in_text("1::1193::5\n1::661::3\n", {"sed 's/::/,/g' FILE > x.csv"});
    in_text("1.5\uFF0C2\n3\uFF0C4.5\n", {"\uFF0C"});
    EXPECT_EQ(other_separator("10:30:00"), "");
    EXPECT_EQ(other_separator("2024/01/05"), "");
    EXPECT_EQ(other_separator("1.5"), "");
    EXPECT_EQ(other_separator("1:2/3"), "");
    EXPECT_EQ(other_separator("1e5-3"), "");
    EXPECT_EQ(other_separator("1;2"), "");  // which --delimiter names
}

TEST(TableBadInput, ColumnsOfTextAreListedWithTheLineThatLeavesThemOut) {
    expect_bad_table("x,g,y,h,k\n.5,a,2,b,3\n.7,a,3,c,4\n.1,b,4,b,5\n",
                     {":2:4: \"a\"", "columns 2, 4 of 5 hold text",
                      "leave them out: python3 -c \"import pandas; "
                      "pandas.read_csv('FILE').select_dtypes('number').to_csv('x.csv', index=False)\""});
    expect_bad_table("1;a;b\n2;a;c\n3;b;d\n", {"columns 2, 3 of 3 hold text", "say with --delimiter and --decimal"},
                     "t.txt");
}

TEST(TableBadInput, ListsInCellsAreNamedWithTheLineThatConvertsThem) {
    if (std::system("/usr/bin/python3 -c 'import numpy, pandas' 2>/dev/null") != 0) GTEST_SKIP() << "no pandas";
    for (const char* text : {"id,embedding\n1,\"[0.5, 0.25, -3]\"\n2,\"[1e-2, 2, 4]\"\n",
                             "\"[0.5, 0.25, -3]\"\n\"[1e-2, 2, 4]\"\n", "id;v\n1;[0.5 0.25 -3]\n2;[1e-2  2 4]\n"}) {
        const ScratchFolder scratch;
        std::string line;
        try {
            (void)read_matrix(scratch.write("m.csv", text));
        } catch (const Error& error) {
            line = error.what();
        }
        EXPECT_NE(line.find("a list of numbers in one cell"), std::string::npos) << line;
        line = line.substr(std::min(line.find("python3 -c"), line.size()));
        ASSERT_NE(line.find("FILE"), std::string::npos) << text;
        line.replace(line.find("FILE"), 4, "m.csv");
        ASSERT_EQ(std::system(("cd '" + scratch.path(".") + "' && /usr/bin/" + line).c_str()), 0) << line;
        const arma::mat expected{{.5, .25, -3}, {.01, 2, 4}};
        EXPECT_TRUE(arma::approx_equal(read_matrix(scratch.path("x.npy")), expected, "absdiff", 0.0)) << text;
    }
}

TEST(Table, BlanksWithinQuotesAreNoPartOfANumber) {
    const ScratchFolder scratch;  // write.csv(format(x)) in R
    const auto found = read_noted_matrix(
        scratch.write("t.csv", "\"\",\"a\",\"b\"\n\"r\",\" 1.5\",\"-2.25\"\n\"s\",\"10.0\",\" \t3\"\n"));
    EXPECT_TRUE(arma::approx_equal(found.matrix, arma::mat{{1.5, -2.25}, {10, 3}}, "absdiff", 0.0));
}

TEST(Table, LabelsOfRowsAreNoted) {
    const ScratchFolder scratch;
    const auto found = read_noted_matrix(scratch.write("t.csv", "x1,x2,class\n1.5,2,0\n4,5,1\n7,8,0\n"));
    ASSERT_EQ(found.notes.size(), 2U);
    EXPECT_NE(found.notes[1].find("its column \"class\" (column 3) is named like labels of the rows"),
              std::string::npos);
}

TEST(TableBadInput, GuessesAreErrorsWhereNobodyReadsNotes) {
    const ScratchFolder scratch;
    const auto fails = [&](const char* text) {
        expect_error(ErrorKind::input, [&] { (void)read_matrix(scratch.write("t.csv", text)); }, {"a guess", "counts"});
    };
    fails("0,1,2\n.1,.2,.35\n");
    fails("0,.5\n1,.7\n2,.9\n");
    EXPECT_EQ(read_matrix(scratch.write("t.csv", ",a\n0,.5\n1,.7\n")).n_cols, 1U);
}

TEST(TableBadInput, ALoneCellAboveRowsWithTwoNamesIsARowThatIsTooShort) {
    const ScratchFolder scratch;
    for (const char* text : {"0.5\na,b,2.5\n", "\"0,25\"\n\"a\",\"b\",\"2,5\"\n"})
        expect_error(ErrorKind::input, [&] { (void)read_noted_matrix(scratch.write("t.csv", text)); },
                     {"t.csv:1", "1 cell"});
}

std::string packed(const std::string& text) {
    z_stream stream{};
    if (deflateInit2(&stream, 9, Z_DEFLATED, 16 + MAX_WBITS, 9, Z_DEFAULT_STRATEGY) != Z_OK) std::abort();
    std::string out(text.size() + 1000, '\0');
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
    stream.avail_in = static_cast<uInt>(text.size());
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    deflate(&stream, Z_FINISH);
    out.resize(out.size() - stream.avail_out);
    deflateEnd(&stream);
    return out;
}

TEST(Table, PackedByGzipIsRead) {
    const ScratchFolder scratch;
    const arma::mat expected{{1, 2}, {3, 4}};
    const auto read = [&](const std::string& name, const std::string& bytes) {
        const auto found = read_matrix(scratch.write(name, bytes));
        EXPECT_TRUE(arma::size(found) == arma::size(expected) && arma::approx_equal(found, expected, "absdiff", 0.0));
    };
    read("t.csv.gz", packed("1,2\n3,4\n"));
    read("t.tsv.gz", packed("1\t2\n") + packed("3\t4\n"));  // two members, as after concatenation
    read("t.txt", packed("1 2\n3 4\n"));                    // a suffix that does not say so
    read("t.csv.gz", "1,2\n3,4\n");                         // unpacked by the browser
    const std::string whole = packed("1,2\n3,4\n");
    expect_bad_table(whole.substr(0, whole.size() - 6), {"ends early (gzip)"}, "t.csv.gz");
    std::string changed = whole;
    changed[changed.size() - 6] = static_cast<char>(changed[changed.size() - 6] ^ 1);
    expect_bad_table(changed, {"damaged (gzip"}, "t.csv.gz");
    expect_bad_table(packed(std::string(20 << 20, '1')), {"unpacks", "are read of data compressed so strongly"},
                     "t.csv.gz");
}

TEST(Table, OfACovarianceIsReadInTheSameForms) {
    const ScratchFolder scratch;
    const auto plain = parse_spectrum("file:" + scratch.write("a.csv", "1,0.75\n5,0.25\n"));
    for (const char* text : {"1;0,75\n5;0,25\n", "\"\",\"value\",\"weight\"\n\"1\",1,0.75\n\"2\",5,0.25\n",
                             "value\tweight\n1\t0.75\n5\t0.25\n"}) {
        const auto found = parse_spectrum("file:" + scratch.write("b.csv", text));
        ASSERT_EQ(found.atoms().size(), plain.atoms().size()) << text;
        for (std::size_t i = 0; i < plain.atoms().size(); ++i) {
            EXPECT_EQ(found.atoms()[i].value, plain.atoms()[i].value) << text;
            EXPECT_EQ(found.atoms()[i].weight, plain.atoms()[i].weight) << text;
        }
    }
    // Values that happen to count are values, and two numbers in a line are two numbers.
    EXPECT_EQ(parse_spectrum("file:" + scratch.write("c.txt", "3,1\n")).atoms().front().value, 3.0);
    EXPECT_EQ(parse_spectrum("file:" + scratch.write("c.csv", "0,0.5\n1,0.25\n2,0.25\n")).atoms().size(), 3U);
    EXPECT_EQ(parse_spectrum("sample:" + scratch.write("d.csv", ";a;b\na;2,5;0\nb;0;1\n")).atoms().size(), 2U);
}

TEST(TableCells, QuotesAndThousands) {
    std::vector<std::string> cells;
    each_cell(R"("a ""b"", c" , 'd',e"f,"g)", ',', [&](const TableCell& cell) {
        cells.emplace_back(cell.text);
        return true;
    });
    EXPECT_EQ(cells, (std::vector<std::string>{R"(a ""b"", c)", "d", "e\"f", "\"g"}));
    EXPECT_EQ(count_cells(" 1  2\t3 ", ' '), 3U);
    EXPECT_EQ(count_cells("1,,", ','), 3U);
    for (const auto* text : {"1,234", "-12,345,678", "123,456.75"}) EXPECT_TRUE(has_thousands(text, ',')) << text;
    for (const auto* text : {"0,123", "1,23", "1234,567", "1,2345", ",123", "1,234,5", "12"})
        EXPECT_FALSE(has_thousands(text, ',')) << text;
    EXPECT_TRUE(has_thousands("1.234,5", '.'));
}

/// Writes files with pandas and NumPy and the values that they hold, and compares.
TEST(TableReference, FilesOfPandasAndNumPyHoldTheirNumbers) {
    if (std::system("/usr/bin/python3 -c 'import numpy, pandas' 2>/dev/null") != 0) GTEST_SKIP() << "no pandas";
    const ScratchFolder scratch;
    ASSERT_EQ(std::system(("cd '" + scratch.path(".") + R"(' && /usr/bin/python3 -c '
import numpy as np, pandas as pd, gzip
x = np.random.default_rng(42).normal(size=(70, 4)); np.save("x.npy", x)
d = pd.DataFrame(x); n = pd.DataFrame(x, columns=list("abcd"), index=["row %d" % i for i in range(70)])
d.to_csv("index.csv"); d.to_csv("columns.csv", index=False); d.to_csv("rows.csv", header=False)
d.to_csv("plain.csv", index=False, header=False); d.to_csv("packed.csv.gz"); d.to_csv("tabs.tsv", sep="\t")
d.to_csv("europe.csv", sep=";", decimal=","); n.to_csv("names.csv"); n.to_csv("bom.csv", encoding="utf-8-sig")
n.to_csv("quoted.csv", quoting=1); n.to_csv("words.csv", quoting=2); n.to_csv("lines.csv", lineterminator="\r\n")
n.to_csv("mixed.csv", decimal=","); n.reset_index(drop=True).to_csv("blanks.txt", sep=" ")
open("shown.txt", "w").write(n.reset_index(drop=True).to_string(float_format=lambda v: repr(float(v))))
np.savetxt("np.txt", x); np.savetxt("np.csv", x, delimiter=","); np.savetxt("np.dat", x, header="a b c d")
np.savetxt("np.txt.gz", x, delimiter=";"); np.savetxt("head.csv", x, delimiter=",", header="a,b,c,d", comments="")
'
)")
                              .c_str()),
              0);
    const arma::mat expected = read_matrix(scratch.path("x.npy"));
    for (const auto* name :
         {"index.csv", "columns.csv", "rows.csv",   "plain.csv", "packed.csv.gz", "tabs.tsv",  "europe.csv",
          "names.csv", "bom.csv",     "quoted.csv", "words.csv", "lines.csv",     "mixed.csv", "blanks.txt",
          "shown.txt", "np.txt",      "np.csv",     "np.dat",    "np.txt.gz",     "head.csv"}) {
        const auto found = read_noted_matrix(scratch.path(name));
        ASSERT_EQ(arma::size(found.matrix), arma::size(expected)) << name;
        EXPECT_LT(arma::abs(found.matrix - expected).max(), 1e-15) << name;
        EXPECT_LE(found.notes.size(), 1U) << name;
    }
}

}  // namespace
}  // namespace spiked::sim
