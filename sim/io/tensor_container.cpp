#include "sim/io/tensor_container.hpp"

#include <fmt/ranges.h>

#include <deque>
#include <filesystem>
#include <mutex>

#include "core/files/byte_file.hpp"
#include "core/runtime/error.hpp"
#include "sim/io/file_formats.hpp"
#include "sim/io/npy.hpp"
#include "sim/io/npz.hpp"

namespace spiked::sim {
namespace {

StoredTensor stored(std::string name, const NpyHeader& header) {
    return {std::move(name), header.dtype, header.descr, header.shape, header.fortran_order, std::nullopt};
}

void read_npy_bytes(const ByteSource& source, const NpyHeader& header, std::uint64_t first_byte,
                    std::span<std::byte> out) {
    const bool one_byte = header.dtype && dtype_bits(*header.dtype) == 8;
    if (!header.dtype || (header.fortran_order && header.shape.size() > 1) ||
        (header.order != std::endian::little && !one_byte))
        throw input_error(
            "{}: array of type {} cannot be copied (only little-endian numbers in C order can): save it in that form",
            source.where, header.descr);
    source.read(header.data_offset + first_byte, out);
}

class SafetensorsContainer : public TensorContainer {
public:
    explicit SafetensorsContainer(const std::string& path) : file_(path) {
        for (const auto& tensor : file_.tensors())
            tensors_.push_back({tensor.name, tensor.dtype, std::string(dtype_name(tensor.dtype)), tensor.shape, false});
    }
    const std::string& path() const override { return file_.path(); }
    const Metadata& metadata() const override { return file_.metadata(); }
    const std::vector<StoredTensor>& tensors() const override { return tensors_; }
    void read(std::size_t index, std::uint64_t first, std::span<double> out) const override {
        const TensorInfo& tensor = file_.tensors()[index];
        // Whole numbers as in .npy. Those of 16 and 32 bits are often packed codes and are rejected.
        if (tensor.dtype != DType::i64 && tensor.dtype != DType::boolean) return file_.read(tensor, first, out);
        const std::size_t width = dtype_bits(tensor.dtype) / 8;
        std::vector<std::byte> bytes(out.size() * width);
        file_.read_bytes(tensor, first * width, bytes);
        decode(bytes, tensor.dtype, out);
    }
    void read_bytes(std::size_t index, std::uint64_t first_byte, std::span<std::byte> out) const override {
        file_.read_bytes(file_.tensors()[index], first_byte, out);
    }

private:
    SafetensorsFile file_;
    std::vector<StoredTensor> tensors_;
};

class NpyContainer : public TensorContainer {
public:
    NpyContainer(ByteSource source, std::string name)
        : source_(std::move(source)), header_(read_npy_header(source_)), tensors_{stored(std::move(name), header_)} {}
    const std::string& path() const override { return source_.where; }
    const Metadata& metadata() const override { return metadata_; }
    const std::vector<StoredTensor>& tensors() const override { return tensors_; }
    void read(std::size_t, std::uint64_t first, std::span<double> out) const override {
        read_npy_elements(source_, header_, first, out);
    }
    void read_bytes(std::size_t, std::uint64_t first_byte, std::span<std::byte> out) const override {
        read_npy_bytes(source_, header_, first_byte, out);
    }

private:
    ByteSource source_;
    NpyHeader header_;
    Metadata metadata_;
    std::vector<StoredTensor> tensors_;
};

class NpzContainer : public TensorContainer {
public:
    explicit NpzContainer(std::shared_ptr<const NpzFile> file) : file_(std::move(file)) {
        for (const auto& member : file_->members()) {
            tensors_.push_back(stored(member.name, member.header));
            tensors_.back().packed = member.packed;
        }
    }
    const std::string& path() const override { return file_->path(); }
    const Metadata& metadata() const override { return metadata_; }
    const std::vector<StoredTensor>& tensors() const override { return tensors_; }
    void read(std::size_t index, std::uint64_t first, std::span<double> out) const override {
        const NpzMember& member = file_->members()[index];
        require_dtype(member.header, file_->where(member));
        const auto bytes = unpacked(index);
        read_npy_elements(source_of(*bytes, file_->where(member)), member.header, first, out);
    }
    void read_bytes(std::size_t index, std::uint64_t first_byte, std::span<std::byte> out) const override {
        const NpzMember& member = file_->members()[index];
        const auto bytes = unpacked(index);
        read_npy_bytes(source_of(*bytes, file_->where(member)), member.header, first_byte, out);
    }

private:
    using Bytes = std::shared_ptr<const std::vector<std::byte>>;

    Bytes unpacked(std::size_t index) const {
        constexpr std::size_t kept_members = 3;  // key, value and query of a layer
        constexpr std::size_t kept_bytes = 64 << 20;
        const std::lock_guard lock(mutex_);
        for (const auto& [known, bytes] : kept_)
            if (known == index) return bytes;
        // Old members are dropped first, so that at most three large ones are in memory. Small ones are kept up to
        // kept_bytes in total.
        const auto held = [&] {
            std::size_t sum = file_->members()[index].size;
            for (const auto& [known, bytes] : kept_) sum += bytes->size();
            return sum;
        };
        while (kept_.size() >= kept_members && held() > kept_bytes) kept_.pop_front();
        kept_.emplace_back(index,
                           std::make_shared<const std::vector<std::byte>>(file_->unpack(file_->members()[index])));
        return kept_.back().second;
    }

    std::shared_ptr<const NpzFile> file_;
    Metadata metadata_;
    std::vector<StoredTensor> tensors_;
    mutable std::mutex mutex_;
    mutable std::deque<std::pair<std::size_t, Bytes>> kept_;
};

}  // namespace

const std::vector<std::string>& TensorContainer::notes() const {
    static const std::vector<std::string> none;
    return none;
}

std::unique_ptr<TensorContainer> open_safetensors(const std::string& path) {
    return unpack_mlx_cache(std::make_unique<SafetensorsContainer>(path));
}

std::unique_ptr<TensorContainer> open_npz(const std::string& path) {
    auto file = std::make_shared<const NpzFile>(path);
    if (auto sparse = open_scipy_sparse(file)) return sparse;
    return std::make_unique<NpzContainer>(std::move(file));
}

std::unique_ptr<TensorContainer> open_npy(ByteSource source, std::string name) {
    return std::make_unique<NpyContainer>(std::move(source), std::move(name));
}

std::unique_ptr<TensorContainer> open_npy(const std::string& path) {
    const auto file = std::make_shared<const ByteFile>(path);
    reject_other_format(*file, ".npy");
    return open_npy(
        {path, file->size(), [file](std::uint64_t offset, std::span<std::byte> out) { file->read(offset, out); }},
        std::filesystem::path(path).stem().string());
}

std::unique_ptr<TensorContainer> open_tensors(const std::string& path) {
    const FileFormat* format = format_of(path);
    if (format != nullptr && format->open != nullptr) return format->open(path);
    if (format == nullptr) format = format_of_content(ByteFile(path));
    if (format != nullptr && format->open != nullptr) return format->open(path);
    reject_other_format(ByteFile(path), ".safetensors");
    throw input_error("{}: unknown kind of file (a dump is one of {}): convert it to one of them", path,
                      fmt::join(dump_suffixes(), ", "));
}

}  // namespace spiked::sim
