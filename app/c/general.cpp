#include "app/c/arrays.hpp"
#include "app/c/border.hpp"
#include "core/text/json.hpp"
#include "core/text/option_schema.hpp"
#include "core/text/registry.hpp"
#include "estimators/caches/cache_method.hpp"
#include "estimators/coding/ledger.hpp"
#include "estimators/compressors/compressor.hpp"
#include "estimators/pca/covariance_loss.hpp"
#include "estimators/quantizers/quantizer_table.hpp"
#include "estimators/spectral/spectral_estimator.hpp"
#include "estimators/transforms/transform.hpp"
#include "sim/spiked/covariance_kinds.hpp"

namespace spiked::c {
namespace {

Json described_entry(const RegistryEntry& entry, const std::string& form) {
    return Json::object({{"name", entry.name},
                         {"form", form},
                         {"summary", entry.summary},
                         {"source", entry.source},
                         {"aliases", entry.aliases},
                         {"options", option_schema(entry.options)}});
}

Json estimators_listed() {
    Json list = Json::array();
    for (const auto& entry : estimators::spectral_estimators()) list.push(described_entry(entry, written_form(entry)));
    return list;
}

Json transforms_listed() {
    Json list = Json::array();
    for (const auto& entry : estimators::transforms()) list.push(described_entry(entry, entry.name + "+NAME"));
    return list;
}

Json coders_listed(const std::vector<estimators::QuantizerEntry>& entries) {
    Json list = Json::array();
    for (const auto& entry : entries) {
        Json widths = Json::array();
        for (const unsigned width : entry.widths) widths.push(static_cast<int>(width));
        list.push(described_entry(entry, written_form(entry))
                      .set("bits_mean", entry.bits_mean)
                      .set("bits", std::move(widths))
                      .set("fractions", entry.fractions));
    }
    return list;
}

Json quantizers_listed() { return coders_listed(estimators::row_quantizers()); }
Json caches_listed() { return coders_listed(estimators::cache_methods()); }

Json spectra_listed() {
    Json list = Json::array();
    for (const auto& kind : sim::covariance_kinds()) list.push(described_entry(kind.entry, kind.spec_form()));
    return list;
}

Json pca_losses_listed() {
    Json list = Json::array();
    for (const auto& loss : estimators::covariance_losses()) list.push(described_entry(loss.entry, loss.entry.name));
    return list;
}

struct ListedTopic {
    RegistryEntry entry;
    Json (*list)();
};

const Registry<ListedTopic>& listed_topics() {
    static const Registry<ListedTopic> topics("topic", {{{"estimators", ""}, estimators_listed},
                                                        {{"transforms", ""}, transforms_listed},
                                                        {{"quantizers", ""}, quantizers_listed},
                                                        {{"caches", ""}, caches_listed},
                                                        {{"spectra", ""}, spectra_listed},
                                                        {{"pca-losses", ""}, pca_losses_listed}});
    return topics;
}

}  // namespace
}  // namespace spiked::c

using namespace spiked;

extern "C" {

const char* spiked_version(void) { return SPIKED_VERSION; }

int spiked_abi_version(void) { return SPIKED_ABI_VERSION; }

int spiked_list(const char* topic, char* text, size_t capacity, size_t* length) {
    return c::guarded([&] {
        auto& needed = c::required(length, "length");
        const std::string list = c::listed_topics().named(c::required_array(topic, "topic")).list().text();
        needed = list.size();
        if (capacity <= needed)
            throw c::BufferTooSmall{
                fmt::format("text has room for {} bytes (the list has {} and an ending zero): pass "
                            "a larger one",
                            capacity, needed)};
        c::write_cut(c::required_array(text, "text"), capacity, list);
    });
}

const char* spiked_ledger_item(int64_t item) {
    constexpr auto& items = EnumNames<estimators::Item>::table;
    static_assert(std::size(items) == SPIKED_LEDGER_ITEMS);
    // The names are literals, which end with a zero.
    return item >= 0 && item < SPIKED_LEDGER_ITEMS ? items[item].name.data() : nullptr;
}

}  // extern "C"
