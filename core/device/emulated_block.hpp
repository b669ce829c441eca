#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <type_traits>
#include <typeinfo>

#include "core/device/global_watch.hpp"
#include "core/device/team.hpp"

/// Runs the blocks of a GPU kernel on the host for tests; every thread is a fibre with its own stack.
namespace spiked::cuda {

class EmulatedBlock;

/// The source line of a call. It replaces std::source_location, which clang 14 does not have.
struct SourceLine {
    const char* file = "";
    unsigned line = 0;
    static constexpr SourceLine here(const char* file = __builtin_FILE(), unsigned line = __builtin_LINE()) {
        return {file, line};
    }
};

/// A team (team.hpp) that reports errors which a GPU would pass over in silence. Throws precondition_error, with source
/// lines, when
///   - threads of a block wait at different barriers, or wait while another thread has ended;
///   - threads of a warp exchange data in different calls, or some of them do not take part;
///   - one thread writes shared memory that another reads or writes with no barrier between (a warp barrier is enough
///     within its warp; a shuffle is not a barrier, as on the device);
///   - shared memory is read that no thread has written, or an index lies outside an array.
/// Accesses through raw pointers (`data`) are not checked. Races in global memory are found by GlobalWatch
/// (global_watch.hpp) in code that is compiled for it.
class EmulatedTeam {
public:
    /// A shared array whose accesses are checked.
    template <class T>
    class Shared {
        static_assert(std::is_trivially_copyable_v<T>);

    public:
        class Element {
        public:
            Element(const Shared& array, std::size_t index) : array_(array), index_(index) {}
            Element(const Element&) = default;
            operator T() const {  // NOLINT: it replaces a T&
                array_.team_->note_read(array_.first_ + index_ * sizeof(T), sizeof(T));
                T value;
                std::memcpy(&value, array_.bytes_ + index_ * sizeof(T), sizeof value);
                return value;
            }
            const Element& operator=(T value) const {
                array_.team_->note_write(array_.first_ + index_ * sizeof(T), sizeof(T));
                std::memcpy(array_.bytes_ + index_ * sizeof(T), &value, sizeof value);
                return *this;
            }
            const Element& operator=(const Element& other) const { return *this = static_cast<T>(other); }

        private:
            const Shared& array_;
            std::size_t index_;
        };

        Element operator[](std::size_t index) const {
            if (index >= count_) team_->outside(index, count_);
            return {*this, index};
        }
        /// The array from element `from` on, like pointer arithmetic on the device.
        Shared operator+(std::size_t from) const {
            if (from > count_) team_->outside(from, count_);
            Shared rest = *this;
            rest.bytes_ += from * sizeof(T);
            rest.first_ += from * sizeof(T);
            rest.count_ -= from;
            return rest;
        }
        T* data() const {
            team_->note_all_written(first_, count_ * sizeof(T));
            return reinterpret_cast<T*>(bytes_);
        }

    private:
        friend class EmulatedTeam;
        EmulatedTeam* team_ = nullptr;
        unsigned char* bytes_ = nullptr;
        std::size_t first_ = 0;  ///< offset in bytes in the block's shared memory
        std::size_t count_ = 0;
    };

    EmulatedTeam(EmulatedBlock& block, unsigned rank) : block_(&block), rank_(rank) {}
    EmulatedTeam(const EmulatedTeam&) = delete;

    [[nodiscard]] unsigned rank() const { return rank_; }
    [[nodiscard]] unsigned size() const;
    [[nodiscard]] unsigned lane() const { return rank_ % warp_size; }
    [[nodiscard]] unsigned warp() const { return rank_ / warp_size; }
    void barrier(SourceLine where = SourceLine::here());
    void warp_barrier(SourceLine where = SourceLine::here());
    template <class T>
    T shuffle(T x, unsigned lane, SourceLine where = SourceLine::here()) {
        static_assert(std::is_arithmetic_v<T> && sizeof(T) <= sizeof(std::uint64_t));
        std::uint64_t bits = 0;
        std::memcpy(&bits, &x, sizeof x);
        bits = exchange(bits, lane % warp_size, where);
        std::memcpy(&x, &bits, sizeof x);
        return x;
    }
    template <class T>
    T shuffle_xor(T x, unsigned mask, SourceLine where = SourceLine::here()) {
        return shuffle(x, lane() ^ mask, where);
    }
    template <class Real>
    void multiply_add(Real (&c)[4], const Real (&a)[4], const Real (&b)[2], SourceLine where = SourceLine::here()) {
        double all_a[4][warp_size];
        double all_b[2][warp_size];
        for (unsigned i = 0; i < 4; ++i) gather(factor(a[i]), all_a[i], where);
        for (unsigned i = 0; i < 2; ++i) gather(factor(b[i]), all_b[i], where);
        for (unsigned entry = 0; entry < 4; ++entry)
            for (unsigned k = 0; k < 8; ++k)
                c[entry] =
                    std::fma(static_cast<Real>(all_a[entry / 2 + k / 4 * 2][lane() / 4 * 4 + k % 4]),
                             static_cast<Real>(all_b[k / 4][(lane() % 4 * 2 + entry % 2) * 4 + k % 4]), c[entry]);
    }
    template <class T>
    Shared<T> take(std::size_t count) {
        Shared<T> array;
        array.team_ = this;
        array.first_ = taken_;
        array.count_ = count;
        array.bytes_ = shared_memory(taken_, shared_bytes_for<T>(count));
        taken_ += shared_bytes_for<T>(count);
        return array;
    }

private:
    std::uint64_t exchange(std::uint64_t bits, unsigned lane, const SourceLine& where);
    /// Checks that tensor units multiply x exactly, and returns it.
    static double factor(double x) { return x; }
    static double factor(float x);
    /// Collects the x of every lane of the warp.
    void gather(double x, double (&all)[warp_size], const SourceLine& where);
    unsigned char* shared_memory(std::size_t first, std::size_t bytes);
    void note_read(std::size_t byte, std::size_t bytes);
    void note_write(std::size_t byte, std::size_t bytes);
    void note_all_written(std::size_t byte, std::size_t bytes);
    [[noreturn]] void outside(std::size_t index, std::size_t count) const;

    EmulatedBlock* block_;
    unsigned rank_;
    std::size_t taken_ = 0;
};

/// Runs one block. Costs about 10 ns per thread and barrier or shuffle, and a few ns per checked access.
void run_block(unsigned threads, std::size_t shared_bytes, const std::function<void(EmulatedTeam&)>& body);

/// Runs kernels on the host, one block after another.
struct EmulatedExecutor {
    template <class Kernel>
    void launch(const Kernel& kernel, unsigned blocks) const {
        GlobalWatch::begin_launch();
        for (unsigned block = 0; block < blocks; ++block)
            run_block(Kernel::threads, kernel.shared_bytes(), [&](EmulatedTeam& team) { kernel(team, block); });
        GlobalWatch::end_launch(typeid(Kernel).name());
    }
};

}  // namespace spiked::cuda
