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
  // At first, answers are not counted for so long.
  Time warm_up = 0;
  Time duration = 0;
  // An answer that takes longer is lost.
  Time patience = 0;
  // Between two messages, unless 0: the next follows the answer at once.
  Time interval = 0;
  // Whether answers are taken on the library's own thread, where the next message is sent, too.
  bool listener = false;
  int cpu = -1;
};

struct PingResult {
  std::vector<Time> round_trips;
  // From here to the other side, of the same messages.
  std::vector<Time> ways_there;
  std::uint64_t sent = 0;
  std::uint64_t lost = 0;
  // Answers that came when nobody waited for them any more.
  std::uint64_t late = 0;
  // From the end of the warm-up to the last answer, or until the last that did not come was given up.
  Time elapsed = 0;
  // Nobody was on the other side any more.
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
  // What follows needs the lock.
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
