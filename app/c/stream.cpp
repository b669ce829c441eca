#include <cstddef>
#include <memory>
#include <optional>

#include "app/c/arrays.hpp"
#include "app/c/border.hpp"
#include "app/c/codec.hpp"
#include "estimators/caches/causal_stream.hpp"

struct spiked_stream {
    spiked_causal how;
    std::size_t dim = 0;
    std::size_t tokens = 0;                                      ///< that will come; 0: not known
    std::optional<spiked::estimators::CausalStream> coder = {};  ///< begun with the first block
    bool ended = false;                                          ///< by a block of fewer than 128 rows
    bool failed = false;  ///< within a block, so that the state may be that of a part of it
};

namespace spiked::c {
namespace {

void check_rows(const spiked_stream& stream, const spiked_matrix& rows) {
    if (rows.cols != static_cast<std::int64_t>(stream.dim))
        throw usage_error("rows has {} columns (the stream is of a codec for rows of {} entries): pass {}", rows.cols,
                          stream.dim, stream.dim);
    if (rows.rows < 1 || rows.rows > static_cast<std::int64_t>(estimators::causal_block))
        throw usage_error("rows has {} rows (a block has {}, the last one fewer): pass 1 to {}", rows.rows,
                          estimators::causal_block, estimators::causal_block);
    if (stream.failed)
        throw usage_error("stream has failed within a block (its state is not known): begin another stream");
    if (stream.ended)
        throw usage_error("stream has ended with a block of fewer than {} rows: begin another stream",
                          estimators::causal_block);
}

arma::mat next_block(spiked_stream& stream, const arma::mat& rows, double& bits) {
    if (!stream.coder) stream.coder.emplace(stream.how.method, stream.how.bits, rows, stream.how.heads, stream.tokens);
    stream.failed = true;
    arma::mat back = stream.coder->code(rows, bits);
    stream.failed = false;
    stream.ended = rows.n_rows < estimators::causal_block;
    return back;
}

}  // namespace
}  // namespace spiked::c

using namespace spiked;

extern "C" {

int spiked_stream_create(const spiked_codec* codec, int64_t tokens, spiked_stream** stream) {
    return c::guarded([&] {
        auto& made = c::required(stream, "stream");
        made = nullptr;
        const auto& of = c::required(codec, "codec");
        if (!of.causal)
            throw usage_error(
                "codec codes blocks that do not depend on each other (a stream is of causal-klt or causal-klt-joint): "
                "use spiked_codec_encode");
        made = new spiked_stream{*of.causal, of.dim, c::count_of(tokens, 0, "tokens")};
    });
}

int spiked_stream_copy(const spiked_stream* stream, spiked_stream** copy) {
    return c::guarded([&] {
        auto& made = c::required(copy, "copy");
        made = nullptr;
        made = new spiked_stream(c::required(stream, "stream"));
    });
}

void spiked_stream_free(spiked_stream* stream) { delete stream; }

int spiked_stream_append(spiked_stream* stream, const spiked_matrix* rows, const spiked_matrix* decoded, double* bits) {
    return c::computed([&] {
        auto& to = c::required(stream, "stream");
        const auto& given = c::required(rows, "rows");
        c::check_rows(to, given);
        if (decoded != nullptr) c::check_output(*decoded, given.rows, given.cols, "decoded");
        double stored = 0.0;
        const arma::mat back = c::next_block(to, c::read_matrix(rows, "rows"), stored);
        if (decoded != nullptr) c::write_matrix(*decoded, back);
        if (bits != nullptr) *bits = stored;
    });
}

}  // extern "C"
