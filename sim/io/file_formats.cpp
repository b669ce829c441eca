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
#include "sim/io/table_cells.hpp"
#include "sim/io/tensor_container.hpp"
#include "sim/io/text_lines.hpp"

namespace spiked::sim {

namespace {

constexpr std::string_view zip_beginning = "PK\x03\x04";
constexpr std::string_view gzip_beginning = "\x1f\x8b";
constexpr std::string_view hdf5_beginning = "\x89HDF";
constexpr std::string_view xz_beginning{"\xfd\x37zXZ\0", 6};

/// Formats that are not read.
struct ForeignFormat {
    std::size_t at;  ///< offset of the bytes that tell it
    std::string_view bytes;
    const char* what;
    const char* advice;
};

constexpr const char* fetch_itself = "the download saved an error or login page; fetch the file itself";
constexpr const char* from_pickle =
    "pickles can run programs and are never opened; save it as safetensors or, where you made it yourself: python3 -c "
    "\"import pickle,numpy; numpy.save('x.npy', numpy.ma.filled(numpy.ma.asarray(pickle.load(open('FILE','rb')), "
    "dtype=float), numpy.nan))\"";
constexpr const char* from_torch =
    "it holds a pickle, which is never opened; where it holds tensors by name: python3 -c \"import torch; from "
    "safetensors.torch import save_file; save_file(torch.load('FILE', weights_only=True), 'x.safetensors')\"; where it "
    "holds the "
    "cache of a model that you saved yourself: load it, then write_dump(path, keys_and_values(cache)) of "
    "tools/export-kv";
constexpr const char* from_excel =
    "python3 -c \"import pandas; pandas.read_excel('FILE').to_csv('x.csv', index=False)\"";
constexpr const char* from_feather =
    "python3 -c \"import pandas; pandas.read_feather('FILE').to_csv('x.csv', index=False)\"";
constexpr const char* from_stata =
    "python3 -c \"import pandas; pandas.read_stata('FILE').to_csv('x.csv', index=False)\"";
constexpr const char* from_spss = "python3 -c \"import pandas; pandas.read_spss('FILE').to_csv('x.csv', index=False)\"";
constexpr const char* from_sas = "python3 -c \"import pandas; pandas.read_sas('FILE').to_csv('x.csv', index=False)\"";
constexpr const char* from_rds = "Rscript -e \"write.csv(readRDS('FILE'), 'x.csv', row.names=FALSE)\"";
constexpr const char* from_rdata =
    "Rscript -e \"e <- new.env(); load('FILE', e); write.csv(e[['NAME']], 'x.csv', row.names=FALSE)\"";
constexpr const char* from_nifti =
    "python3 -c \"import nibabel,numpy; a=nibabel.load('FILE').get_fdata(); numpy.save('x.npy', a.reshape(-1, "
    "a.shape[-1]))\" (voxels x volumes)";
constexpr const char* from_netcdf =
    "python3 -c \"import scipy.io,numpy; f=scipy.io.netcdf_file('FILE', mmap=False); numpy.save('x.npy', "
    "f.variables['NAME'][:].astype(float))\"";
constexpr const char* from_image =
    "python3 -c \"import PIL.Image,numpy; numpy.save('x.npy', numpy.asarray(PIL.Image.open('FILE').convert('F')))\"";

constexpr const char* from_llama =
    "its form is another in each version and is not read; run the model in transformers and write its cache with "
    "tools/export-kv";

constexpr const char* from_grid =
    "python3 -c \"import numpy; l=[r.split() for r in open('FILE')]; h={r[0].lower():float(r[1]) for r in l if "
    "r[0][0].isalpha()}; a=numpy.array([r for r in l if not r[0][0].isalpha()],dtype=float); "
    "a[a==h.get('nodata_value',-9999)]=numpy.nan; numpy.save('x.npy',a)\"";
constexpr const char* from_gct_labels =
    "python3 -c \"from cmapPy.pandasGEXpress.parse import parse; parse('FILE').data_df.to_csv('x.csv')\"";
constexpr const char* from_gct = "tail -n +3 FILE | cut -f 1,3- > x.tsv";

constexpr ForeignFormat foreign_formats[] = {
    {0, "<!DOCTYPE", "a web page", fetch_itself},
    {0, "<!doctype", "a web page", fetch_itself},
    {0, "<html", "a web page", fetch_itself},
    {0, "<?xml", "an XML file", "save the table in it as csv"},
    {0, "<svg", "a picture", "name the file of its numbers"},
    {0, "%PDF", "a PDF document", "save the table in it as csv"},
    {0, "GGUF", "a GGUF model",
     "convert one of its tensors: python3 -c \"import gguf,numpy; t={t.name: t for t in "
     "gguf.GGUFReader('FILE').tensors}['NAME']; numpy.save('x.npy', gguf.quants.dequantize(t.data, t.tensor_type))\""},
    {0, hdf5_beginning, "an HDF5 file",
     "its names: python3 -c \"import h5py; h5py.File('FILE').visit(print)\"; then one of its arrays: python3 -c "
     "\"import h5py,numpy; numpy.save('x.npy', h5py.File('FILE')['NAME'][()])\""},
    {0, "PAR1", "a Parquet table",
     "python3 -c \"import pandas; pandas.read_parquet('FILE').to_csv('x.csv', index=False)\""},
    {0, "ARROW1", "an Arrow (Feather) table", from_feather},
    {0, "FEA1", "a Feather table", from_feather},
    {0, "\x80\x02\x8a\nl\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", "an old PyTorch file", from_torch},
    {0, "\x80\x02", "a Python pickle", from_pickle},
    {0, "\x80\x03", "a Python pickle", from_pickle},
    {0, "\x80\x04", "a Python pickle", from_pickle},
    {0, "\x80\x05", "a Python pickle", from_pickle},
    {0, {"X\n\0\0\0", 5}, "an R object (RDS)", from_rds},
    // As text: the lines behind "A" are the version of the format, that of R and the oldest one that reads it.
    {10, "\n131840\n", "an R object (RDS, as text)", from_rds},
    {10, "\n197888\n", "an R object (RDS, as text)", from_rds},
    {0, "structure(", "an R object (dput)", "Rscript -e \"write.csv(dget('FILE'), 'x.csv', row.names=FALSE)\""},
    {0, "RDA2\n", "an R workspace (RData, as text)", from_rdata},
    {0, "RDA3\n", "an R workspace (RData, as text)", from_rdata},
    {0, "RDX2\n", "an R workspace (RData)", from_rdata},
    {0, "RDX3\n", "an R workspace (RData)", from_rdata},
    {344, {"n+1\0", 4}, "a NIfTI image", from_nifti},
    {4, {"n+2\0", 4}, "a NIfTI image", from_nifti},
    {0, "<stata_dta>", "a Stata table", from_stata},
    {0, {"\x72\x01\x01\0", 4}, "a Stata table", from_stata},
    {0, {"\x72\x02\x01\0", 4}, "a Stata table", from_stata},
    {0, {"\x73\x01\x01\0", 4}, "a Stata table", from_stata},
    {0, {"\x73\x02\x01\0", 4}, "a Stata table", from_stata},
    {0, "$FL2@(#)", "an SPSS table", from_spss},
    {0, "$FL3@(#)", "an SPSS table", from_spss},
    {0, "ASCII SPSS PORT FILE", "an SPSS table (portable)",
     "python3 -c \"import pyreadstat; pyreadstat.read_por('FILE')[0].to_csv('x.csv', index=False)\""},
    {12, "\xc2\xea\x81\x60\xb3\x14\x11\xcf", "a SAS table", from_sas},
    {0, "HEADER RECORD*******LIBRARY HEADER", "a SAS table", from_sas},
    {0, "SIMPLE  =", "a FITS image",
     "python3 -c \"import astropy.io.fits,numpy; numpy.save('x.npy', "
     "astropy.io.fits.getdata('FILE').astype(float))\""},
    {0, {"CDF\1", 4}, "a NetCDF file", from_netcdf},
    {0, {"CDF\2", 4}, "a NetCDF file", from_netcdf},
    {0, {"II*\0", 4}, "a TIFF image", from_image},
    {0, {"MM\0*", 4}, "a TIFF image", from_image},
    {0, "\x89PNG\r\n", "a PNG image", from_image},
    {0, "\xff\xd8\xff", "a JPEG image", from_image},
    {0, "\xd0\xcf\x11\xe0\xa1\xb1", "an old Excel workbook", from_excel},
    {0,
     {"SQLite format 3\0", 16},
     "a database of SQLite",
     "a store of this program is shown by spiked show; a table of another is exported with: sqlite3 -csv FILE \"SELECT "
     "* FROM NAME\""},
    // The magic numbers of a session and of a sequence, in either order of bytes.
    {0, "nsgg", "a state of llama.cpp", from_llama},
    {0, "ggsn", "a state of llama.cpp", from_llama},
    {0, "qsgg", "a state of llama.cpp", from_llama},
    {0, "ggsq", "a state of llama.cpp", from_llama},
    {0, "SPIKEDKV", "a dump that kv encode compressed", "decode it first: spiked kv decode FILE -o x.safetensors"},
    {0, "\x28\xb5\x2f\xfd", "zstd-compressed", "unpack it first: zstd -dc FILE > NEW"},
    {0, "BZh", "bzip2-compressed", "unpack it first: bzip2 -dc FILE > NEW"},
    {0, xz_beginning, "xz-compressed", "unpack it first: xz -dc FILE > NEW"},
    {0, "##TITLE", "a JCAMP-DX spectrum",
     "python3 -c \"import jcamp,numpy; s=jcamp.jcamp_readfile('FILE'); numpy.savetxt('x.csv', numpy.c_[s['x'], "
     "s['y']], "
     "delimiter=',')\""},
    {0, "ncols ", "an ESRI grid", from_grid},
    {0, "NCOLS ", "an ESRI grid", from_grid},
    {0, "P2\n", "a PGM image", from_image},
    {0, "P5\n", "a PGM image", from_image},
    {0, "array(", "a printed NumPy array", "save the array with numpy.save where it was printed"},
    {0, "tensor(", "a printed tensor", "save it where it was printed, with numpy.save or as safetensors"},
    {0, "#1.2\n", "a GCT table", from_gct},
    {0, "#1.2\r", "a GCT table", from_gct},
    {0, "#1.3\n", "a GCT table with labels of rows and columns", from_gct_labels},
    {0, "#1.3\r", "a GCT table with labels of rows and columns", from_gct_labels},
    {257, "ustar", "a tar archive", "unpack it first: tar -xf FILE"},
};

/// The name of the first file in a zip archive tells who wrote it.
constexpr ForeignFormat foreign_archives[] = {
    {30, "[Content_Types].xml", "an Excel workbook", from_excel},
    {30, "docProps/", "an Excel workbook", from_excel},
    {30, "_rels/", "an Excel workbook", from_excel},
    {30, "xl/", "an Excel workbook", from_excel},
    {30, "mimetypeapplication/vnd.oasis.opendocument", "an OpenDocument table", from_excel},
};

/// Programs that write HDF5, by the name of an attribute.
constexpr ForeignFormat hdf5_programs[] = {
    {0, "OCTAVE_NEW_FORMAT", "",
     "python3 -c \"import h5py,numpy; numpy.save('x.npy', h5py.File('FILE')['NAME/value'][()].T)\""},
    {0, "pandas_type", "", "python3 -c \"import pandas; pandas.read_hdf('FILE').to_csv('x.csv', index=False)\""},
    {0, "encoding-type", "",
     "python3 -c \"import anndata,numpy; x=anndata.read_h5ad('FILE').X; numpy.save('x.npy', x.toarray() if hasattr(x, "
     "'toarray') else x)\""},
};

/// The name of the first file in a zip archive.
std::string_view first_in_archive(std::string_view head) {
    constexpr std::size_t length_at = 26, name_at = 30;
    if (head.size() < name_at) return {};
    const auto byte = [&](std::size_t at) { return static_cast<std::size_t>(static_cast<unsigned char>(head[at])); };
    return head.substr(name_at, byte(length_at) + 256 * byte(length_at + 1));
}

/// Null where the bytes begin no format of the tables above.
const ForeignFormat* foreign_format(std::string_view head) {
    const auto tells = [&](const ForeignFormat& format) {
        return head.size() > format.at && head.substr(format.at).starts_with(format.bytes);
    };
    if (head.starts_with(zip_beginning)) {
        for (const auto& archive : foreign_archives)
            if (tells(archive)) return &archive;
        static constexpr ForeignFormat table{0, "", "a zip archive of a table", "unzip -p FILE > x.csv"};
        const std::string_view inside = first_in_archive(head);
        if (inside.ends_with(".csv") || inside.ends_with(".tsv")) return &table;
        // PyTorch's archives begin with FOLDER/data.pkl.
        static constexpr ForeignFormat torch{0, "", "a PyTorch file", from_torch};
        constexpr std::size_t longest_name = 256;
        return head.substr(0, 30 + longest_name).find("/data.pkl") != head.npos ? &torch : nullptr;
    }
    for (const auto& format : foreign_formats)
        if (tells(format)) return &format;
    return nullptr;
}

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
         [](std::string_view head) { return head.starts_with("%%MatrixMarket"); },
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

/// Numbers in braces.
bool begins_mathematica(std::string_view head) {
    const std::size_t first = head.find_first_not_of(" \t\r\n");
    if (first == head.npos || head[first] != '{') return false;
    const std::size_t next = head.find_first_not_of(" \t\r\n", first + 1);
    return next != head.npos && std::string_view("{-.0123456789").find(head[next]) != std::string_view::npos;
}

/// A number, then numbers with their places, which begin at 1: "1 1:0.5 3:2".
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

/// The line that converts an HDF5 file whose attributes name the program that wrote it; null where none does.
const char* hdf5_advice(const ByteFile& file) {
    constexpr std::uint64_t looked_at = 1 << 18;
    const std::uint64_t part = std::min(looked_at, file.size());
    for (const std::uint64_t offset : {std::uint64_t{0}, file.size() - part}) {
        std::string bytes(part, '\0');
        file.read(offset, std::as_writable_bytes(std::span(bytes)));
        for (const auto& program : hdf5_programs)
            if (bytes.find(program.bytes) != bytes.npos) return program.advice;
    }
    return nullptr;
}

/// What a file is that should have the format `expected`; nothing where it may have it.
std::optional<OtherFormat> recognise(std::string_view head, const FileFormat& expected) {
    // The first bytes of a safetensors file are a length and may equal those of another format. So a file that begins
    // as expected is what it should be, and safetensors, which is first in the table, is the last guess.
    if (expected.begins != nullptr && expected.begins(head)) return std::nullopt;
    if (head.starts_with("version https://git-lfs")) return lfs_pointer(head);
    if (head.starts_with(gzip_beginning)) {
        const std::string inside = gunzipped(head);
        if (const ForeignFormat* foreign = foreign_format(inside))
            return OtherFormat{fmt::format("gzip-compressed, and inside {}", foreign->what), foreign->advice};
        // What lies in two layers of gzip could unpack to itself.
        if (reads_gzip(expected) && !inside.starts_with(gzip_beginning) && !recognise(inside, expected))
            return std::nullopt;
        return OtherFormat{"gzip-compressed", "unpack it first: gzip -dc FILE > NEW"};
    }
    if (const ForeignFormat* foreign = foreign_format(head)) return OtherFormat{foreign->what, foreign->advice};
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
    if (begins_json(head)) return OtherFormat{"JSON", json_advice(head)};
    if (head.size() >= 8 && std::all_of(head.begin(), head.end(), [](char c) { return c == '\0'; }))
        return OtherFormat{"zero bytes from its beginning", "likely an incomplete download; fetch it again"};
    return std::nullopt;
}

bool is_control_byte(char c) { return c >= 0 && c < ' ' && c != '\t' && c != '\n' && c != '\r' && c != '\f'; }

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
    // R packs its objects in these ways too, and unpacks them itself.
    if (found && (head.starts_with("BZh") || head.starts_with(xz_beginning))) {
        const bool is_object = has_suffix(file.path(), ".rds");
        if (is_object || has_suffix(file.path(), ".rdata") || has_suffix(file.path(), ".rda"))
            found->advice = is_object ? from_rds : from_rdata;
    }
    if (found && head.starts_with(hdf5_beginning))
        if (const char* advice = hdf5_advice(file)) found->advice = advice;
    if (found)
        throw input_error("{}: not a {} file (its {} are {}): {}", file.path(), expected->name, bytes_text(file.size()),
                          found->what, found->advice);
    if (expected->begins == nullptr && begins_binary(head))
        throw input_error(
            "{}: not a {} file (its {} are binary data, not text): save the numbers with their type and shape, for "
            "example: python3 -c \"import numpy; numpy.save('x.npy', numpy.fromfile('FILE', dtype='f8').reshape(ROWS, "
            "-1))\"",
            file.path(), expected->name, bytes_text(file.size()));
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
