#pragma once
#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sim/io/tensor_container.hpp"
#include "sim/kv/cache_layout.hpp"

namespace spiked::sim {

/// The names of the tensors of a dump of our own.
inline constexpr const char* default_pattern = "layers.{layer}.{side}";

/// What a byte of a cache stands for where its tensor only says that it holds bytes.
enum class CodeType { e4m3, e5m2, int8 };

/// How to read a dump. An option that is empty is taken from the metadata of the file with the same key (`format`,
/// `pattern`, `layout`, `head_dim`, `block_table`, `tokens` where it is a range, `skip_empty`, `scale`, `zero_point`,
/// `codes`).
struct DumpOptions {
    std::string layout;          ///< text for parse_side_layouts
    std::string tensor_pattern;  ///< a NamePattern; empty: those of the format, or layers.{layer}.{side}
    std::string prompt_id_key = "prompt_id";
    std::string format;        ///< one of dump_formats()
    std::string tokens;        ///< FIRST:LAST as in Python, either may be missing; the others are left out
    bool skip_empty = false;   ///< leave out tokens that are zero in every head of their layer
    std::size_t head_dim = 0;  ///< channels of a head, where an axis counts `hidden`
    std::string block_table;   ///< the pages of a paged cache in the order of the tokens, `3,1,7`
    std::string scale;         ///< of codes (FP8, int8): a number, or a NamePattern of tensors; empty: 1, for FP8 only
    std::string zero_point;    ///< the code of the number 0, likewise
    std::string codes;         ///< the name of a CodeType, of tensors of U8 and I8
    std::optional<std::size_t> batch;  ///< the sequence to read of a dump that holds several
    bool any_sequence = false;         ///< read the first of several; else `batch` is needed there
    std::set<std::size_t> layers;      ///< where one of them has tensors of its own, the others are left out
    std::optional<Side> side;          ///< the layout of others need not be stated; they are left out then
};

/// The first and the end of a token range such as `4:1020`, `:100` or `-8:`, of so many tokens. Throws usage_error.
struct TokenRange {
    std::size_t first = 0;
    std::size_t end = 0;
};
[[nodiscard]] TokenRange token_range(const std::string& text, std::size_t tokens);
/// Pages from 0, each once, separated by commas or blanks, in brackets or not. Empty for other texts.
[[nodiscard]] std::optional<std::vector<std::size_t>> parse_block_table(std::string text);
/// Throws usage_error for options that no file makes legal.
void check_options(const DumpOptions& options);
/// The number of tokens that the metadata state; empty when they do not.
[[nodiscard]] std::optional<std::size_t> stated_tokens(const Metadata& metadata);

/// A pattern that names of tensors follow, with {side} where they have a word for keys and values and {layer} and
/// {head} where they have numbers; empty without one.
[[nodiscard]] std::string guessed_pattern(const TensorContainer& file);
/// What to give where no tensor has the names of a format: this pattern, or an example where it is empty.
[[nodiscard]] std::string pattern_advice(const std::string& guess);

/// The names of the formats that names of tensors and the shape of the first of them fit; none where the names are
/// ours.
[[nodiscard]] std::vector<std::string> possible_formats(const TensorContainer& file);

}  // namespace spiked::sim

template <>
struct spiked::EnumNames<spiked::sim::CodeType> {
    static constexpr EnumName<spiked::sim::CodeType> table[] = {
        {spiked::sim::CodeType::e4m3, "e4m3", "fp8"},
        {spiked::sim::CodeType::e5m2, "e5m2", "fp8_e5m2"},
        {spiked::sim::CodeType::int8, "int8", "i8"},
    };
};
