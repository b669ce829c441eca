#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "app/c/arrays.hpp"
#include "app/c/border.hpp"
#include "app/c/codec.hpp"
#include "core/runtime/parallel.hpp"
#include "core/runtime/stop_point.hpp"
#include "estimators/compressors/relative_error.hpp"
#include "estimators/svd/batch_decomposition.hpp"

namespace spiked::c {
namespace {

using Poll = std::function<bool()>;

/// Runs work(stop) on another thread, and `poll` here every 50 ms until the work ends; when it returns true, `stop` is
/// set and the work ends early.
void polled(const Poll& poll, const std::function<void(const std::atomic<bool>&)>& work) {
    std::atomic<bool> stop{poll && poll()};
    if (!poll || stop) return work(stop);
    std::mutex guard;
    std::condition_variable ended;
    bool done = false;
    std::exception_ptr failure;
    const auto run = [&] {
        try {
            work(stop);
        } catch (...) {
            failure = std::current_exception();
        }
        const std::lock_guard lock(guard);
        done = true;
        ended.notify_one();
    };
    {
        std::jthread worker;
        try {
            worker = std::jthread(run);
        } catch (const std::system_error&) {
            return work(stop);  // the machine starts no thread: nothing can be asked
        }
        std::unique_lock lock(guard);
        while (!ended.wait_for(lock, std::chrono::milliseconds(50), [&] { return done; })) {
            lock.unlock();
            if (!stop && poll()) stop = true;
            lock.lock();
        }
    }
    if (failure) std::rethrow_exception(failure);
}

/// Runs the work; errors that it throws name the block.
template <class Work>
auto located_at(std::size_t block, const Work& work) {
    return located([&] { return fmt::format("block {}", block); }, work);
}

/// A call of spiked_roundtrip whose arguments have been checked.
struct Roundtrip {
    std::vector<const spiked_codec*> codecs;
    const spiked_blocks& blocks;
    const spiked_blocks* decoded;
    spiked_code* codes;

    /// Codes blocks first, .., first + count - 1, whose decompositions share their work.
    void run(std::size_t first, std::size_t count) const {
        std::vector<arma::mat> read;
        for (std::size_t b = first; b < first + count; ++b)
            read.push_back(located_at(b, [&] {
                const spiked_matrix block = block_of(blocks, static_cast<std::int64_t>(b));
                return read_matrix(&block, "its entries");
            }));
        auto analysed = estimators::AnalysedBlock::as_batch(std::move(read));
        for (std::size_t i = 0; i < count; ++i)
            for (std::size_t c = 0; c < codecs.size(); ++c)
                located_at(first + i, [&] { code(c, first + i, analysed[i]); });
    }

private:
    void code(std::size_t c, std::size_t b, estimators::AnalysedBlock& block) const {
        const spiked_codec& codec = *codecs[c];
        const std::size_t rows = block.block().n_rows;
        const auto coded = codec.encode(block);
        const arma::mat back = codec.decode(coded.encoded.bytes, rows);
        const std::size_t place = c * static_cast<std::size_t>(blocks.count) + b;
        if (codes != nullptr) {
            codes[place] = code_of(codec, coded, rows);
            codes[place].relative_l2 = estimators::relative_l2(block.block(), back);
        }
        if (decoded != nullptr) write_matrix(block_of(*decoded, static_cast<std::int64_t>(place)), back);
    }
};

Roundtrip checked_roundtrip(const spiked_codec* const* codecs, std::int64_t codecs_count, const spiked_blocks* blocks,
                            const spiked_blocks* decoded, spiked_code* codes) {
    const std::size_t count = count_of(codecs_count, 1, "codecs_count");
    (void)required_array(codecs, "codecs");
    const spiked_blocks& given = required(blocks, "blocks");
    Roundtrip call{{}, given, decoded, codes};
    for (std::size_t c = 0; c < count; ++c) {
        check_width(required(codecs[c], "an entry of codecs"), given.first.cols, "blocks");
        call.codecs.push_back(codecs[c]);
    }
    const std::size_t block_count = count_of(given.count, 1, "blocks->count");
    (void)required(static_cast<const char*>(given.first.data), "blocks->first.data");  // others begin behind it
    if (decoded == nullptr) return call;
    check_output(decoded->first, given.first.rows, given.first.cols, "decoded");
    std::int64_t places = 0;
    if (__builtin_mul_overflow(count, block_count, &places) || decoded->count != places)
        throw usage_error("decoded has {} matrices ({} codecs times {} blocks are needed): set its count",
                          decoded->count, count, block_count);
    if (places > 1 && decoded->block_stride == 0)
        throw usage_error("decoded: a block_stride of 0 (its matrices would overlap): set it");
    return call;
}

}  // namespace
}  // namespace spiked::c

using namespace spiked;

extern "C" int spiked_roundtrip(const spiked_codec* const* codecs, int64_t codecs_count, const spiked_blocks* blocks,
                                int64_t threads, int (*poll)(void*), void* poll_data, const spiked_blocks* decoded,
                                spiked_code* codes) {
    return c::computed([&] {
        const c::Roundtrip call = c::checked_roundtrip(codecs, codecs_count, blocks, decoded, codes);
        const std::size_t workers = thread_count(c::count_of(threads, 0, "threads"));
        const auto count = static_cast<std::size_t>(blocks->count);
        const std::size_t batch =
            std::clamp<std::size_t>((count - 1) / workers + 1, 1, estimators::BatchDecomposition<double>::lanes);
        const auto either = [&] { return stop_asked() || (poll != nullptr && poll(poll_data) != 0); };
        const c::Poll ask = poll != nullptr || may_be_stopped() ? c::Poll(either) : c::Poll();
        c::polled(ask, [&](const std::atomic<bool>& stop) {
            for_each_parallel((count - 1) / batch + 1, workers, [&](std::size_t i) {
                const StopScope scope(stop);
                stop_point();
                call.run(i * batch, std::min(batch, count - i * batch));
            });
        });
    });
}
