#include "app/fuzz/targets.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <utility>

#include "codec/container/kv_container.hpp"
#include "codec/container/kv_decoder.hpp"
#include "core/files/byte_file.hpp"
#include "core/runtime/error.hpp"
#include "core/text/json.hpp"
#include "estimators/caches/cache_method.hpp"
#include "estimators/caches/method_name.hpp"
#include "estimators/compressors/compressor.hpp"
#include "estimators/compressors/golden_vectors.hpp"
#include "estimators/quantizers/quantizer_table.hpp"
#include "reports/page/printed_values.hpp"
#include "sim/io/file_formats.hpp"
#include "sim/io/matrix_file.hpp"
#include "sim/io/safetensors.hpp"
#include "sim/io/tensor_container.hpp"
#include "sim/io/tensor_layout.hpp"
#include "sim/kv/dump_formats.hpp"
#include "sim/kv/dump_view.hpp"
#include "sim/kv/kv_dump.hpp"
#include "sim/llama/llama.hpp"
#include "sim/llama/llama_config.hpp"
#include "sim/llama/llama_readout.hpp"
#include "sim/random/address.hpp"
#include "sim/spiked/entry_law.hpp"
#include "sim/spiked/signal.hpp"
#include "sim/spiked/spectrum_spec.hpp"
#include "validation/store/store.hpp"
#include "validation/study/study.hpp"

namespace spiked::app {
namespace {

using Bytes = std::span<const std::uint8_t>;

std::string text_of(Bytes bytes) { return {bytes.begin(), bytes.end()}; }

/// Temporary files of this process, in memory where the system provides /dev/shm; they are removed at its end.
class Scratch {
public:
    static const std::string& folder() {
        static const Scratch scratch;
        return scratch.folder_;
    }
    static std::string file(const std::string& name, Bytes bytes) {
        const std::string path = folder() + "/" + name;
        // A stream would take longer than some of the readers.
        constexpr mode_t owner_only = 0600;
        const FileDescriptor out(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, owner_only));
        if (::write(out.number(), bytes.data(), bytes.size()) != std::ssize(bytes))
            throw output_error("{}: cannot be written", path);
        return path;
    }
    static std::string file(const std::string& name, std::string_view bytes) {
        return file(name, Bytes(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()));
    }

private:
    Scratch() {
        const std::filesystem::path memory = "/dev/shm";
        std::error_code none;
        const auto base = std::filesystem::is_directory(memory, none) ? memory : std::filesystem::temp_directory_path();
        folder_ = (base / ("spiked-fuzz-XXXXXX")).string();
        if (::mkdtemp(folder_.data()) == nullptr) throw output_error("{}: cannot be made", folder_);
    }
    ~Scratch() {
        std::error_code none;
        std::filesystem::remove_all(folder_, none);
    }
    std::string folder_;
};

/// How many values are read: a file may announce very many, and some from either end show whether they can be read.
constexpr std::uint64_t values_read = 64;

/// Whether a tensor takes more than a megabyte in memory and no more than readers may have to allow: then reading it
/// takes milliseconds, in which thousands of other inputs are tried. The tests of the limits read such tensors.
bool is_slow(std::uint64_t elements) {
    constexpr std::uint64_t megabyte = 1 << 17, most_allowed = 1 << 26;
    return elements > megabyte && elements <= most_allowed;
}

/// The dialect of a table by the digits of a number, each of which leaves a part open or chooses it.
sim::TableDialect dialect_of(std::size_t number) {
    const auto next = [&](std::size_t choices) { return std::exchange(number, number / choices) % choices; };
    const auto yes_or_no = [&]() -> std::optional<bool> {
        const std::size_t choice = next(3);
        return choice == 0 ? std::nullopt : std::optional(choice == 1);
    };
    sim::TableDialect dialect{.header = yes_or_no(), .index = yes_or_no()};
    if (const std::size_t choice = next(3); choice > 0) dialect.decimal = choice == 1 ? '.' : ',';
    if (const std::size_t choice = next(6); choice > 0) dialect.delimiter = ",;\t |"[choice - 1];
    return dialect;
}

/// The first byte chooses a dialect, 0 the recognised one; the others are a table.
void read_table(Bytes bytes) {
    if (bytes.empty()) throw input_error("a file of no bytes");
    const std::string path = Scratch::file("a.csv", bytes.subspan(1));
    (void)sim::read_noted_matrix(path, {.layout = "", .table = dialect_of(bytes[0])});
}

/// Reads values at both ends of every tensor of a file, and the whole of each that is a matrix.
void read_file(const sim::FileFormat& format, Bytes bytes) {
    if (format.open == nullptr) return read_table(bytes);
    const std::string path = Scratch::file("a" + format.suffix, bytes);
    const auto file = format.open(path);
    for (std::size_t i = 0; i < file->tensors().size(); ++i) {
        const auto& tensor = file->tensors()[i];
        std::uint64_t elements = 1;
        for (const std::size_t length : tensor.shape) elements *= length;
        if (is_slow(elements)) continue;
        std::vector<double> values(std::min(values_read, elements));
        file->read(i, 0, values);
        file->read(i, elements - values.size(), values);
        if (tensor.shape.size() == 1 || tensor.shape.size() == 2) (void)sim::read_matrix(path + ":" + tensor.name);
    }
}

void read_dump(Bytes bytes) {
    const sim::KvDump dump(Scratch::file("dump.safetensors", bytes));
    if (sim::has_rotary(dump)) (void)sim::dump_rotary(dump);
    for (const auto& tensor : dump.tensors())
        for (const std::size_t head : {std::size_t{0}, tensor.heads - 1})
            (void)dump.read_block(tensor, head, 0, std::min<std::size_t>(values_read, tensor.tokens));
    if (dump.metadata("readout")) (void)sim::LlamaReadout(dump);
}

/// The first byte chooses the format and the layout, the others are the file. Its tensors are read as matrices and as
/// heads of a cache, and the whole file as a dump.
void read_tensors(Bytes bytes) {
    if (bytes.empty()) throw input_error("a file of no bytes");
    const auto& suffixes = sim::dump_suffixes();
    const auto& layouts = sim::all_layouts();
    const std::size_t first = bytes[0];
    const std::string layout = layouts[first / suffixes.size() % layouts.size()].text();
    const std::string path = Scratch::file("a" + suffixes[first % suffixes.size()], bytes.subspan(1));
    std::size_t read = 0;
    std::optional<Error> rejected;
    const auto attempt = [&](const auto& work) {
        try {
            work();
            ++read;
        } catch (const Error& error) {
            if (error.kind() == ErrorKind::internal) throw;
            rejected = error;
        }
    };
    const auto file = sim::open_tensors(path);
    for (std::size_t i = 0; i < std::min<std::size_t>(4, file->tensors().size()); ++i)
        for (const char* head : {"", ":0"})
            attempt([&] { (void)sim::read_matrix(path + ":" + file->tensors()[i].name + head, layout); });
    const auto& formats = sim::dump_formats();
    const std::string format = formats[first / suffixes.size() / layouts.size() % formats.size()].name;
    for (const sim::DumpOptions& options :
         {sim::DumpOptions{.layout = layout},
          sim::DumpOptions{.format = format, .skip_empty = true, .any_sequence = true},
          sim::DumpOptions{.format = format, .head_dim = 4, .any_sequence = true}})
        attempt([&] {
            const sim::KvDump dump(path, options);
            for (const auto& tensor : dump.tensors())
                (void)dump.read_block(tensor, tensor.heads - 1, 0, std::min<std::size_t>(values_read, tensor.tokens));
        });
    if (read == 0) throw rejected.value();
}

/// Reads eigenvalues with weights, or a matrix whose sample covariance has the eigenvalues; the first byte chooses.
void read_atoms(Bytes bytes) {
    if (bytes.empty()) throw input_error("a file of no bytes");
    const std::string kind = bytes[0] % 2 == 0 ? "file:" : "sample:";
    (void)sim::parse_spectrum(kind + Scratch::file("atoms.csv", bytes.subspan(1)));
}

/// The version that the header of a container states, which the bytes before it repeat.
std::uint64_t container_version_in(const std::string& header) {
    constexpr std::string_view key = "\"version\":";
    const std::size_t at = header.find(key);
    if (at == std::string::npos || at + key.size() == header.size()) return codec::kv_container_version;
    const char digit = header[at + key.size()];
    return digit >= '0' && digit <= '9' ? static_cast<std::uint64_t>(digit - '0') : codec::kv_container_version;
}

/// Two bytes give the length of the header, which follows, then the rest of the file. The magic bytes and checksums are
/// added here, because random inputs would never match them.
void read_container(Bytes bytes) {
    const std::size_t length =
        bytes.size() < 2 ? 0 : std::min<std::size_t>(bytes.size() - 2, bytes[0] + 256U * bytes[1]);
    const std::string all = text_of(bytes.subspan(std::min<std::size_t>(2, bytes.size())));
    const std::string header = all.substr(0, length);
    std::string file = "SPIKEDKV";
    const auto number = [&](std::uint64_t value, int width) {
        for (int i = 0; i < width; ++i) file += static_cast<char>(value >> (8 * i) & 0xFFU);
    };
    number(container_version_in(header), 4);
    number(::crc32(0, reinterpret_cast<const Bytef*>(header.data()), static_cast<uInt>(header.size())), 4);
    number(length, 8);
    const std::string path = Scratch::file("a.spkv", file + all);
    (void)codec::decode_container(path, Scratch::file("back.safetensors", std::string_view()), 1, {});
}

/// The first three bytes choose the method, the bit width and the number of rows; the others are the coded block.
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
    const auto& widths = estimators::parse_method(method).quantizer.entry().widths;
    const double bits = widths[bytes[1] % std::min<std::size_t>(4, widths.size())];
    static std::map<std::pair<std::string, double>, estimators::Compressor> made;
    auto found = made.find({method, bits});
    if (found == made.end())
        found = made.try_emplace({method, bits}, estimators::parse_method(method), dimension, bits,
                                 estimators::QuantizerOptions{})
                    .first;
    (void)found->second.decode(bytes.subspan(3), 1 + bytes[2] % 32);
}

/// The first three bytes choose the method, the heads and the number of tokens; the others are the code of a sequence.
void read_sequence(Bytes bytes) {
    static const std::vector<estimators::CacheMethod> methods = {
        estimators::cache_method("causal-klt"), estimators::cache_method("causal-klt:sink=off:freeze=128"),
        estimators::cache_method("causal-klt:freeze=never:ar=off:dependent=off:adapt=off"),
        estimators::cache_method("causal-klt-joint:freeze=128")};
    constexpr std::size_t dimension = 4;
    if (bytes.size() < 3) throw input_error("a sequence of {} bytes", bytes.size());
    const estimators::CacheMethod& method = methods[bytes[0] % methods.size()];
    const std::size_t both = 1 + bytes[1] % 3;
    const std::size_t keys = bytes[1] % 2;
    const estimators::CacheGroup heads{method.sides ? both : keys, method.sides ? both : 1 - keys, {}};
    const std::size_t channels = dimension * (heads.keys + heads.values);
    (void)estimators::cache_coder(method, channels, 2.0, {}, {}, heads)
        .sequence.decode(bytes.subspan(3), 1 + 2 * bytes[2]);
}

/// Reads a study; after a zero byte follows the record of --set as a store keeps it.
void read_study(Bytes bytes) {
    const std::string text = text_of(bytes);
    const std::size_t end = text.find('\0');
    if (end == std::string::npos)
        (void)validation::parse_study(text, "study.toml");
    else
        (void)validation::reread_study(text.substr(0, end), Json::parse(text.substr(end + 1), "config_set", 8), "5eed",
                                       "store");
}

void read_json(Bytes bytes) { (void)Json::parse(text_of(bytes), "text"); }

void read_golden(Bytes bytes) {
    (void)estimators::golden_difference(Json::parse(text_of(bytes), "golden.json"), "golden.json");
}

void read_model(Bytes bytes) {
    (void)sim::read_llama_config(std::filesystem::path(Scratch::file("config.json", bytes)).parent_path().string());
}

/// Reads a model of one small layer. The bytes are the index of its weights, or the one file of weights.
void read_weights(Bytes bytes) {
    static const std::string folder = [] {
        constexpr std::size_t hidden = 4;
        const std::string at = "model.layers.0.";
        std::vector<sim::TensorSource> tensors;
        for (const std::string name :
             {"model.norm", "model.layers.0.input_layernorm", "model.layers.0.post_attention_layernorm"})
            tensors.push_back(
                sim::tensor_of(name + ".weight", sim::DType::f32, {hidden}, std::vector<double>(hidden, 1.0)));
        for (const std::string name :
             {"model.embed_tokens", "model.layers.0.self_attn.q_proj", "model.layers.0.self_attn.k_proj",
              "model.layers.0.self_attn.v_proj", "model.layers.0.self_attn.o_proj", "model.layers.0.mlp.gate_proj",
              "model.layers.0.mlp.up_proj", "model.layers.0.mlp.down_proj"})
            tensors.push_back(sim::tensor_of(name + ".weight", sim::DType::f32, {hidden, hidden},
                                             std::vector<double>(hidden * hidden, 0.5)));
        std::filesystem::create_directory(Scratch::folder() + "/model");
        Scratch::file("model/config.json",
                      std::string_view(R"({"model_type":"llama","hidden_size":4,"intermediate_size":4,"vocab_size":4,
                "num_hidden_layers":1,"num_attention_heads":1,"max_position_embeddings":8,"rms_norm_eps":1e-5,
                "hidden_act":"silu","tie_word_embeddings":true})"));
        sim::write_safetensors(Scratch::folder() + "/model/a", {}, tensors);
        return Scratch::folder() + "/model";
    }();
    std::filesystem::remove(folder + "/model.safetensors");
    const bool index = !bytes.empty() && bytes[0] == '{';
    Scratch::file(index ? "model/model.safetensors.index.json" : "model/model.safetensors", bytes);
    const sim::Llama model(folder);
}

/// Reads printed values, with which the means of a store are compared.
void read_printed(Bytes bytes) {
    constexpr const char* study = R"(
        spiked = 1
        study = { name = "s", seed = "1" }
        model = { kind = "spiked", n = 8, d = 8, signal = { strength = 2.0 } }
        estimator = [{ name = "svd:1" }]
        run = { reps = { min = 2 } })";
    static validation::Store store(":memory:", validation::parse_study(study, "study.toml").experiment, "fuzz", 1,
                                   Json::object());
    (void)reports::against_printed(store.database(), Scratch::file("printed.csv", bytes), "json");
}

/// Reads a spectrum; texts that name files are left out.
void read_spectrum(Bytes bytes) {
    const std::string words = text_of(bytes);
    if (!words.starts_with("file:") && !words.starts_with("sample:")) (void)sim::parse_spectrum(words);
}

/// Parses the text of an option; the first byte chooses which.
void read_words(Bytes bytes) {
    if (bytes.empty()) throw input_error("no words");
    const std::string words = text_of(bytes.subspan(1));
    switch (bytes[0] % 8) {
        case 0:
            return read_spectrum(bytes.subspan(1));
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
            (void)estimators::method_named(words);
            return;
        case 6:
            (void)estimators::parse_estimator(words);
            return;
        default:
            (void)stream::StudySeed::parse(words);
    }
}

}  // namespace

const std::vector<FuzzTarget>& fuzz_targets() {
    static const std::vector<FuzzTarget> targets = [] {
        std::vector<FuzzTarget> all = {
            {"dump", "a KV dump and the JSON of its metadata", read_dump},
            {"tensors", "a tensor of any file, as a matrix or a cache", read_tensors},
            {"atoms", "eigenvalues from a file", read_atoms},
            {"container", "a .spkv file with valid checksums", read_container},
            {"block", "a coded block of any method", read_block},
            {"sequence", "the causal code of a head or of joined heads", read_sequence},
            {"study", "a study file (TOML)", read_study},
            {"json", "JSON text", read_json},
            {"golden", "golden vectors", read_golden},
            {"model", "config.json of a model", read_model},
            {"weights", "the index of a model's weights, or the weights", read_weights},
            {"printed", "values printed elsewhere, for --against", read_printed},
            {"spectrum", "a spectrum, as written in an option", read_spectrum},
            {"words", "spectra, laws, layouts, methods and seeds, as written in options", read_words},
        };
        for (const auto& format : sim::file_formats())
            all.push_back({format.suffix.substr(1), "a file of the format " + format.name,
                           [&format](Bytes bytes) { read_file(format, bytes); }});
        return all;
    }();
    return targets;
}

bool accepts(const FuzzTarget& target, std::span<const std::uint8_t> bytes) {
    try {
        target.read(bytes);
        return true;
    } catch (const Error& error) {
        if (error.kind() == ErrorKind::internal) throw;
        return false;
    }
}

}  // namespace spiked::app
