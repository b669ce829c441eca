#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <utility>

namespace spiked {

/// A cache of the results of an expensive function that is called thousands of times with a few distinct arguments. It
/// is thread-safe. Results beyond the first `most` arguments are computed but not stored, which bounds the memory.
template <class Key, class Value, std::size_t most = 256>
class Memo {
public:
    template <class Make>
    Value of(const Key& key, const Make& make) {
        {
            const std::lock_guard lock(guard_);
            if (const auto found = known_.find(key); found != known_.end()) return found->second;
        }
        Value made = make();
        const std::lock_guard lock(guard_);
        if (known_.size() < most) known_.emplace(key, made);
        return made;
    }

private:
    std::mutex guard_;
    std::map<Key, Value> known_;
};

}  // namespace spiked
