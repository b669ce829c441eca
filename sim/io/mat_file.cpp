#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "core/files/byte_file.hpp"
#include "core/runtime/error.hpp"
#include "core/text/printable.hpp"
#include "sim/hdf5/hdf5_file.hpp"
#include "sim/hdf5/inflate.hpp"
#include "sim/io/file_formats.hpp"
#include "sim/io/loaded_tensors.hpp"
#include "sim/io/npz.hpp"

// MATLAB's MAT-files of level 5 (save -v6 and -v7), after "MAT-File Format" of The MathWorks: a header of 128 bytes,
// then one element for each variable, deflated by -v7. Files of version 7.3 are HDF5 behind a block of 512 bytes.

namespace spiked::sim {
namespace {

constexpr std::size_t mat_header_bytes = 128;
constexpr std::size_t tag_bytes = 8;
constexpr std::uint32_t matrix_element = 14;
constexpr std::uint32_t compressed_element = 15;
constexpr std::uint32_t sparse_class = 5;
constexpr std::uint32_t opaque_class = 17;
/// Enough for the flags, 32 dimensions and the name of a variable.
constexpr std::size_t most_head_bytes = 4096;
/// The limit of a variable, or of the file where its parts are packed by themselves.
constexpr ExpansionLimit mat_limit{.always = 32 << 20, .times = 16};

struct MatClass {
    const char* name;
    std::optional<DType> dtype;  ///< empty: not numbers
};
/// The classes of MATLAB, at the index that is the number of the class in the file.
constexpr std::array<MatClass, 18> mat_classes{{{"unknown", {}},
                                                {"cell", {}},
                                                {"struct", {}},
                                                {"object", {}},
                                                {"char", {}},
                                                {"sparse", DType::f64},
                                                {"double", DType::f64},
                                                {"single", DType::f32},
                                                {"int8", DType::i8},
                                                {"uint8", DType::u8},
                                                {"int16", DType::i16},
                                                {"uint16", DType::u16},
                                                {"int32", DType::i32},
                                                {"uint32", DType::u32},
                                                {"int64", DType::i64},
                                                {"uint64", DType::u64},
                                                {"function", {}},
                                                {"opaque", {}}}};

/// The types in which the numbers of an element are stored, which may be narrower than the class of their variable.
constexpr std::pair<std::uint32_t, DType> number_types[] = {
    {1, DType::i8},  {2, DType::u8},  {3, DType::i16}, {4, DType::u16},  {5, DType::i32},
    {6, DType::u32}, {7, DType::f32}, {9, DType::f64}, {12, DType::i64}, {13, DType::u64}};

std::optional<DType> number_type(std::uint32_t element) {
    for (const auto& [number, type] : number_types)
        if (number == element) return type;
    return std::nullopt;
}

/// The unpacked size of the variables that were read, each counted once: many may be packed strongly, and in HDF5 many
/// names may stand for the same bytes.
class UnpackedVariables {
public:
    void add(std::uint64_t variable, std::uint64_t bytes, std::uint64_t file_bytes, const std::string& where) {
        if (counted_.insert(variable).second) total_ += bytes;
        reject_expansion(total_, file_bytes, mat_limit, where);
    }

private:
    std::set<std::uint64_t> counted_;
    std::uint64_t total_ = 0;
};

std::uint32_t word_at(std::span<const std::byte> bytes, std::size_t offset, std::endian order) {
    std::array<double, 1> value{};
    decode(bytes.subspan(offset, 4), DType::u32, value, order);
    return static_cast<std::uint32_t>(value[0]);
}

/// The elements within a variable, one after the other.
class MatParts {
public:
    MatParts(std::span<const std::byte> bytes, std::endian order, std::string where)
        : bytes_(bytes), order_(order), where_(std::move(where)) {}

    struct Part {
        std::uint32_t type = 0;
        std::span<const std::byte> data;
    };
    Part next() {
        if (bytes_.size() < tag_bytes) damaged("a variable that ends early");
        std::uint32_t type = word_at(bytes_, 0, order_);
        std::size_t size = word_at(bytes_, 4, order_);
        std::size_t begin = tag_bytes;
        if (type >> 16U != 0) {  // a small element has its data within the tag
            size = type >> 16U;
            type &= 0xFFFFU;
            begin = 4;
        }
        if (size > (begin == 4 ? 4 : bytes_.size() - begin)) damaged("an element longer than its variable");
        const Part found{type, bytes_.subspan(begin, size)};
        const std::size_t end = (begin + size + 7) / 8 * 8;
        bytes_ = bytes_.subspan(std::min(end, bytes_.size()));
        return found;
    }
    std::vector<double> numbers() {
        const Part part = next();
        const auto dtype = number_type(part.type);
        if (!dtype || part.data.size() % (dtype_bits(*dtype) / 8) != 0) damaged("an element without numbers");
        std::vector<double> values(part.data.size() / (dtype_bits(*dtype) / 8));
        decode(part.data, *dtype, values, order_);
        return values;
    }
    [[nodiscard]] std::endian order() const { return order_; }
    [[noreturn]] void damaged(const char* found) const {
        throw input_error("{}: damaged ({}): fetch it again, or save it again in MATLAB with save -v7", where_, found);
    }

private:
    std::span<const std::byte> bytes_;
    std::endian order_;
    std::string where_;
};

struct MatVariable {
    std::string name;
    std::vector<std::size_t> shape;
    std::uint32_t kind = 0;  ///< index in mat_classes
    bool complex = false;
    bool logical = false;
    bool compressed = false;
    std::uint64_t offset = 0;  ///< of its bytes in the file, behind the tag
    std::uint64_t bytes = 0;
};

/// Reads flags, dimensions and name, the first three parts of a variable.
void read_head(MatParts& parts, MatVariable& variable) {
    const auto flags = parts.next();
    if (flags.data.size() != 8) parts.damaged("a variable without flags");
    const std::uint32_t word = word_at(flags.data, 0, parts.order());
    variable.kind = (word & 0xFFU) < mat_classes.size() ? word & 0xFFU : 0;
    variable.complex = (word & 0x800U) != 0;
    variable.logical = (word & 0x200U) != 0;
    if (variable.kind != opaque_class) {  // which has no dimensions
        const auto dimensions = parts.numbers();
        constexpr std::size_t most_axes = 32;
        if (dimensions.empty() || dimensions.size() > most_axes) parts.damaged("an impossible number of dimensions");
        for (const double size : dimensions) {
            if (!(size >= 0 && size <= 0x1p31)) parts.damaged("an impossible dimension");
            variable.shape.push_back(static_cast<std::size_t>(size));
        }
    }
    const auto name = parts.next();
    variable.name.assign(reinterpret_cast<const char*>(name.data.data()), name.data.size());
}

class MatFile {
public:
    explicit MatFile(const std::string& path) : file_(path) {
        std::array<std::byte, mat_header_bytes> header{};
        file_.read(0, header);
        order_ = header[126] == std::byte{'M'} ? std::endian::big : std::endian::little;
        std::uint64_t offset = mat_header_bytes;
        while (offset < file_.size()) offset = list(offset);
    }
    [[nodiscard]] const std::vector<MatVariable>& variables() const { return variables_; }

    [[nodiscard]] StoredTensor stored(const MatVariable& variable) const {
        const MatClass& kind = mat_classes[variable.kind];
        StoredTensor tensor{variable.name, kind.dtype, kind.name, variable.shape, true, std::nullopt};
        if (variable.logical) tensor.dtype_text += " (logical)";
        if (variable.logical && variable.kind != sparse_class) tensor.dtype = DType::boolean;
        if (variable.complex) {
            tensor.dtype = std::nullopt;
            tensor.dtype_text = "complex " + tensor.dtype_text;
        }
        // A sparse matrix has a limit of its own, see DenseMatrix.
        if (variable.compressed && variable.kind != sparse_class) tensor.packed = variable.bytes;
        return tensor;
    }

    /// All elements of a variable, in Fortran order.
    [[nodiscard]] std::vector<double> load(const MatVariable& listed) {
        const std::string where = fmt::format("{}: variable {}", file_.path(), in_quotes(listed.name));
        const MatClass& kind = mat_classes[listed.kind];
        if (!kind.dtype)
            throw input_error(
                "{} is of class {} (numeric and logical arrays are read): save the numbers in it as a variable", where,
                kind.name);
        if (listed.complex) throw input_error("{} holds complex numbers: {}", where, complex_advice);
        const std::vector<std::byte> bytes = element(listed, where);
        MatParts parts(bytes, order_, where);
        MatVariable variable;
        read_head(parts, variable);
        if (listed.kind == sparse_class) return dense(parts, variable, listed.bytes, where);
        std::vector<double> values = parts.numbers();
        std::uint64_t needed = 1;
        for (const std::uint64_t size : variable.shape)
            if (__builtin_mul_overflow(needed, size, &needed)) needed = values.size() + 1;
        if (needed != values.size())
            throw input_error("{}: damaged ({} numbers, where shape {} needs another number): fetch or save it again",
                              where, values.size(), shape_text(variable.shape));
        return values;
    }

private:
    /// Lists the variable at this offset, and returns the offset of the next one.
    std::uint64_t list(std::uint64_t offset) {
        std::array<std::byte, tag_bytes> tag{};
        const std::string where = file_.path();
        if (file_.size() - offset < tag.size()) return file_.size();  // some programs pad files
        file_.read(offset, tag);
        const std::uint32_t type = word_at(tag, 0, order_);
        MatVariable variable;
        variable.bytes = word_at(tag, 4, order_);
        variable.offset = offset + tag.size();
        variable.compressed = type == compressed_element;
        if (variable.bytes > file_.size() - variable.offset)
            throw input_error(
                "{}: truncated (a variable of {} begins at byte {} of {}): likely an incomplete download, fetch or "
                "save it again",
                where, bytes_text(variable.bytes), offset, file_.size());
        const std::uint64_t end = variable.offset + variable.bytes;
        if (type != matrix_element && type != compressed_element) return end;
        std::vector<std::byte> head(std::min<std::uint64_t>(variable.bytes, most_head_bytes));
        file_.read(variable.offset, head);
        if (variable.compressed) {
            head = inflated(head, most_head_bytes, where);
            if (head.size() < tag_bytes || word_at(head, 0, order_) != matrix_element) return end;
            head.erase(head.begin(), head.begin() + tag_bytes);
        }
        if (head.empty()) return end;
        MatParts parts(head, order_, where);
        read_head(parts, variable);
        // A variable without a name holds the program's own data.
        if (!variable.name.empty()) variables_.push_back(std::move(variable));
        return end;
    }

    /// The bytes of a variable, unpacked and without the tag.
    [[nodiscard]] std::vector<std::byte> element(const MatVariable& variable, const std::string& where) {
        std::vector<std::byte> bytes(variable.bytes);
        file_.read(variable.offset, bytes);
        if (!variable.compressed) return bytes;
        const auto tag = inflated(bytes, tag_bytes, where);
        const std::uint64_t size = tag.size() == tag_bytes ? word_at(tag, 4, order_) : 0;
        reject_expansion(size, variable.bytes, mat_limit, where);
        unpacked_.add(variable.offset, size, file_.size(), where);
        auto whole = inflated(bytes, tag_bytes + size, where);
        if (whole.size() != tag_bytes + size)
            throw input_error("{}: damaged (it unpacks to {} instead of {}): fetch or save it again", where,
                              bytes_text(whole.size()), bytes_text(tag_bytes + size));
        whole.erase(whole.begin(), whole.begin() + tag_bytes);
        return whole;
    }

    static std::vector<double> dense(MatParts& parts, const MatVariable& variable, std::uint64_t stored,
                                     const std::string& where) {
        if (variable.shape.size() != 2) parts.damaged("a sparse array that is no matrix");
        const auto rows = parts.numbers();
        const auto starts = parts.numbers();
        const auto values = parts.numbers();
        DenseMatrix matrix(variable.shape[0], variable.shape[1], stored, where);
        matrix.add_lines(starts, rows, values, true);
        return matrix.take();
    }

    ByteFile file_;
    std::endian order_ = std::endian::little;
    std::vector<MatVariable> variables_;
    UnpackedVariables unpacked_;
};

std::optional<DType> mat_dtype(const Hdf5Type& type) {
    const bool is_signed = type.kind == Hdf5Type::Kind::signed_integer;
    if (type.kind == Hdf5Type::Kind::real)
        return type.bytes == 2 ? DType::f16 : type.bytes == 4 ? DType::f32 : DType::f64;
    if (!type.is_number()) return std::nullopt;
    if (type.bytes == 1) return is_signed ? DType::i8 : DType::u8;
    if (type.bytes == 2) return is_signed ? DType::i16 : DType::u16;
    if (type.bytes == 4) return is_signed ? DType::i32 : DType::u32;
    return is_signed ? DType::i64 : DType::u64;
}

/// Whether arrays of a class of version 7.3 hold its numbers; the arrays of all other classes hold references to them.
bool is_number_class(std::string_view name) {
    if (name.empty() || name == "logical") return true;
    return std::any_of(mat_classes.begin() + sparse_class + 1, mat_classes.end(),
                       [&](const MatClass& known) { return known.dtype && known.name == name; });
}

/// The variables of a file of version 7.3.
class MatHdf5File {
public:
    explicit MatHdf5File(const std::string& path) : file_(path, hdf5_offset) {
        const Hdf5Object root = file_.object(file_.root());
        if (!root.is_group)
            throw input_error("{}: an HDF5 file that lists no variables as MATLAB does: save it with save -v7", path);
        for (const auto& [name, address] : file_.members(root))
            if (!name.starts_with('#')) list(name, file_.object(address));  // such names hold the ends of references
    }
    [[nodiscard]] const std::vector<StoredTensor>& tensors() const { return tensors_; }

    [[nodiscard]] std::vector<double> load(std::size_t index) {
        const StoredTensor& tensor = tensors_[index];
        const Hdf5Object& object = objects_[index];
        const std::string where = where_of(tensor.name);
        if (tensor.dtype_text.starts_with(complex_prefix))
            throw input_error("{} holds complex numbers: {}", where, complex_advice);
        if (!tensor.dtype)
            throw input_error(
                "{} is of class {} (numeric and logical arrays are read): save the numbers in it as a variable", where,
                in_quotes(tensor.dtype_text));
        if (std::find(tensor.shape.begin(), tensor.shape.end(), 0) != tensor.shape.end()) return {};
        file_.renew_budget();
        if (!object.is_group) {
            const std::uint64_t bytes = object.type ? object.type->bytes : 0;
            unpacked_.add(index, file_.elements(object) * bytes, file_.size(), where);
            return numbers(object, where);
        }
        const auto starts = sparse_part(object, "jc", where);
        const auto rows = sparse_part(object, "ir", where);
        const auto values = sparse_part(object, "data", where);
        const std::uint64_t stored = (starts.size() + 2 * values.size()) * sizeof(double);
        unpacked_.add(index, stored, file_.size(), where);
        DenseMatrix matrix(tensor.shape[0], tensor.shape[1], std::min(stored, 2 * file_.size()), where);
        matrix.add_lines(starts, rows, values, true);
        return matrix.take();
    }

private:
    static constexpr std::uint64_t hdf5_offset = 512;
    static constexpr const char* complex_prefix = "complex ";

    [[nodiscard]] std::string where_of(const std::string& name) const {
        return fmt::format("{}: variable {}", file_.path(), in_quotes(name));
    }
    void list(const std::string& name, Hdf5Object object) {
        StoredTensor stored{name, std::nullopt, "", {}, true, std::nullopt};
        const auto text = object.texts.find("MATLAB_class");
        stored.dtype_text = text != object.texts.end() ? printable(text->second) : object.is_group ? "struct" : "";
        // Tables, dates and other objects.
        const bool opaque = object.numbers.contains("MATLAB_object_decode");
        if (opaque) stored.dtype_text = fmt::format("opaque, {}", stored.dtype_text);
        stored.shape.assign(object.shape.rbegin(), object.shape.rend());
        if (object.is_group) {
            const auto rows = object.numbers.find("MATLAB_sparse");
            if (rows != object.numbers.end()) {
                const auto parts = file_.members(object);
                const auto starts = parts.find("jc");
                const std::uint64_t count = starts == parts.end() ? 0 : file_.elements(file_.object(starts->second));
                stored.shape = {rows->second, count - std::min<std::uint64_t>(count, 1)};
                stored.dtype = DType::f64;
                stored.dtype_text = "sparse " + stored.dtype_text;
            }
        } else if (object.type && object.type->kind == Hdf5Type::Kind::compound) {  // of a real and an imaginary part
            stored.dtype_text = complex_prefix + stored.dtype_text;
        } else if (object.type && !opaque && is_number_class(stored.dtype_text)) {
            stored.dtype = stored.dtype_text == "logical" ? DType::boolean : mat_dtype(*object.type);
            if (stored.dtype && stored.dtype_text.empty()) stored.dtype_text = dtype_name(*stored.dtype);
            if (object.numbers.contains("MATLAB_empty")) stored.shape.assign(2, 0);  // the data are then the shape
            if (object.expands) stored.packed = file_.size();
        }
        tensors_.push_back(std::move(stored));
        objects_.push_back(std::move(object));
    }
    [[nodiscard]] std::vector<double> numbers(const Hdf5Object& data, const std::string& where) {
        const auto dtype = data.type ? mat_dtype(*data.type) : std::nullopt;
        if (!dtype) throw input_error("{} holds complex or no numbers: {}", where, complex_advice);
        const std::uint64_t count = file_.elements(data);
        if (data.expands) reject_expansion(count * sizeof(double), file_.size(), mat_limit, where);
        const auto bytes = file_.bytes(data);
        std::vector<double> values(count);
        decode(bytes, *dtype, values, data.type->order);
        return values;
    }
    /// A member of a sparse matrix: `data`, their rows `ir`, or `jc`, where each column begins among them. Empty where
    /// it has none, as a matrix without entries.
    [[nodiscard]] std::vector<double> sparse_part(const Hdf5Object& group, const char* name, const std::string& where) {
        const auto members = file_.members(group);
        const auto found = members.find(name);
        if (found == members.end()) return {};
        return numbers(file_.object(found->second), where);
    }

    Hdf5File file_;
    std::vector<StoredTensor> tensors_;
    std::vector<Hdf5Object> objects_;
    UnpackedVariables unpacked_;
};

}  // namespace

std::unique_ptr<TensorContainer> open_mat(const std::string& path) {
    bool is_hdf5 = false;
    {
        const ByteFile file(path);
        reject_other_format(file, ".mat");
        std::array<char, 512> bytes{};
        const std::string_view head(bytes.data(), std::min<std::uint64_t>(bytes.size(), file.size()));
        file.read(0, std::as_writable_bytes(std::span(bytes)).first(head.size()));
        if (begins_octave_text(head)) return open_octave_text(path);
        if (read_mat4_head(head)) return open_mat4(path);
        if (!format_of(".mat")->begins(head))
            throw input_error(
                "{}: not a MAT-file that is read (its header is that of no version from 4 to 7.3): save it in MATLAB "
                "or Octave with save -v7, in Python with scipy.io.savemat",
                path);
        const std::size_t version = head[126] == 'M' ? 124 : 125;  // its high byte
        is_hdf5 = head[version] == 2;
    }
    if (is_hdf5) {
        const auto file = std::make_shared<MatHdf5File>(path);
        return std::make_unique<LoadedTensors>(path, file->tensors(),
                                               [file](std::size_t index) { return file->load(index); });
    }
    const auto file = std::make_shared<MatFile>(path);
    std::vector<StoredTensor> tensors;
    for (const auto& variable : file->variables()) tensors.push_back(file->stored(variable));
    return std::make_unique<LoadedTensors>(path, std::move(tensors),
                                           [file](std::size_t index) { return file->load(file->variables()[index]); });
}

}  // namespace spiked::sim
