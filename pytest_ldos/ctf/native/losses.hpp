// What the tracer threw away, from the counters in packets.
#pragma once

#include <cstdint>
#include <vector>

#include "packet.hpp"

namespace ldos::ctf {

// Events lost in a stream between two moments.
struct Gap {
  std::int64_t from_ns = 0;
  std::int64_t to_ns = 0;
  std::uint64_t events = 0;
  std::uint64_t packets = 0;
};

// The gaps between the packets of one stream.
std::vector<Gap> find_gaps(const std::vector<Packet>& packets);

}  // namespace ldos::ctf
