// A participant, and what a side of the exchange writes to and reads from.
#pragma once

#include <cstdint>
#include <string>

#include "library.hpp"
#include "message.hpp"

namespace ldos::pingpong {

class Participant {
 public:
  Participant(const std::string& library, std::uint32_t domain, bool reliable);
  ~Participant();
  Participant(const Participant&) = delete;
  Participant& operator=(const Participant&) = delete;

  Library dds;
  Entity entity;
  bool reliable;
};

// Nanoseconds of CLOCK_MONOTONIC, which all processes of a machine share.
Time now();

class Endpoint {
 public:
  Endpoint(const Participant& participant, const char* writes, const char* reads);
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  // Whether both directions have somebody on the other side.
  bool is_matched() const;

  // Waits until they have; false where that took too long.
  bool await_match(Time patience) const;

  // From now on `wait` ends for messages, not for who comes and goes.
  void watch_data() const;

  // Waits for what is watched, or the end of the time, or `wake`.
  void wait(Time timeout) const;
  void wake() const;

  // The message that is there, or false; the next one, of which the last alone is kept, is announced anew.
  bool take(Message& message, SampleInfo& info) const;

  const Library& dds;
  Entity writer;
  Entity reader;

 private:
  Entity waitset_;
};

// While it lives, a function is called on the library's own thread when there are messages; none is called any more
// when it is gone.
class Listening {
 public:
  Listening(const Endpoint& endpoint, void (*on_data)(Entity, void*), void* argument);
  ~Listening() { endpoint_.dds.set_listener(endpoint_.reader, nullptr); }
  Listening(const Listening&) = delete;
  Listening& operator=(const Listening&) = delete;

 private:
  const Endpoint& endpoint_;
};

}  // namespace ldos::pingpong
