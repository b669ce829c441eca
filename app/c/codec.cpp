#include "app/c/codec.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <span>
#include <string>

#include "app/c/arrays.hpp"
#include "app/c/border.hpp"
#include "core/text/names.hpp"
#include "estimators/caches/method_name.hpp"
#include "estimators/causal/causal_codec.hpp"
#include "sim/random/address.hpp"

namespace spiked::c {
namespace {

using estimators::MethodSpec;
using estimators::QuantizerOptions;

Json value_of_option(const OptionSpec& option, const std::string& key, const std::string& value) {
    if (option.value.kind == ValueSpec::Kind::none) {
        if (value != "true" && value != "false")
            throw usage_error("options: {}={} (it is true or false): write {}=true", key, value, key);
        return value == "true";
    }
    require_accepted(option, value, "options: ");
    if (option.value.kind == ValueSpec::Kind::whole) return to_integer(value).value();
    return value;
}

void set_from_text(QuantizerOptions& options, const MethodSpec& method, const std::string& key,
                   const std::string& value) {
    if (key == "seed") {
        options.seed = stream::StudySeed::parse(value);
        return;
    }
    if (key == "index") {
        const auto index = to_integer(value);
        if (!index || *index < 0)
            throw usage_error("options: index={} is no whole number from 0 on: write for example index=1", value);
        options.rotation_index = static_cast<std::uint64_t>(*index);
        return;
    }
    std::vector<std::string> known = {"seed", "index"};
    for (const auto& spec : estimators::quantizer_option_specs()) {
        known.push_back(spec.key.substr(2));  // without its dashes
        if (known.back() != key) continue;
        if (!has_option(estimators::options_with_effect(method), spec.key) &&
            (spec.neutral.empty() || value != spec.neutral))
            throw usage_error("options: {} has no effect on {} (it applies to {}): leave it out", key, method.text,
                              fmt::join(estimators::methods_with(spec.key), ", "));
        estimators::set_option(options, spec.key, value_of_option(spec, key, value));
        return;
    }
    throw usage_error("options: unknown option \"{}\"{}", key, suggestion(key, known));
}

/// Options as `key=value key=value`; commas separate them too, and keys may have underscores for dashes.
std::map<std::string, std::string> values_by_key(std::string text) {
    std::replace(text.begin(), text.end(), ',', ' ');
    std::map<std::string, std::string> given;
    for (const auto& part : split(text, ' ')) {
        if (part.empty()) continue;
        const std::size_t sign = part.find('=');
        if (sign == std::string::npos) throw usage_error("options: \"{}\" has no value: write {}=VALUE", part, part);
        std::string key = part.substr(0, sign);
        std::replace(key.begin(), key.end(), '_', '-');
        if (!given.emplace(key, part.substr(sign + 1)).second)
            throw usage_error("options: {} is given twice (one value counts): leave one out", key);
    }
    return given;
}

QuantizerOptions parse_codec_options(const std::string& text, const MethodSpec& method) {
    QuantizerOptions options;
    options.seed = stream::StudySeed::parse("0x5eed");
    const auto given = values_by_key(text);
    for (const auto& [key, value] : given) set_from_text(options, method, key, value);
    if (method.centred && !given.contains("axis"))
        throw usage_error(
            "options: \"{}\" stores means of the columns of keys: write axis=key, or axis=value for values, whose "
            "means are not stored",
            method.text);
    return options;
}

/// The heads of which the columns of a sequence are: `keys` in front, then `values`.
estimators::CacheGroup heads_of_columns(const estimators::CacheMethod& method, const std::string& text,
                                        std::size_t dimension) {
    if (dimension > estimators::most_causal_columns)
        throw usage_error("dim is {} (\"{}\" codes at most {} columns): code fewer heads together", dimension,
                          method.text, estimators::most_causal_columns);
    std::map<std::string, std::size_t> heads = {{"keys", 0}, {"values", 0}};
    for (const auto& [key, value] : values_by_key(text)) {
        if (!heads.contains(key))
            throw usage_error(
                "options: {} has no effect on {} (it takes keys and values, the numbers of heads): leave it out", key,
                method.text);
        const auto number = to_integer(value);
        if (!number || *number < 0)
            throw usage_error("options: {}={} is no whole number from 0 on: write for example {}=2", key, value, key);
        heads[key] = static_cast<std::size_t>(*number);
    }
    if (heads["keys"] + heads["values"] == 0) heads["values"] = 1;
    const std::size_t all = heads["keys"] + heads["values"];
    if (dimension % all != 0 || (heads["keys"] > 0 && (dimension / all) % 2 != 0))
        throw usage_error(
            "dim is {} (of {} heads of keys and {} of values, of one width that is even where there are keys): give "
            "keys and values in options, or another dim",
            dimension, heads["keys"], heads["values"]);
    if (method.sides && all == 1)
        throw usage_error(
            "\"{}\" joins keys and values, and no heads are given: write keys=1 values=1 in options, or use causal-klt",
            method.text);
    return {heads["keys"], heads["values"], {}};
}

}  // namespace

spiked_code code_of(const spiked_codec& codec, const estimators::Compressor::Result& coded, std::size_t rows) {
    spiked_code code{};
    const double entries = static_cast<double>(rows) * static_cast<double>(codec.dim);
    const auto ledger = coded.encoded.ledger.per_entry(entries);
    std::copy(ledger.begin(), ledger.end(), std::begin(code.ledger));
    code.bits_per_entry = static_cast<double>(coded.encoded.ledger.total()) / entries;
    constexpr double none = std::numeric_limits<double>::quiet_NaN();
    code.paper_bits = codec.compressor ? codec.compressor->paper_bits(coded.rank, rows) : none;
    code.relative_l2 = none;
    code.bytes = static_cast<std::int64_t>(coded.encoded.bytes.size());
    code.rank = static_cast<std::int64_t>(coded.rank);
    return code;
}

void check_width(const spiked_codec& codec, std::int64_t columns, const char* name) {
    if (columns != static_cast<std::int64_t>(codec.dim))
        throw usage_error("{} has {} columns (the codec is for rows of {} entries): make a codec with dim = {}", name,
                          columns, codec.dim, columns);
}

}  // namespace spiked::c

using namespace spiked;

extern "C" {

int spiked_codec_create(const char* method, int64_t dim, double bits, const char* options, spiked_codec** codec) {
    return c::computed([&] {
        auto& made = c::required(codec, "codec");
        made = nullptr;
        const char* name = c::required_array(method, "method");
        const char* text = options == nullptr ? "" : options;
        const std::size_t dimension = c::count_of(dim, 1, "dim");
        if (const auto causal = estimators::causal_cache(name)) {
            const auto heads = c::heads_of_columns(*causal, text, dimension);
            causal->check_bits(bits);
            made = new spiked_codec{std::nullopt, estimators::cache_coder(*causal, dimension, bits, {}, {}, heads),
                                    dimension, spiked_causal{*causal, bits, heads}};
            return;
        }
        const auto spec = estimators::method_named(name, estimators::and_causal_caches());
        estimators::reject_unrope(spec);
        const auto settings = c::parse_codec_options(text, spec);
        spec.quantizer.check_bits(bits);
        made = new spiked_codec{estimators::Compressor(spec, dimension, bits, settings), std::nullopt, dimension};
    });
}

void spiked_codec_free(spiked_codec* codec) { delete codec; }

int spiked_codec_encode(const spiked_codec* codec, const spiked_matrix* block, uint8_t* bytes, size_t capacity,
                        size_t* length, spiked_code* code) {
    return c::computed([&] {
        const auto& with = c::required(codec, "codec");
        auto& needed = c::required(length, "length");
        c::check_width(with, c::required(block, "block").cols, "block");
        estimators::AnalysedBlock read(c::read_matrix(block, "block"));
        const auto coded = with.encode(read);
        needed = coded.encoded.bytes.size();
        if (code != nullptr) *code = c::code_of(with, coded, read.block().n_rows);
        if (capacity < needed)
            throw c::BufferTooSmall{
                fmt::format("bytes has room for {} (the code has {}): pass a larger one", capacity, needed)};
        if (needed > 0) std::memcpy(c::required_array(bytes, "bytes"), coded.encoded.bytes.data(), needed);
    });
}

int spiked_codec_decode(const spiked_codec* codec, const uint8_t* bytes, size_t length, const spiked_matrix* decoded) {
    return c::computed([&] {
        const auto& with = c::required(codec, "codec");
        const auto& to = c::required(decoded, "decoded");
        c::check_width(with, to.cols, "decoded");
        c::check_output(to, to.rows, to.cols, "decoded");
        const std::span<const std::uint8_t> code(length > 0 ? c::required_array(bytes, "bytes") : nullptr, length);
        c::write_matrix(to, with.decode(code, static_cast<std::size_t>(to.rows)));
    });
}

}  // extern "C"
