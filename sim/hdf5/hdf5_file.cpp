#include "sim/hdf5/hdf5_file.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/runtime/error.hpp"
#include "sim/hdf5/hdf5_fields.hpp"

namespace spiked::sim {
namespace {

Hdf5Type hdf5_type(Hdf5Fields& fields) {
    Hdf5Type type;
    const std::uint64_t kind = fields.number(1) & 15U;
    const std::uint64_t bits = fields.number(3);
    type.bytes = fields.number(4);
    type.order = (bits & 1U) != 0 ? std::endian::big : std::endian::little;
    if (kind == 8) return hdf5_type(fields);  // an enumeration, as which h5py writes booleans, begins with its type
    if (kind == 3) type.kind = Hdf5Type::Kind::text;
    if (kind == 6) type.kind = Hdf5Type::Kind::compound;
    if (kind > 1) return type;
    const std::uint64_t bit_offset = fields.number(2);
    const std::uint64_t precision = fields.number(2);
    if (bit_offset != 0 || precision != 8 * type.bytes) return type;
    if (kind == 0) {
        const bool known = type.bytes == 1 || type.bytes == 2 || type.bytes == 4 || type.bytes == 8;
        const bool is_signed = (bits & 8U) != 0;
        if (known) type.kind = is_signed ? Hdf5Type::Kind::signed_integer : Hdf5Type::Kind::unsigned_integer;
    } else if ((bits & 0x40U) == 0) {
        fields.skip(1);
        const std::uint64_t exponent = fields.number(1);  // its bits, by which IEEE types differ from others
        const bool known = (type.bytes == 2 && exponent == 5) || (type.bytes == 4 && exponent == 8) ||
                           (type.bytes == 8 && exponent == 11);
        if (known) type.kind = Hdf5Type::Kind::real;
    }
    return type;
}

std::vector<std::uint64_t> hdf5_shape(Hdf5Fields& fields) {
    const std::uint64_t version = fields.number(1);
    const std::size_t rank = fields.number(1);
    fields.skip(version == 1 ? 6 : 2);
    std::vector<std::uint64_t> shape(rank);
    for (auto& size : shape) size = fields.number(8);
    return shape;
}

void hdf5_attribute(Hdf5Fields& fields, Hdf5Object& found, const std::string& path) {
    const std::uint64_t version = fields.number(1);
    fields.skip(1);
    const std::size_t name_bytes = fields.number(2);
    const std::size_t type_bytes = fields.number(2);
    const std::size_t shape_bytes = fields.number(2);
    if (version == 3) fields.skip(1);
    const auto padded = [&](std::size_t size) { return version == 1 ? (size + 7) / 8 * 8 : size; };
    const auto name_field = fields.take(padded(name_bytes));
    const auto* text = reinterpret_cast<const char*>(name_field.data());
    const std::string name(text, strnlen(text, name_field.size()));
    Hdf5Fields type_fields(fields.take(padded(type_bytes)), path);
    const Hdf5Type type = hdf5_type(type_fields);
    fields.skip(padded(shape_bytes));
    if (type.kind == Hdf5Type::Kind::text && type.bytes <= fields.size()) {
        const auto* value = reinterpret_cast<const char*>(fields.take(type.bytes).data());
        found.texts[name] = std::string(value, strnlen(value, type.bytes));
    } else if (type.is_number() && type.bytes <= fields.size()) {
        found.numbers[name] = fields.number(type.bytes);
    }
}

void hdf5_filters(Hdf5Fields& fields, Hdf5Object& found) {
    const std::uint64_t version = fields.number(1);
    const std::size_t count = fields.number(1);
    if (version == 1) fields.skip(6);
    for (std::size_t i = 0; i < count; ++i) {
        const auto filter = static_cast<std::uint16_t>(fields.number(2));
        const std::size_t name = version == 1 || filter >= 256 ? fields.number(2) : 0;
        fields.skip(2);
        const std::size_t values = fields.number(2);
        fields.skip(name + 4 * values + (version == 1 && values % 2 == 1 ? 4 : 0));
        // Each is applied once, so that the work is that of the bytes.
        const bool again = std::find(found.filters.begin(), found.filters.end(), filter) != found.filters.end();
        if (filter < 1 || filter > 3 || again) found.is_unread = true;
        found.filters.push_back(filter);
    }
}

void hdf5_layout(Hdf5Fields& fields, std::uint64_t base, Hdf5Object& found) {
    const std::uint64_t version = fields.number(1);
    const std::uint64_t kind = fields.number(1);
    if (version != 3 || kind > 2) {
        found.is_unread = true;
    } else if (kind == 0) {
        const auto data = fields.take(fields.number(2));
        found.compact.assign(data.begin(), data.end());
        found.expands = false;
    } else if (kind == 1) {
        const std::uint64_t address = fields.number(8);
        found.data_bytes = fields.number(8);
        found.expands = address == Hdf5Object::undefined;
        if (!found.expands && __builtin_add_overflow(base, address, &found.data))
            fields.damaged("an address outside the file");
    } else {
        const std::size_t axes = fields.number(1);
        found.chunk_tree = fields.number(8);
        for (std::size_t i = 0; i < axes; ++i) found.chunk_sizes.push_back(fields.number(4));
    }
}

/// Takes what a message of an object header says.
void hdf5_message(std::uint64_t type, Hdf5Fields& fields, std::uint64_t base, const std::string& path,
                  Hdf5Object& found) {
    if (type == 0x01) found.shape = hdf5_shape(fields);
    if (type == 0x03) found.type = hdf5_type(fields);
    if (type == 0x07) found.is_elsewhere = true;
    if (type == 0x08) hdf5_layout(fields, base, found);
    if (type == 0x0B) hdf5_filters(fields, found);
    if (type == 0x0C) hdf5_attribute(fields, found, path);
    if (type == 0x11) {
        found.is_group = true;
        found.symbols = fields.number(8);
        found.names = fields.number(8);
    }
}

}  // namespace

Hdf5File::Hdf5File(std::string path, std::uint64_t offset) : file_(std::move(path)), budget_(budget()) {
    constexpr std::size_t superblock_bytes = 100;
    const auto bytes = read(offset, superblock_bytes);
    Hdf5Fields fields(bytes, file_.path());
    fields.expect("\x89HDF\r\n\x1a\n");
    const std::uint64_t version = fields.number(1);
    if (version > 1) fields.unknown("a new superblock");
    fields.skip(4);
    if (fields.number(1) != 8 || fields.number(1) != 8) fields.unknown("addresses of another size");
    fields.skip(version == 0 ? 9 : 13);
    base_ = fields.number(8);
    fields.skip(3 * 8 + 8);
    root_ = fields.number(8);
}

std::vector<std::byte> Hdf5File::read(std::uint64_t position, std::uint64_t count) {
    const Hdf5Fields report({}, path());
    if (count > budget_) report.damaged("its structures are longer than the file, or refer to each other in circles");
    budget_ -= count;
    if (position > file_.size() || count > file_.size() - position) report.damaged("an address outside the file");
    std::vector<std::byte> bytes(count);
    file_.read(position, bytes);
    return bytes;
}

std::uint64_t Hdf5File::position(std::uint64_t address) const {
    std::uint64_t sum = 0;
    if (__builtin_add_overflow(base_, address, &sum)) Hdf5Fields({}, path()).damaged("an address outside the file");
    return sum;
}

Hdf5Object Hdf5File::object(std::uint64_t address) {
    Hdf5Object found;
    const auto prefix = read(position(address), 16);
    Hdf5Fields fields(prefix, path());
    if (std::memcmp(prefix.data(), "OHDR", 4) == 0) fields.unknown("object headers of version 2");
    if (fields.number(1) != 1) fields.damaged("an object header of an unknown version");
    fields.skip(1);
    std::uint64_t left = fields.number(2);
    fields.skip(4);
    std::vector<std::pair<std::uint64_t, std::uint64_t>> blocks{{position(address) + 16, fields.number(4)}};
    for (std::size_t block = 0; block < blocks.size(); ++block) {  // grows by continuations
        const auto bytes = read(blocks[block].first, blocks[block].second);
        Hdf5Fields messages(bytes, path());
        while (left > 0 && messages.size() >= 8) {
            --left;
            const std::uint64_t type = messages.number(2);
            const std::size_t size = messages.number(2);
            const std::uint64_t flags = messages.number(1);
            messages.skip(3);
            Hdf5Fields message(messages.take(size), path());
            if (type == 0x10) {
                const std::uint64_t begin = position(message.number(8));
                blocks.emplace_back(begin, message.number(8));
            } else if ((flags & 2U) != 0) {
                found.is_unread = true;  // stored elsewhere in the file, and shared
            } else {
                hdf5_message(type, message, base_, path(), found);
            }
        }
    }
    return found;
}

std::map<std::string, std::uint64_t> Hdf5File::members(const Hdf5Object& group) {
    std::map<std::string, std::uint64_t> found;
    const auto heap_bytes = read(position(group.names), 32);
    Hdf5Fields heap(heap_bytes, path());
    heap.expect("HEAP");
    heap.skip(4);
    const std::uint64_t size = heap.number(8);
    heap.skip(8);
    const auto names = read(position(heap.number(8)), size);
    each_leaf(group.symbols, 0, 8, [&](Hdf5Fields&, std::uint64_t address) {
        const auto bytes = read(position(address), 8);
        Hdf5Fields head(bytes, path());
        head.expect("SNOD");
        head.skip(2);
        const std::size_t count = head.number(2);
        const auto entries = read(position(address) + 8, count * 40);
        Hdf5Fields fields(entries, path());
        for (std::size_t i = 0; i < count; ++i) {
            const std::uint64_t name = fields.number(8);
            const std::uint64_t target = fields.number(8);
            const std::uint64_t kind = fields.number(4);
            fields.skip(20);
            if (name >= names.size()) fields.damaged("a name outside its heap");
            const auto* begin = reinterpret_cast<const char*>(names.data()) + name;
            std::string text(begin, strnlen(begin, names.size() - name));
            if (kind != 2) found.emplace(std::move(text), target);
        }
    });
    return found;
}

void Hdf5File::each_leaf(std::uint64_t tree, std::uint64_t type, std::size_t key_bytes, const Leaf& use) {
    std::vector<std::uint64_t> nodes{tree};
    while (!nodes.empty()) {
        const std::uint64_t node = position(nodes.back());
        nodes.pop_back();
        const auto head_bytes = read(node, 24);
        Hdf5Fields head(head_bytes, path());
        head.expect("TREE");
        if (head.number(1) != type) head.damaged("a tree of the wrong kind");
        const std::uint64_t level = head.number(1);
        const std::size_t count = head.number(2);
        const auto bytes = read(node + 24, count * (key_bytes + 8));
        Hdf5Fields entries(bytes, path());
        for (std::size_t i = 0; i < count; ++i) {
            Hdf5Fields key(entries.take(key_bytes), path());
            const std::uint64_t child = entries.number(8);
            if (level > 0)
                nodes.push_back(child);
            else
                use(key, child);
        }
    }
}

std::uint64_t Hdf5File::elements(const Hdf5Object& data) const {
    std::uint64_t count = 1;
    constexpr std::uint64_t most = std::uint64_t{1} << 56U;
    for (const std::uint64_t size : data.shape)
        if (__builtin_mul_overflow(count, size, &count) || count > most)
            Hdf5Fields({}, path()).damaged("an impossible shape");
    return count;
}

std::vector<std::byte> Hdf5File::bytes(const Hdf5Object& data) {
    const Hdf5Fields report({}, path());
    if (data.is_elsewhere)
        throw input_error("{}: a dataset has its data in another file (which is never opened): save it as one file",
                          path());
    if (!data.type || data.is_unread) report.unknown("a layout of data that is not read");
    std::uint64_t bytes = 0;
    if (__builtin_mul_overflow(elements(data), std::uint64_t{data.type->bytes}, &bytes))
        report.damaged("an impossible shape");
    std::vector<std::byte> stored = data.compact;
    if (!data.chunk_sizes.empty())
        stored = chunks(data, bytes);
    else if (data.data != Hdf5Object::undefined)
        stored = read(data.data, std::min(bytes, data.data_bytes));
    else if (data.expands)  // never written, which means zeros
        stored.resize(bytes);
    if (stored.size() != bytes) report.damaged("a dataset has another number of bytes than its shape needs");
    return stored;
}

}  // namespace spiked::sim
