#include "app/fuzz/targets.hpp"

#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "estimators/compressor.hpp"
#include "estimators/row_quantizer.hpp"
#include "estimators/spectral_method.hpp"
#include "sim/csv.hpp"
#include "sim/dump_view.hpp"
#include "sim/entry_law.hpp"
#include "sim/kv_dump.hpp"
#include "sim/llama/llama_config.hpp"
#include "sim/npy.hpp"
#include "sim/npz.hpp"
#include "sim/safetensors.hpp"
#include "sim/signal.hpp"
#include "sim/spectrum_spec.hpp"
#include "sim/stream/address.hpp"
#include "sim/tensor_layout.hpp"
#include "theory/base/error.hpp"
#include "theory/base/json.hpp"
#include "validation/golden_vectors.hpp"
#include "validation/kv_codec.hpp"
#include "validation/kv_container.hpp"
#include "validation/study.hpp"

namespace spiked::app {
namespace {

using Bytes = std::span<const std::uint8_t>;

std::string text_of(Bytes bytes) { return {bytes.begin(), bytes.end()}; }

/// Files of this process, in memory where the system has a place for that; gone when it ends.
class Scratch {
public:
    static std::string file(const std::string& name, std::string_view bytes) {
        static const Scratch scratch;
        const std::string path = scratch.folder_ + "/" + name;
        std::ofstream(path, std::ios::binary | std::ios::trunc).write(bytes.data(), std::ssize(bytes));
        return path;
    }
    static std::string file(const std::string& name, Bytes bytes) { return file(name, text_of(bytes)); }

private:
    Scratch() {
        const std::filesystem::path memory = "/dev/shm";
        std::error_code none;
        const auto base = std::filesystem::is_directory(memory, none) ? memory : std::filesystem::temp_directory_path();
        folder_ = (base / ("spiked-fuzz-XXXXXX")).string();
        if (::mkdtemp(folder_.data()) == nullptr) throw write_error("{}: cannot be made", folder_);
    }
    ~Scratch() {
        std::error_code none;
        std::filesystem::remove_all(folder_, none);
    }
    std::string folder_;
};

/// Numbers that a file says it has may be many; some from either end show whether they can be read.
constexpr std::uint64_t some = 64;

void read_safetensors(Bytes bytes) {
    const sim::SafetensorsFile file(Scratch::file("a.safetensors", bytes));
    for (const auto& tensor : file.tensors()) {
        const std::uint64_t count = std::min(some, tensor.elements());
        std::vector<double> values(count);
        file.read(tensor, 0, values);
        file.read(tensor, tensor.elements() - count, values);
    }
}

void read_npy(Bytes bytes) { (void)sim::read_npy(Scratch::file("a.npy", bytes)); }

void read_npz(Bytes bytes) {
    const sim::NpzFile file(Scratch::file("a.npz", bytes));
    for (const auto& member : file.members()) (void)sim::read_npz(file.path(), member.name);
}

void read_csv(Bytes bytes) { (void)sim::read_csv(Scratch::file("a.csv", bytes)); }

void read_dump(Bytes bytes) {
    const sim::KvDump dump(Scratch::file("dump.safetensors", bytes));
    if (sim::has_rotary(dump)) (void)sim::dump_rotary(dump);
    for (const auto& tensor : dump.tensors())
        for (const std::size_t head : {std::size_t{0}, tensor.heads - 1})
            (void)dump.read_block(tensor, head, 0, std::min<std::size_t>(some, tensor.tokens));
}

/// Two bytes of length, that much of a header, then what follows it: sums and magic are put in, as bytes that no chance
/// would hit.
void read_container(Bytes bytes) {
    const std::size_t length =
        bytes.size() < 2 ? 0 : std::min<std::size_t>(bytes.size() - 2, bytes[0] + 256U * bytes[1]);
    const std::string all = text_of(bytes.subspan(std::min<std::size_t>(2, bytes.size())));
    const std::string header = all.substr(0, length);
    std::string file = "SPIKEDKV";
    const auto number = [&](std::uint64_t value, int width) {
        for (int i = 0; i < width; ++i) file += static_cast<char>(value >> (8 * i) & 0xFFU);
    };
    number(validation::kv_container_version, 4);
    number(::crc32(0, reinterpret_cast<const Bytef*>(header.data()), static_cast<uInt>(header.size())), 4);
    number(length, 8);
    const std::string path = Scratch::file("a.spkv", file + all);
    (void)validation::decode_container(path, Scratch::file("back.safetensors", std::string_view()), 1, {});
}

/// Method, bits and rows by the first three bytes, then what a block was coded to.
void read_block(Bytes bytes) {
    static const std::vector<std::string> methods = [] {
        std::vector<std::string> names;
        for (const auto& entry : estimators::row_quantizers()) names.push_back(entry.name);
        names.insert(names.end(), {"eoptshrink+tq-mse", "svd:2+tcq"});
        return names;
    }();
    constexpr std::size_t dimension = 16;
    if (bytes.size() < 3) throw input_error("a block of {} bytes", bytes.size());
    const std::string& method = methods[bytes[0] % methods.size()];
    const auto& widths = estimators::row_quantizer_entry(estimators::parse_method(method).quantizer).widths;
    const double bits = widths[bytes[1] % std::min<std::size_t>(4, widths.size())];
    static std::map<std::pair<std::string, double>, estimators::Compressor> made;
    auto found = made.find({method, bits});
    if (found == made.end())
        found = made.try_emplace({method, bits}, estimators::parse_method(method), dimension, bits,
                                 estimators::QuantizerOptions{})
                    .first;
    (void)found->second.decode(bytes.subspan(3), 1 + bytes[2] % 32);
}

void read_study(Bytes bytes) { (void)validation::parse_study(text_of(bytes), "study.toml"); }

void read_json(Bytes bytes) { (void)Json::parse(text_of(bytes), "text"); }

void read_golden(Bytes bytes) {
    (void)validation::golden_difference(Json::parse(text_of(bytes), "golden.json"), "golden.json");
}

void read_model(Bytes bytes) {
    (void)sim::read_llama_config(std::filesystem::path(Scratch::file("config.json", bytes)).parent_path().string());
}

/// One of the words that options take, by the first byte. Words that name files are left out.
void read_words(Bytes bytes) {
    if (bytes.empty()) throw input_error("no words");
    const std::string words = text_of(bytes.subspan(1));
    switch (bytes[0] % 8) {
        case 0:
            if (!words.starts_with("file:") && !words.starts_with("sample:")) (void)sim::parse_spectrum(words);
            return;
        case 1:
            (void)sim::EntryLaw::parse(words);
            return;
        case 2:
            (void)sim::VectorLaw::parse(words, sim::MatrixSide::row);
            return;
        case 3:
            (void)sim::parse_signal_vectors(words);
            return;
        case 4:
            (void)sim::parse_layout(words);
            return;
        case 5:
            (void)estimators::parse_method(words);
            return;
        case 6:
            (void)estimators::spectral_method(words);
            return;
        default:
            (void)stream::StudySeed::parse(words);
    }
}

}  // namespace

const std::vector<FuzzTarget>& fuzz_targets() {
    static const std::vector<FuzzTarget> targets = {
        {"safetensors", "a safetensors file", read_safetensors},
        {"npy", "a NumPy array", read_npy},
        {"npz", "a zip of NumPy arrays", read_npz},
        {"csv", "lines of numbers", read_csv},
        {"dump", "a KV dump and the JSON of its metadata", read_dump},
        {"container", "a .spkv file behind its sums", read_container},
        {"block", "a coded block of any method", read_block},
        {"study", "a study file (TOML)", read_study},
        {"json", "JSON text", read_json},
        {"golden", "golden vectors", read_golden},
        {"model", "config.json of a model", read_model},
        {"words", "spectra, laws, layouts, methods, seeds as typed", read_words},
    };
    return targets;
}

bool takes(const FuzzTarget& target, std::span<const std::uint8_t> bytes) {
    try {
        target.read(bytes);
        return true;
    } catch (const Error& error) {
        if (error.code() == ExitCode::bug) throw;
        return false;
    }
}

}  // namespace spiked::app
