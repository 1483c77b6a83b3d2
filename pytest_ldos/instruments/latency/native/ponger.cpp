#include "ponger.hpp"

#include "thread_cpu.hpp"
#include "topics.hpp"

namespace ldos::pingpong {

namespace {

constexpr Time kLongestWait = 1'000'000'000;

}  // namespace

Ponger::Ponger(const Participant& participant, bool listener, int cpu)
    : endpoint_(participant, kPongTopic, kPingTopic), taken_(participant.dds) {
  endpoint_.watch_data();
  if (listener) {
    listening_.emplace(endpoint_, &Ponger::on_data, this);
  } else {
    thread_ = std::thread(&Ponger::run, this, cpu);
  }
}

void Ponger::end() {
  stopping_ = true;
  listening_.reset();
  if (thread_.joinable()) {
    endpoint_.wake();
    thread_.join();
  }
}

std::uint64_t Ponger::stop() {
  end();
  if (!failure_.empty()) {
    throw DdsError(failure_);
  }
  return answered_;
}

void Ponger::on_data(Entity, void* self) {
  auto* const ponger = static_cast<Ponger*>(self);
  try {
    ponger->answer();
  } catch (const std::exception& error) {
    ponger->failure_ = error.what();
  }
}

void Ponger::answer() {
  SampleInfo info{};
  if (endpoint_.take(taken_.message, info)) {
    const std::int32_t code = endpoint_.dds.write_ts(endpoint_.writer, &taken_.message, now());
    if (code != kTimedOut) {
      endpoint_.dds.demand(code, "no answer");
      ++answered_;
    }
  }
}

void Ponger::run(int cpu) {
  try {
    confine_thread(cpu);
    while (!stopping_) {
      endpoint_.wait(kLongestWait);
      answer();
    }
  } catch (const std::exception& error) {
    failure_ = error.what();
  }
}

}  // namespace ldos::pingpong
