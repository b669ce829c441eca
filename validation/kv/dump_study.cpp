#include "validation/kv/dump_study.hpp"

namespace spiked::validation {

using sim::Side;

estimators::HeadCodec head_codec(const DumpStudy& study, const StudiedHead& at, std::size_t method) {
    const auto& codec = study.codecs[method];
    estimators::QuantizerOptions options = study.plan.quantizer;
    options.rotation_index = at.rotation;
    options.axis = at.tensor->side == Side::key ? estimators::GroupAxis::key : estimators::GroupAxis::value;
    return spiked::located(
        [&] { return fmt::format("{}: tensor {}", study.open.dumps[at.dump]->path(), at.tensor->name); },
        [&] {
            return estimators::HeadCodec(codec.first, at.tensor->dim, codec.second, options, at.tensor->tokens,
                                         study.plan.block_tokens);
        });
}

arma::mat read_block(const DumpStudy& study, const StudiedHead& at, std::uint64_t block) {
    const std::size_t tokens = study.plan.block_tokens;
    return at.blocks->read_block(block * tokens, tokens);
}

const std::optional<sim::DumpRotary>& rotary_of(const DumpStudy& study, const StudiedHead& at) {
    static const std::optional<sim::DumpRotary> none;
    return at.tensor->side == Side::key ? study.rotaries[at.dump] : none;
}

arma::mat derotated(const DumpStudy& study, const sim::DumpRotary& rotary, const arma::mat& rows, std::uint64_t block) {
    const double first = static_cast<double>(block * study.plan.block_tokens);
    return sim::undo_rope(rows, rotary.rope, rotary.position_start + first);
}
arma::mat rotated(const DumpStudy& study, const sim::DumpRotary& rotary, const arma::mat& rows, std::uint64_t block) {
    const double first = static_cast<double>(block * study.plan.block_tokens);
    return sim::apply_rope(rows, rotary.rope, rotary.position_start + first);
}

std::vector<arma::mat> read_queries(const DumpStudy& study, const StudiedHead& at, std::size_t first,
                                    std::size_t tokens) {
    const std::size_t readers = at.queries->heads / at.tensor->heads;
    std::vector<arma::mat> queries;
    for (std::size_t q = 0; q < readers; ++q)
        queries.push_back(study.open.dumps[at.dump]->read_block(*at.queries, at.head * readers + q, first, tokens));
    return queries;
}

void find_rotaries(DumpStudy& study) {
    study.rotaries.resize(study.open.dumps.size());
    const auto& codecs = study.codecs;
    const auto unropes = [](const auto& codec) { return codec.first.unrope; };
    const auto first_unrope = std::find_if(codecs.begin(), codecs.end(), unropes);
    if (first_unrope == codecs.end() || study.plan.side == Side::value) return;
    if (study.plan.view.undo_rotary || study.plan.view.shuffle)
        throw usage_error(
            "\"{}\": keys that a study shuffles or de-rotates (order, rotary of [model]) have no rotary embedding to "
            "undo: leave unrope or these out",
            first_unrope->first.text);
    for (std::size_t f = 0; f < study.open.dumps.size(); ++f) {
        const auto& tensors = study.open.dumps[f]->tensors();
        if (std::any_of(tensors.begin(), tensors.end(), [](const auto& tensor) { return tensor.side == Side::key; }))
            study.rotaries[f] = sim::dump_rotary(*study.open.dumps[f]);
    }
}

}  // namespace spiked::validation
