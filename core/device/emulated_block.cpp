#include "core/device/emulated_block.hpp"

#include <boost/context/fiber.hpp>
#include <boost/context/pooled_fixedsize_stack.hpp>
#include <boost/context/preallocated.hpp>
#include <cmath>
#include <exception>
#include <string>
#include <vector>

#include "core/device/global_watch.hpp"
#include "core/runtime/error.hpp"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace spiked::cuda {
namespace {

/// Announce to the address sanitizer a switch to another stack, and its completion. `kept` is the sanitizer's own
/// state.
void leave_for([[maybe_unused]] void** kept, [[maybe_unused]] const void* bottom, [[maybe_unused]] std::size_t size) {
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_start_switch_fiber(kept, bottom, size);
#endif
}
void arrive([[maybe_unused]] void* kept, [[maybe_unused]] const void** from, [[maybe_unused]] std::size_t* size) {
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_finish_switch_fiber(kept, from, size);
#endif
}

/// Clears the address sanitizer's marks on a reused stack, since the previous fibre never returned from its first
/// frame.
void forget_frames([[maybe_unused]] const void* bottom, [[maybe_unused]] std::size_t size) {
#ifdef __SANITIZE_ADDRESS__
    __asan_unpoison_memory_region(bottom, size);
#endif
}

using boost::context::fiber;

constexpr std::size_t stack_bytes = std::size_t{1} << 17;
/// Accesses to shared memory are recorded per word of this many bytes.
constexpr std::size_t word_bytes = 4;

enum class Waiting : std::uint8_t { no, at_barrier, in_warp, ended };

std::string line_of(const SourceLine& where) {
    const std::string file = where.file;
    return fmt::format("{}:{}", file.substr(file.rfind('/') + 1), where.line);
}

/// Thrown to end a fibre whose block has failed.
struct Stopped {};

/// An access of a thread to shared memory: after which barriers of the block and of its warp it happened.
struct Access {
    std::uint32_t interval = 0;  ///< 0: never
    std::uint32_t warp_interval = 0;
    std::uint32_t thread = 0;
};

/// The last accesses to one word of shared memory: the last write, the last read, and an earlier read (by another warp,
/// if there was one).
struct SharedWord {
    bool initialized = false;
    Access written, read, also_read;
};

}  // namespace

class EmulatedBlock {
public:
    EmulatedBlock(unsigned threads, std::size_t shared_bytes)
        : threads_(threads), shared_(shared_bytes, 0xFF), words_((shared_bytes + word_bytes - 1) / word_bytes) {
        if (threads == 0 || threads % warp_size != 0)
            throw precondition_error("a block of {} threads (a multiple of {} is needed)", threads, warp_size);
        threads_of_.resize(threads);
        warps_.resize(threads / warp_size);
    }

    void run(const std::function<void(EmulatedTeam&)>& body) {
        GlobalWatch::begin_block();
        // The stacks (32 MB) are reused; otherwise they would be mapped anew for each block.
        static thread_local boost::context::pooled_fixedsize_stack stacks(stack_bytes);
        for (unsigned rank = 0; rank < threads_; ++rank) {
            Thread& thread = threads_of_[rank];
            const boost::context::stack_context stack = stacks.allocate();
            thread.stack_bottom = static_cast<char*>(stack.sp) - stack.size;
            forget_frames(thread.stack_bottom, stack.size);
            thread.fibre = fiber(std::allocator_arg, boost::context::preallocated(stack.sp, stack.size, stack), stacks,
                                 [this, &thread, rank, &body](fiber&& scheduler) {
                                     arrive(nullptr, &scheduler_bottom_, &scheduler_size_);
                                     thread.scheduler = std::move(scheduler);
                                     try {
                                         EmulatedTeam team(*this, rank);
                                         body(team);
                                     } catch (const Stopped&) {
                                     } catch (...) {
                                         failure_ = std::current_exception();
                                     }
                                     thread.waiting = Waiting::ended;
                                     leave_for(nullptr, scheduler_bottom_, scheduler_size_);
                                     return std::move(thread.scheduler);
                                 });
        }
        try {
            run_to_the_end();
        } catch (...) {
            stopping_ = true;
            for (Thread& thread : threads_of_)
                while (thread.waiting != Waiting::ended) resume(thread);
            throw;
        }
    }

    [[nodiscard]] unsigned threads() const { return threads_; }
    [[nodiscard]] unsigned char* shared_memory(std::size_t first, std::size_t bytes) {
        if (first + bytes > shared_.size())
            throw precondition_error("a kernel uses {} bytes of shared memory but declared {}", first + bytes,
                                     shared_.size());
        return shared_.data() + first;
    }

    void barrier(unsigned rank, const SourceLine& where) { wait(rank, Waiting::at_barrier, where); }

    /// Returns when all threads of the warp have called it.
    std::uint64_t exchange(unsigned rank, std::uint64_t bits, unsigned lane, const SourceLine& where) {
        Thread& self = threads_of_[rank];
        Warp& warp = warps_[rank / warp_size];
        const std::size_t parity = self.exchanges++ % 2;  // a thread is at most one exchange ahead of another one
        warp.bits[parity][rank % warp_size] = bits;
        wait(rank, Waiting::in_warp, where);
        return warp.bits[parity][lane];
    }
    void gather(unsigned rank, double x, double (&all)[warp_size], const SourceLine& where) {
        std::uint64_t bits = 0;
        std::memcpy(&bits, &x, sizeof x);
        const std::size_t parity = threads_of_[rank].exchanges % 2;
        exchange(rank, bits, 0, where);
        std::memcpy(all, warps_[rank / warp_size].bits[parity], sizeof all);
    }
    void warp_barrier(unsigned rank, const SourceLine& where) {
        exchange(rank, 0, 0, where);
        running_thread.warp_interval = ++threads_of_[rank].warp_interval;
    }

    void note_read(unsigned rank, std::size_t byte, std::size_t bytes) {
        const Access now = access(rank);
        for (std::size_t at = byte / word_bytes; at < (byte + bytes + word_bytes - 1) / word_bytes; ++at) {
            SharedWord& word = words_[at];
            if (!word.initialized)
                throw precondition_error("thread {} reads shared memory that no thread has written (byte {})", rank,
                                         byte);
            if (conflict(word.written, now))
                throw precondition_error(
                    "thread {} reads shared memory that thread {} wrote, with no barrier between (byte {})", rank,
                    word.written.thread, byte);
            if (word.read.thread / warp_size != rank / warp_size || word.also_read.interval != now.interval ||
                word.also_read.thread / warp_size == rank / warp_size)
                if (word.read.thread != rank) word.also_read = word.read;
            word.read = now;
        }
    }
    void note_write(unsigned rank, std::size_t byte, std::size_t bytes) {
        const Access now = access(rank);
        for (std::size_t at = byte / word_bytes; at < (byte + bytes + word_bytes - 1) / word_bytes; ++at) {
            SharedWord& word = words_[at];
            for (const Access& before : {word.written, word.read, word.also_read})
                if (conflict(before, now))
                    throw precondition_error(
                        "thread {} writes shared memory that thread {} uses, with no barrier between (byte {})", rank,
                        before.thread, byte);
            word.initialized = true;
            word.written = now;
        }
    }
    void note_all_written(std::size_t byte, std::size_t bytes) {
        for (std::size_t at = byte / word_bytes; at < (byte + bytes + word_bytes - 1) / word_bytes; ++at)
            words_[at].initialized = true;
    }

private:
    struct Thread {
        fiber fibre, scheduler;
        const char* stack_bottom = nullptr;
        Waiting waiting = Waiting::no;
        SourceLine where;
        std::uint32_t warp_interval = 0;
        std::size_t exchanges = 0;
    };
    struct Warp {
        std::uint64_t bits[2][warp_size] = {};
    };

    [[nodiscard]] Access access(unsigned rank) const { return {interval_, threads_of_[rank].warp_interval, rank}; }

    [[nodiscard]] static bool conflict(const Access& before, const Access& now) {
        if (before.interval != now.interval || before.thread == now.thread) return false;
        return before.thread / warp_size != now.thread / warp_size || before.warp_interval == now.warp_interval;
    }

    void wait(unsigned rank, Waiting what, const SourceLine& where) {
        Thread& self = threads_of_[rank];
        self.waiting = what;
        self.where = where;
        void* kept = nullptr;
        leave_for(&kept, scheduler_bottom_, scheduler_size_);
        self.scheduler = std::move(self.scheduler).resume();
        arrive(kept, nullptr, nullptr);
        if (stopping_) throw Stopped();
    }

    void resume(Thread& thread) {
        void* kept = nullptr;
        leave_for(&kept, thread.stack_bottom, stack_bytes);
        running_thread = {true, static_cast<std::uint32_t>(&thread - threads_of_.data()), interval_,
                          thread.warp_interval};
        thread.fibre = std::move(thread.fibre).resume();
        running_thread.runs = false;
        arrive(kept, nullptr, nullptr);
    }

    void run_to_the_end() {
        while (true) {
            for (unsigned warp = 0; warp < warps_.size(); ++warp) run_warp(warp);
            unsigned at_barrier = 0;
            unsigned ended = 0;
            for (const Thread& thread : threads_of_) {
                at_barrier += thread.waiting == Waiting::at_barrier;
                ended += thread.waiting == Waiting::ended;
            }
            if (ended == threads_) return;
            for (unsigned rank = 0; rank < threads_; ++rank)
                for (const unsigned other : {0U, threads_ - 1}) same_barrier(rank, other);
            if (at_barrier != threads_) throw precondition_error("the threads of a block wait for each other forever");
            for (Thread& thread : threads_of_) thread.waiting = Waiting::no;
            ++interval_;
        }
    }

    /// Runs a warp until all of its threads wait at a barrier or have ended.
    void run_warp(unsigned warp) {
        Thread* const first = threads_of_.data() + warp * warp_size;
        while (true) {
            for (Thread* thread = first; thread < first + warp_size; ++thread)
                if (thread->waiting == Waiting::no) {
                    resume(*thread);
                    if (failure_) std::rethrow_exception(failure_);
                }
            unsigned in_warp = 0;
            const Thread* one = nullptr;
            for (const Thread* thread = first; thread < first + warp_size; ++thread)
                if (thread->waiting == Waiting::in_warp) {
                    ++in_warp;
                    one = thread;
                }
            if (in_warp == 0) return;
            for (const Thread* thread = first; thread < first + warp_size; ++thread) {
                const auto rank = thread - threads_of_.data();
                if (thread->waiting != Waiting::in_warp)
                    throw precondition_error("thread {} {} while others of its warp exchange at {}", rank,
                                             thread->waiting == Waiting::ended ? "has ended" : "waits at a barrier",
                                             line_of(one->where));
                if (thread->where.line != one->where.line)
                    throw precondition_error("threads of a warp exchange in different calls: {} and {}",
                                             line_of(thread->where), line_of(one->where));
            }
            for (Thread* thread = first; thread < first + warp_size; ++thread) thread->waiting = Waiting::no;
        }
    }

    void same_barrier(unsigned rank, unsigned other) const {
        const Thread& a = threads_of_[rank];
        const Thread& b = threads_of_[other];
        if (a.waiting != b.waiting)
            throw precondition_error(
                "thread {} waits at barrier {} while thread {} has ended", a.waiting == Waiting::ended ? other : rank,
                line_of(a.waiting == Waiting::ended ? b.where : a.where), a.waiting == Waiting::ended ? rank : other);
        if (a.waiting == Waiting::at_barrier && a.where.line != b.where.line)
            throw precondition_error("threads {} and {} wait at different barriers: {} and {}", rank, other,
                                     line_of(a.where), line_of(b.where));
    }

    unsigned threads_;
    std::vector<unsigned char> shared_;
    std::vector<SharedWord> words_;
    std::vector<Warp> warps_;
    std::uint32_t interval_ = 1;
    std::exception_ptr failure_;
    bool stopping_ = false;
    const void* scheduler_bottom_ = nullptr;
    std::size_t scheduler_size_ = 0;
    std::vector<Thread> threads_of_;
};

unsigned EmulatedTeam::size() const { return block_->threads(); }
void EmulatedTeam::barrier(SourceLine where) { block_->barrier(rank_, where); }
void EmulatedTeam::warp_barrier(SourceLine where) { block_->warp_barrier(rank_, where); }
std::uint64_t EmulatedTeam::exchange(std::uint64_t bits, unsigned lane, const SourceLine& where) {
    return block_->exchange(rank_, bits, lane, where);
}
void EmulatedTeam::gather(double x, double (&all)[warp_size], const SourceLine& where) {
    block_->gather(rank_, x, all, where);
}
double EmulatedTeam::factor(float x) {
    if (as_tf32(x) != x && x == x) throw precondition_error("a factor of {} has more than 11 significant bits", x);
    return x;
}
unsigned char* EmulatedTeam::shared_memory(std::size_t first, std::size_t bytes) {
    return block_->shared_memory(first, bytes);
}
void EmulatedTeam::note_read(std::size_t byte, std::size_t bytes) { block_->note_read(rank_, byte, bytes); }
void EmulatedTeam::note_write(std::size_t byte, std::size_t bytes) { block_->note_write(rank_, byte, bytes); }
void EmulatedTeam::note_all_written(std::size_t byte, std::size_t bytes) { block_->note_all_written(byte, bytes); }
void EmulatedTeam::outside(std::size_t index, std::size_t count) const {
    throw precondition_error("thread {} accesses element {} of a shared array of {}", rank_, index, count);
}

void run_block(unsigned threads, std::size_t shared_bytes, const std::function<void(EmulatedTeam&)>& body) {
    EmulatedBlock(threads, shared_bytes).run(body);
}

}  // namespace spiked::cuda
