#include "estimators/compressors/compressor.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/runtime/error.hpp"
#include "core/text/names.hpp"
#include "estimators/coding/byte_stream.hpp"
#include "estimators/coding/fp16_entries.hpp"
#include "estimators/coding/row_norms.hpp"

namespace spiked::estimators {

const RegistryEntry& composition_entry() {
    static const RegistryEntry entry = {"ESTIMATOR+QUANTIZER",
                                        "stores the estimator's low-rank part in factors and quantizes the rest",
                                        {quantizer_option("--factor-bits"), quantizer_option("--factor-codebook"),
                                         quantizer_option("--open-loop"), quantizer_option("--norm")},
                                        "paper Algorithm 1"};
    return entry;
}

std::vector<OptionSpec> options_with_effect(const MethodSpec& method) {
    std::vector<OptionSpec> all = method.quantizer.entry().options;
    const auto& composition = composition_entry().options;
    if (method.spectral) all.insert(all.end(), composition.begin(), composition.end());
    if (method.centred) all.push_back(quantizer_option("--axis"));
    return all;
}

bool draws_random_numbers(const MethodSpec& method) { return !method.quantizer.entry().channels; }

std::vector<std::string> methods_with(std::string_view option) {
    std::vector<std::string> names = quantizers_with(option);
    if (has_option(composition_entry().options, option)) names.push_back("methods " + composition_entry().name);
    return names;
}

const std::map<std::string, std::string>& method_aliases() {
    static const std::map<std::string, std::string> aliases = {{"eoptshrinkq-mse", "eoptshrink+tq-mse"},
                                                               {"eoptshrinkq-prod", "eoptshrink+tq-prod"}};
    return aliases;
}

namespace {

/// The options of a component of a name, `whiten` or `tq-mse`; null for an unknown one.
const std::vector<OptionSpec>* options_of_component(const std::string& name) {
    const auto in = [&](const auto& entries) -> const std::vector<OptionSpec>* {
        const auto found =
            std::find_if(entries.begin(), entries.end(), [&](const auto& entry) { return entry.name == name; });
        return found == entries.end() ? nullptr : &found->options;
    };
    if (const auto* found = in(transforms())) return found;
    if (const auto* found = in(spectral_estimators())) return found;
    return in(row_quantizers());
}

/// Whether the options have the word, or the key before an equals sign.
bool has_key(const std::vector<OptionSpec>& options, const std::string& written) {
    const std::size_t equals = written.find('=');
    return std::any_of(options.begin(), options.end(), [&](const OptionSpec& option) {
        return option.key == written.substr(0, equals) &&
               (option.value.kind == ValueSpec::Kind::none) == (equals == std::string::npos);
    });
}

/// Rejects options that another component of the name takes, with the name that was probably meant where `parse`
/// accepts that.
template <class Parse>
void reject_misplaced_options(std::string_view text, const Parse& parse) {
    std::vector<std::vector<std::string>> components;
    for (const auto& part : split(text, '+')) components.push_back(split(part, ':'));
    if (components.size() > most_transforms + 2) return;
    std::string problem;
    for (auto& component : components) {
        const auto* own = options_of_component(component.front());
        if (own == nullptr) continue;
        const bool has_value = std::any_of(own->begin(), own->end(), [](const auto& one) { return one.key.empty(); });
        for (std::size_t i = 1; i < component.size(); ++i) {
            const std::string written = component[i];
            if (has_key(*own, written) || (has_value && i == 1)) continue;
            const auto taker = std::find_if(components.begin(), components.end(), [&](const auto& other) {
                const auto* options = options_of_component(other.front());
                return options != nullptr && has_key(*options, written);
            });
            if (taker == components.end()) continue;
            if (problem.empty())
                problem = fmt::format("\"{}\": {} is an option of {}, not of {}", text, written, taker->front(),
                                      component.front());
            component.erase(component.begin() + static_cast<std::ptrdiff_t>(i--));
            taker->push_back(written);
        }
    }
    if (problem.empty()) return;
    std::vector<std::string> parts;
    for (const auto& one : components) parts.push_back(fmt::format("{}", fmt::join(one, ":")));
    const std::string meant = fmt::format("{}", fmt::join(parts, "+"));
    try {
        parse(meant);
    } catch (const Error& error) {
        throw usage_error("{}, and without that {}", problem, error.what());
    }
    throw usage_error("{}: write {}", problem, meant);
}

}  // namespace

SpectralMethod parse_estimator(std::string_view text, theory::Loss loss) {
    reject_misplaced_options(text, [&](const std::string& meant) { (void)parse_estimator(meant, loss); });
    const auto pluses = static_cast<std::size_t>(std::count(text.begin(), text.end(), '+'));
    // spectral_method reports more transforms than are applied, whatever follows them.
    if (pluses <= most_transforms && is_row_quantizer(text.substr(text.rfind('+') + 1))) {
        if (pluses > 0)
            throw usage_error("\"{}\" also quantizes (an estimator does not): write {}", text,
                              text.substr(0, text.rfind('+')));
        throw usage_error("\"{}\" quantizes (an estimator is expected): see spiked list estimators", text);
    }
    return spectral_method(text, loss);
}

namespace {

/// Reports a name that is not a quantizer where one is expected, with the name that was probably meant.
[[noreturn]] void reject_quantizer(std::string_view text, const std::string& written, const std::string& front,
                                   const std::string& quantizer, std::span<const std::string> also) {
    std::vector<std::string> legal;
    for (const auto& entry : row_quantizers()) legal.push_back(entry.name);
    Aliases aliases = aliases_in(row_quantizers());
    if (!front.empty()) {
        const auto near = nearest(quantizer, legal, aliases);
        throw usage_error("unknown quantizer \"{}\" of \"{}\"{}", quantizer, text,
                          near ? fmt::format("; did you mean \"{}+{}\"?", front, *near) : suggestion("", legal));
    }
    for (const auto& [name, meaning] : method_aliases()) legal.push_back(name);
    for (const auto& entry : spectral_estimators()) {
        if (parse_name(quantizer).name == entry.name) {
            const std::string estimator = written == entry.name ? entry.example() : written;
            (void)parse_estimator(estimator);  // its own errors first
            throw usage_error("\"{0}\" only estimates (a method must also quantize): write {1}+tq-mse", text,
                              estimator);
        }
        legal.push_back(entry.example() + "+tq-mse");
    }
    for (auto& alias : aliases_in(spectral_estimators())) aliases.push_back(std::move(alias));
    legal.insert(legal.end(), also.begin(), also.end());
    throw usage_error("unknown method \"{}\"{}", text, suggestion(quantizer, legal, aliases));
}

}  // namespace

MethodSpec parse_method(std::string_view text, std::span<const std::string> also) {
    MethodSpec method;
    method.text = text;
    std::string written(without_unrope(text));
    method.unrope = written != text;
    method.centred = written.starts_with(means_prefix);
    if (method.centred) written.erase(0, means_prefix.size());
    if (method.centred && without_unrope(written) != written)
        throw usage_error("\"{}\": unrope precedes mean (means are those of de-rotated keys): write {}{}{}", text,
                          unrope_prefix, means_prefix, without_unrope(written));
    const auto alias = method_aliases().find(written);
    const std::string resolved = alias == method_aliases().end() ? written : alias->second;
    reject_misplaced_options(resolved, [&](const std::string& meant) { (void)parse_method(meant, also); });
    const std::size_t plus = resolved.rfind('+');
    const std::string quantizer = plus == std::string::npos ? resolved : resolved.substr(plus + 1);
    const std::string front = plus == std::string::npos ? "" : resolved.substr(0, plus);
    const bool lacks_estimator = !front.empty() && is_transform(split(front, '+').back());
    if (quantizer.empty()) {
        // The errors of an estimator come first.
        const std::string last = split(split(front, '+').back(), ':').front();
        if (std::ranges::any_of(spectral_estimators(), [&](const auto& entry) { return entry.name == last; }))
            (void)parse_estimator(front);
        throw usage_error("\"{0}\" names no quantizer (a method ends in one): write {0}{1}tq-mse", text,
                          lacks_estimator ? "gd-shrink+" : "");
    }
    if (is_row_quantizer(front) && !is_row_quantizer(quantizer))
        throw usage_error("\"{}\": the estimator must precede the quantizer: write {}+{}", text, quantizer, front);
    if (lacks_estimator)
        throw usage_error("\"{0}\" lacks an estimator after its transform: write {1}+gd-shrink+{2}", text, front,
                          quantizer);
    if (plus != std::string::npos) method.spectral = parse_estimator(front);
    if (!is_row_quantizer(quantizer)) reject_quantizer(text, written, front, quantizer, also);
    method.quantizer = quantizer_spec(quantizer);
    return method;
}

void reject_unrope(const MethodSpec& method) {
    if (method.unrope)
        throw usage_error(
            "\"{}\": unrope needs the positions and the rotary embedding of keys (only a dump has them): use spiked kv "
            "run or kv encode",
            method.text);
}

namespace {

/// The residual of a low-rank part or of means may be too small to be stored; the block itself must not.
QuantizerOptions for_residuals(QuantizerOptions options, bool is_residual) {
    if (is_residual) options.underflow = Underflow::allowed;
    return options;
}

/// Rejects a block that is too small. A norm that is too large is rejected where it is stored, and only if it is.
void reject_lost_block(const arma::mat& block, NumberFormat format) {
    const std::vector<double> norms = row_norms(block);
    const double largest = norms.empty() ? 1.0 : *std::max_element(norms.begin(), norms.end());
    if (largest < 1.0)
        reject_underflow(largest, format == NumberFormat::log8 ? NumberFormat::fp32 : format, "largest row norm");
}

}  // namespace

Compressor::Compressor(const MethodSpec& method, std::size_t dimension, double bits, const QuantizerOptions& options)
    : spectral_(method.spectral),
      centred_(method.centred && options.axis == GroupAxis::key),
      quantizer_(method.quantizer.make(dimension, bits, for_residuals(options, spectral_ || centred_))),
      norm_(options.norm),
      dimension_(dimension),
      bits_(bits),
      open_loop_(options.open_loop),
      factors_(factor_options(for_residuals(options, centred_))) {}

Compressor::Result Compressor::encode(AnalysedBlock& analysed) const {
    const arma::mat& block = analysed.block();
    if (spectral_) spectral_->check_room(block.n_rows, block.n_cols);
    if (spectral_ || centred_) reject_lost_block(block, norm_);
    if (!centred_ || block.n_elem == 0) return encode_rows(analysed);
    if (!block.is_finite())
        throw input_error("a row holds NaN or infinity (its column has no mean): clean the data first");
    BitWriter writer;
    arma::rowvec means = arma::mean(block, 0);
    for (double& mean : means) {
        write_half(writer, Item::zeros, mean, "mean of a column");
        mean = rounded_to_half(mean, "mean of a column");
    }
    AnalysedBlock centred(block.each_row() - means);
    Result result = encode_rows(centred);
    Encoded encoded = finished(writer);
    encoded += result.encoded;
    result.encoded = std::move(encoded);
    return result;
}

Compressor::Result Compressor::encode_rows(AnalysedBlock& analysed) const {
    const arma::mat& block = analysed.block();
    if (!spectral_) return {quantizer_.encode(block), 0};
    const LowRank signal = spectral_->factors(analysed).signal;
    BitWriter writer;
    factors_.write(writer, signal);
    const arma::mat removed =
        open_loop_ ? signal.matrix() : factors_.read(writer.bytes(), block.n_rows, block.n_cols).matrix;

    Result result{finished(writer), signal.values.n_elem};
    result.encoded += quantizer_.encode(block - removed);
    return result;
}

arma::mat Compressor::decode(std::span<const std::uint8_t> bytes, std::size_t rows) const {
    if (!centred_ || rows == 0) return decode_rows(bytes, rows);
    BitReader reader(bytes);
    arma::rowvec means(dimension_);
    for (double& mean : means) mean = read_half(reader);
    arma::mat block = decode_rows(bytes.subspan(reader.bytes_read()), rows);
    block.each_row() += means;
    return block;
}

arma::mat Compressor::decode_rows(std::span<const std::uint8_t> bytes, std::size_t rows) const {
    if (!spectral_) return quantizer_.decode(bytes, rows);
    const FactorCodec::Read stored = factors_.read(bytes, rows, dimension_);
    return stored.matrix + quantizer_.decode(bytes.subspan(stored.bytes), rows);
}

double Compressor::paper_bits(std::size_t rank, std::size_t rows) const {
    const double n = static_cast<double>(rows);
    const double d = static_cast<double>(dimension_);
    return bits_ + static_cast<double>(rank) * (n + d) * factors_.entry_bits() / (n * d);
}

}  // namespace spiked::estimators
