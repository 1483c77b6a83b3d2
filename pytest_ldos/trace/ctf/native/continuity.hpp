// Follows each stream over the files it was cut into: what is missing, and what is there twice.
//
// LTTng cuts a stream when trace files reach their size and when a session is rotated; its
// counters go on from one file to the next.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "packet.hpp"

namespace ldos::ctf {

class Stream;

// Events lost in a stream between two moments.
struct Gap {
  std::int64_t from_ns = 0;
  std::int64_t to_ns = 0;
  std::uint64_t events = 0;
  std::uint64_t packets = 0;
};

// What the packets of one file add to the story of their stream.
struct Continuity {
  std::vector<Gap> gaps;
  std::uint64_t earlier_events = 0;    // lost before the first packet there is, so not in its time
  std::uint64_t repeated_packets = 0;  // that are in the trace already, and were taken out here
};

// One for each file, in their order. Packets that are there twice are taken out of the
// later file if what is corrupt is to be skipped; otherwise throws Unreadable.
std::vector<Continuity> follow_streams(const std::vector<std::unique_ptr<Stream>>& files, OnCorrupt on_corrupt);

}  // namespace ldos::ctf
