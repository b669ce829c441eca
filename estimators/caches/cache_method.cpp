#include "estimators/caches/cache_method.hpp"

#include "core/runtime/error.hpp"
#include "estimators/caches/cache_parts.hpp"
#include "estimators/compressors/compressor.hpp"

namespace spiked::estimators {
// Each method is defined in the source file of its coder, without a header.
CacheMaker palu_cache();
CacheMaker cskv_cache();
CacheMaker ojakv_cache();
CacheMaker xkv_cache();
CacheMaker kvtc_cache();
CacheMaker causal_klt_cache();
CacheMaker causal_klt_joint_cache();

namespace {

const Registry<CacheMaker>& makers() {
    static const Registry<CacheMaker> table(
        "cache method", {palu_cache(), cskv_cache(), ojakv_cache(), xkv_cache(), kvtc_cache(), causal_klt_cache(),
                         causal_klt_joint_cache()});
    return table;
}

const CacheMaker* find_maker(std::string_view text) { return makers().find(parse_name(without_unrope(text)).name); }

}  // namespace

const std::vector<QuantizerEntry>& cache_methods() {
    static const auto entries = makers().entries<QuantizerEntry>();
    return entries;
}

bool is_cache_method(std::string_view text) { return find_maker(text) != nullptr; }

std::vector<std::string> calibrated_caches() {
    std::vector<std::string> names;
    for (const auto& maker : makers())
        if (maker.calibrated) names.push_back(maker.entry.name);
    return names;
}

std::vector<std::string> and_caches(std::vector<std::string> names) {
    for (auto& name : makers().names()) names.push_back(std::move(name));
    return names;
}

std::vector<std::string> and_causal_caches(std::vector<std::string> names) {
    for (auto& name : makers().names())
        if (cache_method(name).causal()) names.push_back(std::move(name));
    return names;
}

CacheMethod cache_method(std::string_view text) {
    const CacheMaker* maker = find_maker(text);
    if (maker == nullptr) throw precondition_error("{} is not a cache method", text);
    CacheMethod method{.text = std::string(text),
                       .unrope = without_unrope(text) != text,
                       .maker = maker,
                       .own = NameOptions(parse_name(without_unrope(text)), maker->entry.options),
                       .calibrated = maker->calibrated,
                       .derotates = maker->derotates,
                       .sides = maker->sides};
    if (method.derotates && method.unrope)
        throw usage_error(
            "\"{}\": {} takes the rotary embedding off keys itself, where the dump says what it is: leave unrope+ out",
            text, method.own.name());
    const NameOptions& own = method.own;
    if (own.takes("latents"))
        if (const std::string latents = own.choice_or_default("latents"); latents != latents_in_fp16)
            method.latents = quantizer_spec(latents);
    if (own.takes("heads")) method.heads = own.whole_or_default("heads");
    if (own.takes("layers")) method.layers = own.whole_or_default("layers");
    return method;
}

std::optional<CacheMethod> causal_cache(std::string_view text) {
    if (!is_cache_method(text)) return std::nullopt;
    CacheMethod method = cache_method(text);
    return method.causal() ? std::optional(std::move(method)) : std::nullopt;
}

void CacheMethod::check_bits(double bits) const { maker->check(*this, bits); }

std::vector<OptionSpec> cache_options(const CacheMethod& method) {
    std::vector<OptionSpec> all = method.maker->entry.options;
    if (!method.latents) return all;
    const auto& of_quantizer = method.latents->entry().options;
    all.insert(all.end(), of_quantizer.begin(), of_quantizer.end());
    return all;
}

CacheCoder cache_coder(const CacheMethod& method, std::size_t channels, double bits, const QuantizerOptions& options,
                       const arma::mat& calibration, const CacheGroup& group) {
    if (method.calibrated && calibration.n_cols != channels)
        throw precondition_error("{} channels calibrated for {}", calibration.n_cols, channels);
    return method.maker->make(method, {channels, bits, options, calibration, group});
}

}  // namespace spiked::estimators
