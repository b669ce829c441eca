#include "sim/io/file_formats.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "core/runtime/error.hpp"
#include "core/text/names.hpp"
#include "core/text/printable.hpp"
#include "sim/io/foreign_formats.hpp"
#include "sim/io/tensor_container.hpp"
#include "sim/io/text_lines.hpp"
#include "sim/tables/table_cells.hpp"

namespace spiked::sim {

namespace {

/// The first bytes of what gzip packed, from the first bytes of the file.
std::string gunzipped(std::string_view head) {
    constexpr int gzip_only = 16 + MAX_WBITS;
    std::string packed(head);
    std::string text(512, '\0');
    z_stream stream{};
    if (inflateInit2(&stream, gzip_only) != Z_OK) return "";
    stream.next_in = reinterpret_cast<Bytef*>(packed.data());
    stream.avail_in = static_cast<uInt>(packed.size());
    stream.next_out = reinterpret_cast<Bytef*>(text.data());
    stream.avail_out = static_cast<uInt>(text.size());
    (void)inflate(&stream, Z_SYNC_FLUSH);
    text.resize(text.size() - stream.avail_out);
    inflateEnd(&stream);
    return text;
}

}  // namespace

const std::vector<FileFormat>& file_formats() {
    static const std::vector<FileFormat> table = {
        {".safetensors", "safetensors", ":tensor[:head]", "a safetensors file", "name it FILE.safetensors",
         // The length of the header, below 2^56, and its first brace.
         [](std::string_view head) { return head.size() > 9 && head[8] == '{' && head[7] == '\0'; }, open_safetensors},
        {".npz", ".npz", ":name", "a zip archive", "name it FILE.npz if NumPy wrote it, otherwise unpack it first",
         [](std::string_view head) { return head.starts_with(zip_beginning) && foreign_format(head) == nullptr; },
         open_npz},
        {".npy", ".npy", "", "a .npy array", "name it FILE.npy",
         [](std::string_view head) { return head.starts_with("\x93NUMPY"); }, open_npy},
        {".mat", "MATLAB", ":name", "a MATLAB or Octave file", "name it FILE.mat",
         [](std::string_view head) {
             // The byte order after the version, 1 or 2.
             const auto ends = [&](std::string_view mark) { return head.substr(124, 4) == mark; };
             const bool level5 =
                 head.size() >= 128 && (ends({"\0\1IM", 4}) || ends({"\0\2IM", 4}) || ends({"\1\0MI", 4}));
             return level5 || begins_octave_text(head) || read_mat4_head(head).has_value();
         },
         open_mat},
        {".mtx",
         "Matrix Market",
         "",
         "a Matrix Market file",
         "name it FILE.mtx",
         [](std::string_view head) { return lower_case(head.substr(0, 14)) == "%%matrixmarket"; },
         open_matrix_market,
         {".mtx.gz"}},
        {.suffix = ".csv",
         .name = "csv",
         .found = "a table of text",
         .other_suffixes = {".tsv", ".txt", ".dat", ".csv.gz", ".tsv.gz", ".txt.gz", ".dat.gz"}},
    };
    return table;
}

namespace {

/// A format other than the expected one: what the file is and what to do about it, both parts of an error message.
struct OtherFormat {
    std::string what;
    std::string advice;
};

OtherFormat lfs_pointer(std::string_view head) {
    OtherFormat found{"a git-lfs pointer to the real file", "fetch it with: git lfs pull"};
    const std::size_t at = head.find("\nsize ");
    if (at == std::string_view::npos) return found;
    std::string_view number = head.substr(at + 6);
    number = number.substr(0, number.find_first_not_of("0123456789"));
    if (const auto size = to_integer(number))
        found.what += fmt::format(", which has {}", bytes_text(static_cast<std::uint64_t>(*size)));
    return found;
}

bool reads_gzip(const FileFormat& format) {
    return std::any_of(format.other_suffixes.begin(), format.other_suffixes.end(),
                       [](const std::string& suffix) { return suffix.ends_with(".gz"); });
}

/// The format of the table that begins so, whatever the file's name; null where none does.
const FileFormat* own_format(std::string_view head) {
    const auto& formats = file_formats();
    for (auto format = formats.rbegin(); format != formats.rend(); ++format)
        if (format->begins != nullptr && format->begins(head)) return &*format;
    return nullptr;
}

/// Text that begins with a brace, or with a bracket and has commas (printed NumPy arrays have none); not the [,1] and
/// [1,] with which R prints a matrix.
bool begins_json(std::string_view head) {
    const std::size_t first = head.find_first_not_of(" \t\r\n");
    if (first == head.npos || head.find('\0') != head.npos) return false;
    if (head[first] == '{') return true;
    if (head[first] != '[' || head.find(',') == head.npos) return false;
    const std::string_view inside = head.substr(first + 1);
    if (!inside.empty() && std::isalpha(static_cast<unsigned char>(inside.front())) != 0) return false;  // [Data]
    const std::size_t next = inside.find_first_not_of("0123456789");
    return next == inside.npos || inside[next] != ',' || (next > 0 && !inside.substr(next).starts_with(",]"));
}

/// Whether the text begins with numbers in braces, as Mathematica writes lists.
bool begins_mathematica(std::string_view head) {
    const std::size_t first = head.find_first_not_of(" \t\r\n");
    if (first == head.npos || head[first] != '{') return false;
    const std::size_t next = head.find_first_not_of(" \t\r\n", first + 1);
    return next != head.npos && std::string_view("{-.0123456789").find(head[next]) != std::string_view::npos;
}

/// Whether the first line is a number and then numbers with their places, which begin at 1: "1 1:0.5 3:2".
bool begins_libsvm(std::string_view head) {
    std::size_t cells = 0;
    bool pairs = true;
    each_cell(head.substr(0, head.find_first_of("\r\n")), ' ', [&](const TableCell& cell) {
        const std::size_t colon = cell.text.find(':');
        const bool pair = colon != cell.text.npos && number_with_point(cell.text.substr(colon + 1)) &&
                          (is_digits(cell.text.substr(0, colon)) || cell.text.starts_with("qid:"));
        pairs = cells++ == 0 ? number_with_point(cell.text).has_value() : pair;
        return pairs && cells < 4;
    });
    return pairs && cells > 2;
}

/// Whether the first line is that of a table of Eurostat, whose first cell joins the keys of a row.
bool begins_eurostat(std::string_view head) {
    const std::string_view keys = head.substr(0, head.find_first_of("\t\r\n"));
    return keys.size() < head.size() && (keys.ends_with("\\TIME_PERIOD") || lower_case(keys).ends_with("\\time"));
}

/// Whether the text begins as R's dump() writes an object: NAME <- and its structure.
bool begins_r_dump(std::string_view head) {
    const std::string_view line = head.substr(0, head.find_first_of("\r\n"));
    return line.size() < head.size() && line.ends_with(" <-") && line.find_first_of(",;\t") == line.npos;
}

/// Objects are tables, as pandas writes them in five ways, and lists are arrays.
std::string json_advice(std::string_view head) {
    if (head.find('{') == head.npos)
        return "python3 -c \"import json,numpy; numpy.save('x.npy', numpy.array(json.load(open('FILE')), "
               "dtype=float))\"";
    const bool lines = head.find("}\n{") != head.npos || head.find("}\r\n{") != head.npos;
    // Rows by name, {"0":{"a":, are told from columns by name, {"a":{"0":, by the digits.
    const std::size_t inner = head.find(":{\"");
    const bool rows = head.starts_with("{\"") && inner < head.find(',') && inner > 3 &&
                      std::all_of(head.begin() + 2, head.begin() + static_cast<std::ptrdiff_t>(inner) - 1,
                                  [](unsigned char c) { return std::isdigit(c) != 0; }) &&
                      inner + 3 < head.size() && std::isdigit(static_cast<unsigned char>(head[inner + 3])) == 0;
    return fmt::format("python3 -c \"import pandas; pandas.read_json('FILE'{}).to_csv('x.csv', index=False)\"",
                       lines                               ? ", lines=True"
                       : head.starts_with("{\"columns\":") ? ", orient='split'"
                       : head.starts_with("{\"schema\":")  ? ", orient='table'"
                       : rows                              ? ", orient='index'"
                                                           : "");
}

bool is_control_byte(char c) { return c >= 0 && c < ' ' && c != '\t' && c != '\n' && c != '\r' && c != '\f'; }

/// The other format of a file that should have the format `expected`; nothing where it may have that one.
std::optional<OtherFormat> recognise(std::string_view head, const FileFormat& expected) {
    // The first bytes of a safetensors file are a length and may equal those of another format. So a file that begins
    // as expected is what it should be, and safetensors, which is first in the table, is the last guess.
    if (expected.begins != nullptr && expected.begins(head)) return std::nullopt;
    if (head.starts_with("version https://git-lfs")) return lfs_pointer(head);
    if (head.starts_with(gzip_beginning)) {
        const std::string inside = gunzipped(head);
        constexpr const char* unpack = "unpack it first: gzip -dc FILE > NEW";
        if (const ForeignFormat* foreign = foreign_format(inside))
            return OtherFormat{fmt::format("gzip-compressed, and inside {}", foreign->what),
                               foreign->packed ? foreign->advice : unpack};
        // Two layers of gzip are not unpacked, because a file could unpack to itself.
        if (reads_gzip(expected) && !inside.starts_with(gzip_beginning) && !recognise(inside, expected))
            return std::nullopt;
        return OtherFormat{"gzip-compressed", unpack};
    }
    // Pages of the web may begin with empty lines.
    const std::size_t begin = std::min(head.find_first_not_of(" \r\n"), head.size());
    if (const ForeignFormat* foreign = foreign_format(head.substr(begin).starts_with('<') ? head.substr(begin) : head))
        return OtherFormat{foreign->what, foreign->advice};
    if (const FileFormat* other = own_format(head)) return OtherFormat{other->found, other->advice};
    if (begins_mathematica(head))
        return OtherFormat{"a list of Mathematica",
                           "python3 -c \"import ast,numpy; numpy.save('x.npy', "
                           "numpy.array(ast.literal_eval(open('FILE').read().translate(str.maketrans('{}','[]'))"
                           ".replace('*^','e').strip()), dtype=float))\""};
    if (begins_libsvm(head))
        return OtherFormat{"rows of libsvm",
                           "python3 -c \"import numpy,sklearn.datasets as d; numpy.save('x.npy', "
                           "d.load_svmlight_file('FILE')[0].toarray())\""};
    if (begins_eurostat(head))
        return OtherFormat{
            "a table of Eurostat, with flags behind its numbers",
            "python3 -c \"import pandas; t=pandas.read_csv('FILE', sep='\\t', index_col=0, dtype=str); "
            "t.apply(lambda c: c.str.extract('(-?[0-9.]+)', expand=False).astype(float)).to_csv('x.csv')\""};
    if (begins_r_dump(head))
        return OtherFormat{"an R object (dump)",
                           "Rscript -e \"source('FILE', e <- new.env()); write.csv(e[['NAME']], 'x.csv', "
                           "row.names=FALSE)\""};
    if (begins_json(head)) return OtherFormat{"JSON", json_advice(head)};
    if (head.size() >= 8 && std::all_of(head.begin(), head.end(), [](char c) { return c == '\0'; }))
        return OtherFormat{"zero bytes from its beginning", "likely an incomplete download; fetch it again"};
    const bool lines = head.find('\n') != head.npos && std::none_of(head.begin(), head.end(), is_control_byte);
    if (expected.open != nullptr && lines && head.find_first_of("0123456789") != head.npos)
        return OtherFormat{"text", "where it is a table of numbers, name it FILE.txt"};
    return std::nullopt;
}

/// Whether the first line of what should be a table is none of text. UTF-16 and UTF-32 are, with a message of their
/// own.
bool begins_binary(std::string_view head) {
    const std::string text = head.starts_with(gzip_beginning) ? gunzipped(head) : std::string(head);
    if (!wide_encoding(text).empty()) return false;
    return std::any_of(text.begin(), std::find(text.begin(), text.end(), '\n'), is_control_byte);
}

/// The first bytes of a file.
std::string head_of(const ByteFile& file) {
    constexpr std::uint64_t most = 512;
    std::string head(std::min(most, file.size()), '\0');
    file.read(0, std::as_writable_bytes(std::span(head)));
    return head;
}

std::vector<std::string> suffixes_of(bool dumps_only) {
    std::vector<std::string> all;
    for (const auto& format : file_formats())
        if (!dumps_only || format.open != nullptr) {
            all.push_back(format.suffix);
            all.insert(all.end(), format.other_suffixes.begin(), format.other_suffixes.end());
        }
    return all;
}

}  // namespace

bool begins_octave_text(std::string_view head) {
    const bool begins = head.starts_with("# Created by Octave") || head.starts_with("# name:");
    const std::size_t type = head.find("\n# type:");
    return begins && type != head.npos && head.substr(0, type).find("# name:") != head.npos;
}

bool has_suffix(const std::string& path, std::string_view suffix) {
    return path.size() >= suffix.size() && std::equal(suffix.rbegin(), suffix.rend(), path.rbegin(),
                                                      [](char a, unsigned char b) { return a == std::tolower(b); });
}

const FileFormat* format_of(const std::string& path) {
    for (const auto& format : file_formats()) {
        if (has_suffix(path, format.suffix)) return &format;
        for (const auto& suffix : format.other_suffixes)
            if (has_suffix(path, suffix)) return &format;
    }
    return nullptr;
}

const std::vector<std::string>& dump_suffixes() {
    static const auto suffixes = suffixes_of(true);
    return suffixes;
}

const std::vector<std::string>& matrix_suffixes() {
    static const auto suffixes = suffixes_of(false);
    return suffixes;
}

std::string matrix_forms() {
    std::vector<std::string> forms;
    for (const auto& format : file_formats()) forms.push_back(format.suffix + format.selector);
    return fmt::format("FILE({})", fmt::join(forms, "|"));
}

void reject_other_format(const ByteFile& file, std::string_view suffix) {
    const FileFormat* expected = format_of(std::string(suffix));
    if (expected == nullptr) throw precondition_error("{} is the suffix of no format", suffix);
    if (file.size() == 0)
        throw input_error("{}: empty (0 bytes where a {} file was expected): write or fetch it again", file.path(),
                          expected->name);
    const std::string head = head_of(file);
    auto found = recognise(head, *expected);
    if (found)
        if (const char* advice = foreign_advice(file, head)) found->advice = advice;
    if (found)
        throw input_error("{}: not a {} file (its {} are {}): {}", file.path(), expected->name, bytes_text(file.size()),
                          found->what, found->advice);
    if (expected->begins == nullptr && begins_binary(head))
        throw input_error(
            "{}: not a {} file (its {} are binary data, not text): save the numbers with their type and shape, for "
            "example: {}",
            file.path(), expected->name, bytes_text(file.size()), from_raw_numbers);
}

const FileFormat* format_of_content(const ByteFile& file) {
    const std::string head = head_of(file);
    if (const FileFormat* format = own_format(head)) return format;
    const FileFormat& table = *format_of(".csv");
    const std::string text = head.starts_with(gzip_beginning) ? gunzipped(head) : head;
    if (std::any_of(text.begin(), text.end(), is_control_byte) && !recognise(head, table)) return nullptr;
    reject_other_format(file, table.suffix);
    return &table;
}

}  // namespace spiked::sim
