#include "estimators/caches/method_name.hpp"

#include <algorithm>

#include "core/runtime/error.hpp"
#include "core/text/names.hpp"
#include "estimators/caches/cache_method.hpp"
#include "estimators/caches/eviction.hpp"

namespace spiked::estimators {

Method method_named(std::string_view text, std::span<const std::string> also) {
    const std::string_view typed = text.starts_with(unrope_prefix) ? text.substr(unrope_prefix.size()) : text;
    const auto evicts = [&](const Eviction& entry) { return entry.name == typed.substr(0, typed.find('+')); };
    if (std::any_of(evictions().begin(), evictions().end(), evicts))
        throw usage_error(
            "\"{}\" evicts tokens (by the attention of queries): use spiked kv perplexity, kv retrieve or kv frontier "
            "--model, its name first",
            text);
    const std::size_t plus = typed.rfind('+');
    if (plus == std::string_view::npos) {
        if (is_cache_method(typed))
            throw usage_error(
                "\"{}\" joins heads and codes whole sequences (not a block): use spiked kv frontier or kv run", text);
    } else if (const std::string_view front = typed.substr(0, plus);
               plus + 1 < typed.size() && is_cache_method(front)) {
        // Where nothing follows the plus, parse_method says that a quantizer is missing.
        throw usage_error(
            "\"{}\": {} codes whole sequences and ends there: write {} alone (its options: spiked list {})", text,
            front, front, parse_name(front).name);
    }
    return parse_method(text, also);
}

}  // namespace spiked::estimators
