#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace spiked::cuda {

/// The thread of an emulated block that this host thread runs at the moment.
struct RunningThread {
    bool runs = false;
    std::uint32_t rank = 0;
    std::uint32_t interval = 0;       ///< barriers of the block before
    std::uint32_t warp_interval = 0;  ///< warp barriers before
};
inline thread_local RunningThread running_thread;

/// Watches the accesses of emulated kernels to a range of global memory, on the host thread that made it. Two accesses
/// of one launch to a byte are a race when one of them is a write and they are made by different blocks, or by threads
/// of one block without a barrier between (a warp barrier is enough within its warp). The end of a launch that had a
/// race throws precondition_error; it names the first one.
///
/// Kernels use plain pointers to global memory, so that accesses are seen only in code that is compiled with
/// -fsanitize=thread: its hooks call `note` (validation/trials/tests/access_hooks.cpp). The watch takes 120 bytes for
/// each byte, and one is active at a time.
class GlobalWatch {
public:
    GlobalWatch(const void* begin, std::size_t bytes);
    ~GlobalWatch();
    GlobalWatch(const GlobalWatch&) = delete;

    /// Called by every load and store of instrumented code; without a watch or a running kernel they do nothing.
    static void note(const void* at, std::size_t bytes, bool writes);
    /// Called by the emulator; `kernel` is the name of a type, as typeid gives it.
    static void begin_launch();
    static void begin_block();
    static void end_launch(const char* kernel);
    /// Accesses that were watched so far, by which a test knows that the hooks are there.
    [[nodiscard]] std::size_t accesses() const { return accesses_; }

private:
    struct Access {
        std::uint32_t launch = 0;  ///< 0: never
        std::uint32_t block = 0;
        RunningThread thread;
    };
    /// The last write, the last read, and before it the last reads by another lane of the same warp, by another warp of
    /// the same block and by another block. A write that is in a race with any read is in one with one of these.
    struct Byte {
        Access written, read, by_lane, by_warp, by_block;
    };
    void add(std::size_t byte, bool writes);
    void check(const Access& before, const Access& now, std::size_t byte, bool writes);

    const unsigned char* begin_;
    std::vector<Byte> bytes_;
    std::uint32_t launch_ = 1;
    std::uint32_t block_ = 0;
    std::size_t accesses_ = 0;
    std::string race_;
};

}  // namespace spiked::cuda
