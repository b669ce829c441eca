#include "core/runtime/stop_point.hpp"

#include "core/runtime/error.hpp"

namespace spiked {
namespace {

constinit thread_local StopQuestion question_of_thread{};

}  // namespace

StopScope::StopScope(StopQuestion question) : before_(question_of_thread) { question_of_thread = question; }

StopScope::StopScope(const std::atomic<bool>& stop)
    : StopScope(StopQuestion{[](const void* of) { return static_cast<const std::atomic<bool>*>(of)->load(); }, &stop}) {
}

StopScope::~StopScope() { question_of_thread = before_; }

bool may_be_stopped() { return question_of_thread.asked != nullptr; }

bool stop_asked() { return may_be_stopped() && question_of_thread.asked(question_of_thread.of); }

void stop_point() {
    if (stop_asked()) throw Error(ErrorKind::stopped, "stopped as asked (the result is not complete): call again");
}

}  // namespace spiked
