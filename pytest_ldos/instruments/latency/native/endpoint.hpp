// A participant, and the writer and reader of one side of the exchange.
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

  // True if both directions have a peer.
  bool is_matched() const;

  // Waits until they have; false after the time limit.
  bool await_match(Time patience) const;

  // From now on `wait` ends for messages, and no longer when peers appear or disappear.
  void watch_data() const;

  // Waits for a watched event, the time limit, or `wake`.
  void wait(Time timeout) const;
  void wake() const;

  // Takes the available message, or returns false. Only the last message is kept; the next one is announced again.
  bool take(Message& message, SampleInfo& info) const;

  const Library& dds;
  Entity writer;
  Entity reader;

 private:
  Entity waitset_;
};

// Calls a function on the library's own thread when there are messages, until this object is
// destroyed.
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
