#include "core/device/global_watch.hpp"

#include <boost/core/demangle.hpp>
#include <utility>

#include "core/runtime/error.hpp"

namespace spiked::cuda {
namespace {

thread_local GlobalWatch* active = nullptr;
constexpr std::uint32_t before_the_first = 0xFFFFFFFF;  // number 0 follows

}  // namespace

GlobalWatch::GlobalWatch(const void* begin, std::size_t bytes)
    : begin_(static_cast<const unsigned char*>(begin)), bytes_(bytes) {
    if (active != nullptr) throw precondition_error("two watches of global memory on one thread");
    active = this;
}
GlobalWatch::~GlobalWatch() { active = nullptr; }

void GlobalWatch::begin_launch() {
    if (active == nullptr) return;
    ++active->launch_;
    active->block_ = before_the_first;
}
void GlobalWatch::begin_block() {
    if (active != nullptr) ++active->block_;
}
void GlobalWatch::end_launch(const char* kernel) {
    if (active == nullptr || active->race_.empty()) return;
    throw precondition_error("{} in kernel {}", std::exchange(active->race_, ""), boost::core::demangle(kernel));
}

void GlobalWatch::note(const void* at, std::size_t bytes, bool writes) {
    if (active == nullptr || !running_thread.runs) return;
    // Other memory, such as the stacks of fibres, lies outside; the difference wraps around for addresses before.
    const auto first = reinterpret_cast<std::uintptr_t>(at) - reinterpret_cast<std::uintptr_t>(active->begin_);
    if (first >= active->bytes_.size()) return;
    ++active->accesses_;
    for (std::size_t byte = first; byte < first + bytes && byte < active->bytes_.size(); ++byte)
        active->add(byte, writes);
}

void GlobalWatch::add(std::size_t byte, bool writes) {
    Byte& here = bytes_[byte];
    const Access now{launch_, block_, running_thread};
    check(here.written, now, byte, writes);
    if (writes) {
        for (const Access* read : {&here.read, &here.by_lane, &here.by_warp, &here.by_block})
            check(*read, now, byte, writes);
        here.written = now;
        return;
    }
    if (here.read.block != now.block)
        here.by_block = here.read;
    else if (here.read.thread.rank / 32 != now.thread.rank / 32)
        here.by_warp = here.read;
    else if (here.read.thread.rank != now.thread.rank)
        here.by_lane = here.read;
    here.read = now;
}

void GlobalWatch::check(const Access& before, const Access& now, std::size_t byte, bool writes) {
    if (before.launch != now.launch || !race_.empty()) return;
    if (before.block == now.block) {
        const RunningThread& one = before.thread;
        const RunningThread& other = now.thread;
        if (one.interval != other.interval || one.rank == other.rank) return;
        if (one.rank / 32 == other.rank / 32 && one.warp_interval != other.warp_interval) return;
    }
    race_ = fmt::format(
        "thread {} of block {} {} global memory that thread {} of block {} uses, with no barrier between (byte {})",
        now.thread.rank, now.block, writes ? "writes" : "reads", before.thread.rank, before.block, byte);
}

}  // namespace spiked::cuda
