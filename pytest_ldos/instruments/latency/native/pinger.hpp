// Sends a message, waits for its answer, and sends the next.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "endpoint.hpp"

namespace ldos::pingpong {

struct PingSettings {
  std::uint32_t size = 0;
  // Answers are not counted during this initial time.
  Time warm_up = 0;
  Time duration = 0;
  // An answer that takes longer is lost.
  Time patience = 0;
  // Interval between messages; with 0, the next follows the answer immediately.
  Time interval = 0;
  // True if answers are taken, and the next message is sent, on the library's own thread.
  bool listener = false;
  int cpu = -1;
};

struct PingResult {
  std::vector<Time> round_trips;
  // One-way times of the same messages, to the other side.
  std::vector<Time> ways_there;
  std::uint64_t sent = 0;
  std::uint64_t lost = 0;
  // Answers that arrived after the time limit.
  std::uint64_t late = 0;
  // Time from the end of the warm-up to the last answer, or to the time limit of the last one that is missing.
  Time elapsed = 0;
  // The peer disappeared.
  bool is_alone = false;
};

class Pinger {
 public:
  explicit Pinger(const Participant& participant);

  bool await_match(Time patience) const { return endpoint_.await_match(patience); }
  bool shares_memory() const { return endpoint_.dds.is_shared_memory_available(endpoint_.writer); }

  // Throws DdsError.
  PingResult run(const PingSettings& settings);

 private:
  struct Pending {
    std::uint32_t number = 0;
    Time sent_at = 0;
    bool is_open = false;
  };

  static void on_data(Entity, void* self);
  void prepare(const PingSettings& settings);
  void exchange();
  void take();
  void await(std::unique_lock<std::mutex>& lock);
  void send_due(std::unique_lock<std::mutex>& lock);
  bool close(const SampleInfo& info, Time taken_at);
  void write(std::uint32_t number);
  // The following members need the lock.
  std::uint32_t open_next();
  bool is_over() const;
  Time next_moment() const;
  bool counts(Time sent_at) const { return sent_at >= measure_from_; }

  Endpoint endpoint_;
  TakenMessage taken_;
  PingSettings settings_;
  PingResult result_;
  std::mutex writing_;
  std::optional<OwnMessage> own_;
  std::mutex mutex_;
  std::condition_variable answered_;
  Pending pending_;
  std::string failure_;
  Time measure_from_ = 0;
  Time end_ = 0;
  Time due_ = 0;
};

}  // namespace ldos::pingpong
