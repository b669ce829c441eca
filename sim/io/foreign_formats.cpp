#include "sim/io/foreign_formats.hpp"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>

#include "sim/io/file_formats.hpp"

namespace spiked::sim {
namespace {

constexpr std::string_view hdf5_beginning = "\x89HDF";
constexpr std::string_view xz_beginning{"\xfd\x37zXZ\0", 6};

constexpr const char* fetch_itself = "the download saved an error or login page; fetch the file itself";
constexpr const char* from_pickle =
    "pickles can run programs and are never opened; save it as safetensors or, where you made it yourself (a sparse "
    "matrix: with .toarray() behind 'latin1')): python3 -c \"import pickle,numpy; numpy.save('x.npy', "
    "numpy.ma.filled(numpy.ma.asarray(pickle.load(open('FILE','rb'), encoding='latin1'), dtype=float), numpy.nan))\"";
constexpr const char* from_torch =
    "it holds a pickle, which is never opened; its tensors, with the names or numbers of what holds them: python3 -c "
    "\"import torch; from safetensors.torch import save_file; from torch.utils._pytree import tree_flatten_with_path "
    "as f; save_file({'.'.join(str(getattr(k,'key',getattr(k,'idx',''))) for k in p) or 'x': t.contiguous().clone() "
    "for p,t in f(torch.load('FILE', map_location='cpu', weights_only=True))[0] if torch.is_tensor(t)}, "
    "'x.safetensors')\"; where it holds the cache of a model that you saved yourself: load it, then write_dump(path, "
    "keys_and_values(cache)) of tools/export-kv";
constexpr const char* from_excel =
    "python3 -c \"import pandas; pandas.read_excel('FILE').to_csv('x.csv', index=False)\"";
constexpr const char* from_feather =
    "python3 -c \"import pandas; pandas.read_feather('FILE').to_csv('x.csv', index=False)\"";
constexpr const char* from_stata =
    "python3 -c \"import pandas; pandas.read_stata('FILE').to_csv('x.csv', index=False)\"";
constexpr const char* from_spss = "python3 -c \"import pandas; pandas.read_spss('FILE').to_csv('x.csv', index=False)\"";
constexpr const char* from_portable =
    "python3 -c \"import pyreadstat; pyreadstat.read_por('FILE')[0].to_csv('x.csv', index=False)\"";
// pandas reads files of ReadStat (haven in R) wrongly: each column has the numbers of the last one.
constexpr const char* from_sas =
    "python3 -c \"import pyreadstat; pyreadstat.read_sas7bdat('FILE')[0].to_csv('x.csv', index=False)\"";
constexpr const char* from_sas_transport =
    "python3 -c \"import pyreadstat; pyreadstat.read_xport('FILE')[0].to_csv('x.csv', index=False)\"";
// Of the classes of R, sparse matrices (S4) cannot be written as they are.
constexpr const char* from_rds =
    "Rscript -e \"x <- readRDS('FILE'); write.csv(if (isS4(x)) as.matrix(x) else x, 'x.csv', row.names=FALSE)\"";
constexpr const char* from_rdata =
    "Rscript -e \"load('FILE', e <- new.env()); x <- e[['NAME']]; write.csv(if (isS4(x)) as.matrix(x) else x, 'x.csv', "
    "row.names=FALSE)\"";
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
// Line 2 counts rows, columns, labels of each row and labels of each column.
constexpr const char* from_gct_labels =
    "python3 -c \"import pandas; n=[int(i) for i in open('FILE').readlines()[1].split()]; t=pandas.read_csv('FILE', "
    "sep='\\t', skiprows=[0,1,*range(3,3+n[3])], index_col=0); t.iloc[:,n[2]:].to_csv('x.csv')\"";
constexpr const char* from_gct = "tail -n +3 FILE | cut -f 1,3- > x.tsv";

constexpr const char* from_feature_counts = "tail -n +2 FILE | cut -f 1,7- > x.tsv";
// The first column is that of the times, or empty.
constexpr const char* from_labview = "sed '1,/^X_Value/d' FILE | cut -f 2- > x.tsv";
constexpr const char* from_sql =
    "export the table as csv from the database that holds it; SQLite: sqlite3 x.db < FILE; sqlite3 -csv x.db \"SELECT "
    "* FROM NAME\" > x.csv";

constexpr const char* from_plink_table = "cut -d' ' -f7- FILE > x.txt";
constexpr const char* from_plink =
    "python3 -c \"import bed_reader,numpy; numpy.save('x.npy', bed_reader.open_bed('FILE').read())\" (samples x "
    "variants)";
constexpr const char* from_vcf =
    "python3 -c \"import pandas; n=sum(l.startswith('##') for l in open('FILE')); t=pandas.read_csv('FILE', sep='\\t', "
    "skiprows=n, dtype=str).iloc[:,9:]; t.apply(lambda c: "
    "c.str.split(':').str[0].str.count('[1-9]').where(~c.str.startswith('.'))).to_csv('x.csv', index=False)\" (other "
    "alleles than the reference, variants x samples)";
constexpr const char* from_edf =
    "python3 -c \"import numpy,pyedflib; numpy.save('x.npy', "
    "numpy.array(pyedflib.highlevel.read_edf('FILE')[0]).T)\" (samples x channels)";
constexpr const char* from_nrrd =
    "python3 -c \"import nrrd,numpy; a=nrrd.read('FILE')[0].astype(float); numpy.save('x.npy', a.reshape(-1, "
    "a.shape[-1]))\"";
constexpr const char* from_wav =
    "python3 -c \"import numpy,scipy.io.wavfile; numpy.save('x.npy', "
    "scipy.io.wavfile.read('FILE')[1].astype(float))\" (samples x channels)";
constexpr const char* from_dicom =
    "python3 -c \"import numpy,pydicom; numpy.save('x.npy', pydicom.dcmread('FILE').pixel_array.astype(float))\"";

constexpr ForeignFormat foreign_formats[] = {
    {0, "<!DOCTYPE", "a web page", fetch_itself},
    {0, "<!doctype", "a web page", fetch_itself},
    {0, "<html", "a web page", fetch_itself},
    {0, "<table", "a table of HTML",
     "python3 -c \"import pandas; pandas.read_html('FILE')[0].to_csv('x.csv', index=False)\""},
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
    // As text, which is how Python 2 writes them: an object of a class, a list, a dictionary.
    {0, "cnumpy", "a Python pickle", from_pickle},
    {0, "cpandas", "a Python pickle", from_pickle},
    {0, "ccopy_reg\n", "a Python pickle", from_pickle},
    {0, "(lp0\n", "a Python pickle", from_pickle},
    {0, "(lp1\n", "a Python pickle", from_pickle},
    {0, "(dp0\n", "a Python pickle", from_pickle},
    {0, "(dp1\n", "a Python pickle", from_pickle},
    {0, {"X\n\0\0\0", 5}, "an R object (RDS)", from_rds, true},
    // As text: the lines behind "A" are the version of the format, that of R and the oldest one that reads it.
    {10, "\n131840\n", "an R object (RDS, as text)", from_rds, true},
    {10, "\n197888\n", "an R object (RDS, as text)", from_rds, true},
    {0, "structure(", "an R object (dput)", "Rscript -e \"write.csv(dget('FILE'), 'x.csv', row.names=FALSE)\""},
    {0, "RDA2\n", "an R workspace (RData, as text)", from_rdata, true},
    {0, "RDA3\n", "an R workspace (RData, as text)", from_rdata, true},
    {0, "RDX2\n", "an R workspace (RData)", from_rdata, true},
    {0, "RDX3\n", "an R workspace (RData)", from_rdata, true},
    {344, {"n+1\0", 4}, "a NIfTI image", from_nifti, true},
    {4, {"n+2\0", 4}, "a NIfTI image", from_nifti, true},
    {0, "<stata_dta>", "a Stata table", from_stata},
    {0, {"\x72\x01\x01\0", 4}, "a Stata table", from_stata},
    {0, {"\x72\x02\x01\0", 4}, "a Stata table", from_stata},
    {0, {"\x73\x01\x01\0", 4}, "a Stata table", from_stata},
    {0, {"\x73\x02\x01\0", 4}, "a Stata table", from_stata},
    {0, "$FL2@(#)", "an SPSS table", from_spss},
    {0, "$FL3@(#)", "an SPSS table", from_spss},
    {0, "ASCII SPSS PORT FILE", "an SPSS table (portable)", from_portable},
    {40, "ASCII SPSS PORT FILE", "an SPSS table (portable)", from_portable},
    {12, "\xc2\xea\x81\x60\xb3\x14\x11\xcf", "a SAS table", from_sas},
    {0, "HEADER RECORD*******LIBRARY HEADER", "a SAS table (transport file)", from_sas_transport},
    {0, "HEADER RECORD*******LIBV8", "a SAS table (transport file of version 8)", from_sas_transport},
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
     "a store of this program is shown by spiked show; a table of another is exported with: sqlite3 -csv FILE "
     "\"SELECT * FROM NAME\" > x.csv"},
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
     "python3 -c \"import jcamp,numpy; s=jcamp.readfile('FILE'); numpy.savetxt('x.csv', numpy.c_[s['x'], s['y']], "
     "delimiter=',')\""},
    {0, "ncols ", "an ESRI grid", from_grid},
    {0, "NCOLS ", "an ESRI grid", from_grid},
    {0, "P2\n", "a PGM image", from_image},
    {0, "P5\n", "a PGM image", from_image},
    {0, "FID IID PAT MAT SEX PHENOTYPE", "a PLINK table with six columns in front of the alleles", from_plink_table},
    {0, "FID\tIID\tPAT\tMAT\tSEX\tPHENOTYPE", "a PLINK table with six columns in front of the alleles",
     "cut -f7- FILE > x.tsv"},
    {0, "\x6c\x1b\x01", "a PLINK table of genotypes", from_plink},
    {0, "##fileformat=VCF", "a VCF table of genotypes", from_vcf},
    {192, "EDF+", "a recording in EDF", from_edf},
    {0, "\xff\x42IOSEMI", "a recording in BDF", from_edf},
    {0, "NRRD000", "an NRRD image", from_nrrd},
    {0, "mrtrix image", "an image of MRtrix", "convert it: mrconvert FILE x.nii, and that as its message says"},
    {8, "WAVEfmt", "a WAV recording", from_wav},
    {128, "DICM", "a DICOM image", from_dicom},
    {0, "\x04\x22\x4d\x18", "lz4-compressed", "unpack it first: lz4 -dc FILE > NEW"},
    {0, "7z\xbc\xaf\x27\x1c", "a 7z archive", "unpack it first: 7z x FILE"},
    {0, "array(", "a printed NumPy array", "save the array with numpy.save where it was printed"},
    {0, "tensor(", "a printed tensor", "save it where it was printed, with numpy.save or as safetensors"},
    {0, "# Program:featureCounts", "counts of featureCounts, with five columns of places and lengths",
     from_feature_counts},
    {0, "LabVIEW Measurement", "a measurement of LabVIEW", from_labview},
    {0, "CREATE TABLE", "commands of SQL", from_sql},
    {0, "INSERT INTO", "commands of SQL", from_sql},
    {0, "DROP TABLE", "commands of SQL", from_sql},
    {0, "PRAGMA foreign_keys", "commands of SQL", from_sql},
    {0, "BEGIN TRANSACTION", "commands of SQL", from_sql},
    {0, "-- MySQL dump", "commands of SQL", from_sql},
    {0, "-- MariaDB dump", "commands of SQL", from_sql},
    {0, "--\n-- PostgreSQL", "commands of SQL", from_sql},
    {0, "#1.2\n", "a GCT table", from_gct},
    {0, "#1.2\r", "a GCT table", from_gct},
    {0, "#1.3\n", "a GCT table with labels of rows and columns", from_gct_labels},
    {0, "#1.3\r", "a GCT table with labels of rows and columns", from_gct_labels},
    {257, "ustar", "a tar archive", "unpack it first: tar -xf FILE", true},
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

}  // namespace

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

namespace {

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

}  // namespace

const char* foreign_advice(const ByteFile& file, std::string_view head) {
    if (head.starts_with(hdf5_beginning)) return hdf5_advice(file);
    // R packs its objects in these ways too, and unpacks them itself.
    if (!head.starts_with("BZh") && !head.starts_with(xz_beginning)) return nullptr;
    if (has_suffix(file.path(), ".rds")) return from_rds;
    return has_suffix(file.path(), ".rdata") || has_suffix(file.path(), ".rda") ? from_rdata : nullptr;
}

}  // namespace spiked::sim
