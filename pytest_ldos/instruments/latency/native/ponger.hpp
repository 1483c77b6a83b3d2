// Answers each message with the same message, stamped with the time at which it was taken.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>

#include "endpoint.hpp"

namespace ldos::pingpong {

class Ponger {
 public:
  // Answers on the library's own thread (`listener`) or on a separate one, confined to a CPU unless that is negative.
  Ponger(const Participant& participant, bool listener, int cpu);
  ~Ponger() { end(); }
  Ponger(const Ponger&) = delete;
  Ponger& operator=(const Ponger&) = delete;

  // Ends, and returns the number of answered messages. Throws DdsError with the reason if it had to stop earlier.
  std::uint64_t stop();

 private:
  static void on_data(Entity, void* self);
  void answer();
  void run(int cpu);
  void end();

  Endpoint endpoint_;
  TakenMessage taken_;
  std::atomic<bool> stopping_ = false;
  std::atomic<std::uint64_t> answered_ = 0;
  std::string failure_;
  std::optional<Listening> listening_;
  std::thread thread_;
};

}  // namespace ldos::pingpong
