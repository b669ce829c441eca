#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "core/runtime/error.hpp"

namespace spiked::sim {

/// Little-endian fields in memory, taken from the front.
class Hdf5Fields {
public:
    Hdf5Fields(std::span<const std::byte> bytes, const std::string& path) : bytes_(bytes), path_(path) {}

    std::span<const std::byte> take(std::size_t count) {
        if (count > bytes_.size()) damaged("a structure ends early");
        const auto front = bytes_.first(count);
        bytes_ = bytes_.subspan(count);
        return front;
    }
    std::uint64_t number(std::size_t width) {
        std::uint64_t value = 0;
        const auto field = take(width);
        for (std::size_t i = width; i-- > 0;) value = value << 8U | std::to_integer<std::uint64_t>(field[i]);
        return value;
    }
    void skip(std::size_t count) { (void)take(count); }
    void expect(std::string_view text) {
        const auto found = take(text.size());
        if (std::memcmp(found.data(), text.data(), text.size()) != 0) damaged("a structure is not where it should be");
    }
    [[nodiscard]] std::size_t size() const { return bytes_.size(); }
    [[noreturn]] void damaged(const char* what) const {
        throw input_error("{}: damaged HDF5 file ({}): fetch it again, or save it in MATLAB with save -v7", path_,
                          what);
    }
    [[noreturn]] void unknown(const char* what) const {
        throw input_error(
            "{}: HDF5 with {} (what MATLAB and h5py write by default is read): save it in MATLAB with save -v7, or in "
            "Python: import h5py, numpy; numpy.save('x.npy', h5py.File('FILE')['NAME'][()].T)",
            path_, what);
    }

private:
    std::span<const std::byte> bytes_;
    const std::string& path_;
};

}  // namespace spiked::sim
