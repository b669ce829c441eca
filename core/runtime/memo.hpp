#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <utility>

namespace spiked {

/// Results of this process, for expensive functions that thousands of callers ask for a few arguments; threads may ask
/// at once. Beyond `most` arguments it computes and forgets: memory stays bounded whatever is asked.
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
