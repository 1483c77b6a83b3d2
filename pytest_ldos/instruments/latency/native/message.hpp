// The exchanged message: a number, a key, and octets. The same shape as the default type of ddsperf (KS), so that both
// encode alike.
#pragma once

#include <cstdint>
#include <vector>

#include "library.hpp"

namespace ldos::pingpong {

struct Message {
  std::uint32_t number;
  std::uint32_t key;
  Octets octets;
};

const TopicDescriptor& describe_message();

// A message that owns its octets.
class OwnMessage {
 public:
  explicit OwnMessage(std::uint32_t size);
  OwnMessage(const OwnMessage&) = delete;
  OwnMessage& operator=(const OwnMessage&) = delete;

  Message message{};

 private:
  std::vector<std::uint8_t> octets_;
};

// A message that the library reads into and allocates.
class TakenMessage {
 public:
  explicit TakenMessage(const Library& library) : library_(library) { message.octets.release = true; }
  ~TakenMessage() { library_.free(message.octets.buffer); }
  TakenMessage(const TakenMessage&) = delete;
  TakenMessage& operator=(const TakenMessage&) = delete;

  Message message{};

 private:
  const Library& library_;
};

}  // namespace ldos::pingpong
