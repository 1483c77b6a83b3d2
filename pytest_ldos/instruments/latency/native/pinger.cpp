#include "pinger.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "thread_cpu.hpp"
#include "topics.hpp"

namespace ldos::pingpong {

namespace {

constexpr Time kSecond = 1'000'000'000;
constexpr std::size_t kMostPerSecond = 200'000;

// Memory whose pages are mapped before the measurement.
std::vector<Time> make_room(Time duration) {
  std::vector<Time> times(static_cast<std::size_t>(duration / kSecond + 1) * kMostPerSecond, 1);
  times.clear();
  return times;
}

}  // namespace

Pinger::Pinger(const Participant& participant)
    : endpoint_(participant, kPingTopic, kPongTopic), taken_(participant.dds) {}

PingResult Pinger::run(const PingSettings& settings) {
  confine_thread(settings.cpu);
  prepare(settings);
  {
    std::optional<Listening> listening;
    if (settings.listener) {
      listening.emplace(endpoint_, &Pinger::on_data, this);
    }
    exchange();
  }
  if (!failure_.empty()) {
    throw DdsError(failure_);
  }
  return std::move(result_);
}

void Pinger::prepare(const PingSettings& settings) {
  settings_ = settings;
  result_ = PingResult{};
  result_.round_trips = make_room(settings.duration);
  result_.ways_there = make_room(settings.duration);
  own_.emplace(settings.size);
  endpoint_.watch_data();
  due_ = now();
  measure_from_ = due_ + settings.warm_up;
  end_ = measure_from_ + settings.duration;
}

void Pinger::exchange() {
  std::unique_lock lock(mutex_);
  while (!is_over()) {
    send_due(lock);
    if (!is_over()) {
      await(lock);
    }
  }
}

// Waits for an answer, or until the next message is due.
void Pinger::await(std::unique_lock<std::mutex>& lock) {
  const Time left = std::max<Time>(0, next_moment() - now());
  if (settings_.listener) {
    answered_.wait_for(lock, std::chrono::nanoseconds(left));
    return;
  }
  lock.unlock();
  endpoint_.wait(left);
  take();
  lock.lock();
}

void Pinger::on_data(Entity, void* self) {
  auto* const pinger = static_cast<Pinger*>(self);
  try {
    pinger->take();
  } catch (const std::exception& error) {
    const std::scoped_lock lock(pinger->mutex_);
    pinger->failure_ = error.what();
    pinger->answered_.notify_one();
  }
}

// The lock is not held while a message is written: a writer that must wait is woken by the thread that answers come on.
void Pinger::take() {
  SampleInfo info{};
  if (!endpoint_.take(taken_.message, info)) {
    return;
  }
  const Time taken_at = now();
  std::unique_lock lock(mutex_);
  const bool goes_on = close(info, taken_at) && settings_.interval == 0 && taken_at < end_;
  if (!goes_on) {
    answered_.notify_one();
    return;
  }
  const std::uint32_t number = open_next();
  lock.unlock();
  write(number);
}

void Pinger::send_due(std::unique_lock<std::mutex>& lock) {
  const Time time = now();
  if (pending_.is_open) {
    if (time < pending_.sent_at + settings_.patience) {
      return;
    }
    pending_.is_open = false;
    if (counts(pending_.sent_at)) {
      ++result_.lost;
      result_.elapsed = time - measure_from_;
    }
    result_.is_alone = !endpoint_.is_matched();
  }
  if (time < due_ || time >= end_ || result_.is_alone) {
    return;
  }
  due_ += settings_.interval;
  if (due_ < time) {  // missed messages are not sent later
    due_ = time + settings_.interval;
  }
  const std::uint32_t number = open_next();
  lock.unlock();
  write(number);
  lock.lock();
}

// True if it answers the message that is waited for.
bool Pinger::close(const SampleInfo& info, Time taken_at) {
  if (!pending_.is_open || taken_.message.number != pending_.number) {
    ++result_.late;
    return false;
  }
  pending_.is_open = false;
  if (counts(pending_.sent_at)) {
    result_.round_trips.push_back(taken_at - pending_.sent_at);
    result_.ways_there.push_back(info.source_timestamp - pending_.sent_at);
    result_.elapsed = taken_at - measure_from_;
  }
  return true;
}

std::uint32_t Pinger::open_next() {
  pending_.is_open = true;
  pending_.sent_at = now();
  result_.sent += counts(pending_.sent_at) ? 1 : 0;
  return ++pending_.number;
}

void Pinger::write(std::uint32_t number) {
  const std::scoped_lock lock(writing_);
  own_->message.number = number;
  const std::int32_t code = endpoint_.dds.write_ts(endpoint_.writer, &own_->message, now());
  if (code != kTimedOut) {
    endpoint_.dds.demand(code, "no message was sent");
  }
}

bool Pinger::is_over() const {
  return result_.is_alone || !failure_.empty() || (!pending_.is_open && now() >= end_);
}

Time Pinger::next_moment() const {
  return pending_.is_open ? pending_.sent_at + settings_.patience : std::min(due_, end_);
}

}  // namespace ldos::pingpong
