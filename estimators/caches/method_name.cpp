#include "estimators/caches/method_name.hpp"

#include "core/runtime/error.hpp"
#include "core/text/names.hpp"
#include "estimators/caches/cache_method.hpp"
#include "estimators/caches/eviction.hpp"

namespace spiked::estimators {

MethodSpec method_named(std::string_view text, std::span<const std::string> also) {
    const std::string_view written = without_unrope(text);
    if (evictions().find(written.substr(0, written.find('+'))) != nullptr)
        throw usage_error(
            "\"{}\" evicts tokens (by the attention of queries): use spiked kv perplexity, kv retrieve or kv frontier "
            "--model, its name first",
            text);
    const std::size_t plus = written.rfind('+');
    if (plus == std::string_view::npos) {
        if (is_cache_method(written)) {
            const CacheMethod method = cache_method(text);
            throw usage_error("\"{}\" {}codes whole sequences (not a block): use spiked kv frontier or kv run{}", text,
                              method.heads_apart() ? "" : "joins heads and ",
                              method.causal() ? ", and for whole caches kv encode, kv perplexity or kv retrieve" : "");
        }
    } else if (const std::string_view front = written.substr(0, plus);
               plus + 1 < written.size() && is_cache_method(front)) {
        // If nothing follows the plus, parse_method reports the missing quantizer.
        throw usage_error(
            "\"{}\": {} codes whole sequences without a quantizer after it: write {} alone (its options: spiked list "
            "{})",
            text, front, front, parse_name(front).name);
    }
    return parse_method(text, also);
}

}  // namespace spiked::estimators
