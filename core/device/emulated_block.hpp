#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <type_traits>

#include "core/device/team.hpp"

/// Blocks of a GPU kernel on the host, every thread a fibre with its own stack, for tests.
namespace spiked::cuda {

class EmulatedBlock;

/// A line that calls (std::source_location, which clang 14 has not).
struct Place {
    const char* file = "";
    unsigned line = 0;
    static constexpr Place here(const char* file = __builtin_FILE(), unsigned line = __builtin_LINE()) {
        return {file, line};
    }
};

/// A team (team.hpp) that says what a GPU would keep to itself. Throws bug, with source lines, when
///   - threads of a block wait at different barriers, or wait while another one has ended;
///   - threads of a warp meet in different calls, or not all of them;
///   - one thread writes shared memory that another reads or writes with no barrier between (a warp barrier serves
///     within its warp; a shuffle is none, as on the device);
///   - shared memory is read that nobody wrote, or lies outside an array.
/// Raw pointers (`data`) are not watched.
class EmulatedTeam {
public:
    /// A shared array whose accesses are watched.
    template <class T>
    class Shared {
        static_assert(std::is_trivially_copyable_v<T>);

    public:
        class Element {
        public:
            Element(const Shared& array, std::size_t index) : array_(array), index_(index) {}
            Element(const Element&) = default;
            operator T() const {  // NOLINT: stands for a T&
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
        /// A part of it, as pointer arithmetic gives on the device.
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
        std::size_t first_ = 0;  ///< byte of the block's shared memory
        std::size_t count_ = 0;
    };

    EmulatedTeam(EmulatedBlock& block, unsigned rank) : block_(&block), rank_(rank) {}
    EmulatedTeam(const EmulatedTeam&) = delete;

    [[nodiscard]] unsigned rank() const { return rank_; }
    [[nodiscard]] unsigned size() const;
    [[nodiscard]] unsigned lane() const { return rank_ % warp_size; }
    [[nodiscard]] unsigned warp() const { return rank_ / warp_size; }
    void barrier(Place where = Place::here());
    void warp_barrier(Place where = Place::here());
    template <class T>
    T shuffle(T x, unsigned lane, Place where = Place::here()) {
        static_assert(std::is_arithmetic_v<T> && sizeof(T) <= sizeof(std::uint64_t));
        std::uint64_t bits = 0;
        std::memcpy(&bits, &x, sizeof x);
        bits = exchange(bits, lane % warp_size, where);
        std::memcpy(&x, &bits, sizeof x);
        return x;
    }
    template <class T>
    T shuffle_xor(T x, unsigned mask, Place where = Place::here()) {
        return shuffle(x, lane() ^ mask, where);
    }
    template <class Real>
    void multiply_add(Real (&c)[4], const Real (&a)[4], const Real (&b)[2], Place where = Place::here()) {
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
        array.bytes_ = room(taken_, shared_room<T>(count));
        taken_ += shared_room<T>(count);
        return array;
    }

private:
    std::uint64_t exchange(std::uint64_t bits, unsigned lane, const Place& where);
    /// A number that tensor units multiply exactly.
    static double factor(double x) { return x; }
    static double factor(float x);
    /// What each lane of the warp gives.
    void gather(double x, double (&all)[warp_size], const Place& where);
    unsigned char* room(std::size_t first, std::size_t bytes);
    void note_read(std::size_t byte, std::size_t bytes);
    void note_write(std::size_t byte, std::size_t bytes);
    void note_all_written(std::size_t byte, std::size_t bytes);
    [[noreturn]] void outside(std::size_t index, std::size_t count) const;

    EmulatedBlock* block_;
    unsigned rank_;
    std::size_t taken_ = 0;
};

/// Runs one block. Some 10 ns a thread and barrier or shuffle, some ns a watched access.
void run_block(unsigned threads, std::size_t shared_bytes, const std::function<void(EmulatedTeam&)>& body);

/// Starts kernels on the host, block after block.
struct EmulatedExecutor {
    template <class Kernel>
    void launch(const Kernel& kernel, unsigned blocks) const {
        for (unsigned block = 0; block < blocks; ++block)
            run_block(Kernel::threads, kernel.shared_bytes(), [&](EmulatedTeam& team) { kernel(team, block); });
    }
};

}  // namespace spiked::cuda
