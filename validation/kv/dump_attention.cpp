#include "validation/kv/dump_attention.hpp"

#include "codec/cache/head_rotation.hpp"
#include "core/text/printable.hpp"

namespace spiked::validation {
namespace {

using sim::Side;

/// The whole sequence of a head, to be coded by any codec.
class Sequence {
public:
    Sequence(const DumpStudy& study, const StudiedHead& at) : study_(study), at_(at), rotary_(rotary_of(study, at)) {
        rows_ = study.open.dumps[at.dump]->read_block(*at.tensor, at.head, 0, at.tensor->tokens);
        std::vector<arma::mat> blocks;
        const std::size_t tokens = study.plan.block_tokens;
        for (std::size_t first = 0; first + tokens <= rows_.n_rows; first += tokens)
            blocks.push_back(rows_.rows(first, first + tokens - 1));
        const auto as_batch = [&](std::vector<arma::mat> rows) {
            return estimators::AnalysedBlock::as_batch(std::move(rows), estimators::AnalysedBlock::EmptyLines::strip,
                                                       study.plan.precision);
        };
        if (rotary_) {
            std::vector<arma::mat> derotated_blocks;
            for (std::size_t b = 0; b < blocks.size(); ++b)
                derotated_blocks.push_back(derotated(study, *rotary_, blocks[b], b));
            derotated_blocks_ = as_batch(std::move(derotated_blocks));
        }
        blocks_ = as_batch(std::move(blocks));
    }

    [[nodiscard]] const arma::mat& rows() const { return rows_; }
    /// The sequence as `kv encode` and `kv decode` return it; tokens after the last full block are stored in fp16.
    [[nodiscard]] arma::mat decoded(const estimators::HeadCodec& codec, bool unrope) {
        arma::mat back = rows_;
        const std::size_t tokens = study_.plan.block_tokens;
        for (std::size_t b = 0; b < blocks_.size(); ++b)
            located(study_, at_, b, [&] {
                const bool undoes_rope = unrope && rotary_;
                const auto encoded = codec.of(b).encode(undoes_rope ? derotated_blocks_[b] : blocks_[b]).encoded;
                arma::mat block = codec.of(b).decode(encoded.bytes, tokens);
                if (undoes_rope) block = rotated(study_, *rotary_, block, b);
                back.rows(b * tokens, (b + 1) * tokens - 1) = block;
            });
        const std::size_t coded = blocks_.size() * tokens;
        if (const std::size_t left = back.n_rows - coded; left > 0)
            located(study_, at_, blocks_.size(), [&] {
                const auto kept = estimators::keep_rows(rows_.tail_rows(left));
                back.tail_rows(left) = estimators::kept_rows(kept.bytes, left, back.n_cols);
            });
        return back;
    }

private:
    const DumpStudy& study_;
    const StudiedHead& at_;
    arma::mat rows_;
    const std::optional<sim::DumpRotary>& rotary_;
    std::vector<estimators::AnalysedBlock> blocks_;
    std::vector<estimators::AnalysedBlock> derotated_blocks_;  ///< with RoPE undone, if a codec needs them
};

/// Why the dumped queries cannot be used for a head; empty if they can.
std::string queries_unusable_reason(const sim::KvDump& dump, const StudiedHead& at) {
    const std::size_t layer = at.tensor->layer;
    if (dump.find(layer, Side::query) == nullptr) return fmt::format("layer {} has no queries", layer);
    if (dump.find(layer, Side::key) == nullptr) return fmt::format("layer {} has no keys", layer);
    return queries_mismatch(dump, layer);
}

}  // namespace

std::vector<std::vector<Observation>> measure_attention(const DumpStudy& study, const StudiedHead& at,
                                                        ReplicateRange range) {
    const sim::KvDump& dump = *study.open.dumps[at.dump];
    const bool is_key = at.tensor->side == Side::key;
    StudiedHead peer = at;
    peer.tensor = dump.find(at.tensor->layer, is_key ? Side::value : Side::key);
    peer.rotation = codec::rotation_of(
        codec::head_identity(study.open.sha256[at.dump], peer.tensor->name, peer.head, study.plan.block_tokens));
    Sequence own(study, at);
    Sequence other(study, peer);
    const AttentionHead exact{is_key ? own.rows() : other.rows(), is_key ? other.rows() : own.rows(),
                              read_queries(study, at, 0, at.tensor->tokens), at.attention == AttentionMode::causal};
    std::vector<std::vector<Observation>> found(range.count);
    const auto decoded = [&](std::size_t m, Sequence& sequence, const StudiedHead& of) -> arma::mat {
        if (m < study.codecs.size()) return sequence.decoded(head_codec(study, of, m), study.codecs[m].first.unrope);
        return arma::conv_to<arma::mat>::from(
            study.caches[m - study.codecs.size()]->of(dump, *of.tensor, of.head).rows);
    };
    for (std::size_t m = 0; m < study.codecs.size() + study.caches.size(); ++m) {
        const arma::mat coded = decoded(m, own, at);
        const arma::mat coded_values = is_key ? decoded(m, other, peer) : coded;
        std::vector<const arma::mat*> values = {&coded_values};
        if (is_key) values.insert(values.begin(), &exact.values);
        for (std::uint64_t b = 0; b < range.count; ++b) {
            const std::size_t tokens = study.plan.block_tokens;
            const HeadAttention attention{attention_errors(exact, is_key ? coded : exact.keys, values,
                                                           query_tokens((range.first + b) * tokens, tokens)),
                                          is_key};
            observe(&MetricMeasures::attention, attention, m + 1, found[b]);
        }
    }
    return found;
}

std::vector<std::string> find_queries(DumpStudy& study) {
    std::vector<std::string> notes;
    const auto& requested = study.plan.attention;
    const bool has_view = study.plan.view.shuffle || study.plan.view.undo_rotary;
    const bool wanted = requested && *requested != AttentionMode::none;
    if (has_view && wanted)
        throw usage_error(
            "attention cannot be measured in another order of the tokens or without the rotary embedding: leave "
            "attention, or order and rotary, out");
    if (has_view) return notes;
    for (StudiedHead& at : study.heads) {
        const sim::KvDump& dump = *study.open.dumps[at.dump];
        const auto stated = stated_attention(dump.metadata());
        if (wanted && stated && *stated != *requested)
            throw usage_error("{}: its metadata say attention \"{}\" (not the requested one): leave --attention out",
                              dump.path(), *dump.metadata("attention"));
        std::string reason = queries_unusable_reason(dump, at);
        if (reason.empty()) at.queries = dump.find(at.tensor->layer, Side::query);
        if (reason.empty() && dump.find(at.tensor->layer, Side::value) == nullptr)
            reason = fmt::format("layer {} has no values", at.tensor->layer);
        if (reason.empty() && requested != AttentionMode::none) at.attention = stated ? stated : requested;
        if (wanted && !reason.empty())
            throw input_error(
                "{}: attention cannot be measured ({}): dump keys, values and queries together, or leave --attention "
                "out",
                dump.path(), reason);
        const auto add = [&](std::string note) {
            if (std::find(notes.begin(), notes.end(), note) == notes.end()) notes.push_back(std::move(note));
        };
        if (const std::string mismatch = queries_mismatch(dump, at.tensor->layer); !mismatch.empty())
            add(fmt::format("{}: queries are not used ({})", dump.path(), mismatch));
        if (!reason.empty() || requested || stated) continue;
        const auto value = dump.metadata("attention");
        add(fmt::format(
            "{}: attention is not measured (its metadata {}): say --attention causal, bidirectional or none",
            dump.path(),
            value ? fmt::format("say {}, which is neither causal nor bidirectional", in_quotes(*value))
                  : "do not say which keys a query sees"));
    }
    return notes;
}

}  // namespace spiked::validation
