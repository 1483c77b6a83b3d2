// Follows each stream over the files it was split into, and finds missing and duplicate packets.
//
// LTTng splits a stream when trace files reach their size and when a session is rotated; its
// counters continue from one file to the next.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "packet.hpp"

namespace ldos::ctf {

class Stream;

// Events lost in a stream between two times.
struct Gap {
  std::int64_t from_ns = 0;
  std::int64_t to_ns = 0;
  std::uint64_t events = 0;
  std::uint64_t packets = 0;
};

// The contribution of one file's packets to their stream.
struct Continuity {
  std::vector<Gap> gaps;
  std::uint64_t earlier_events = 0;    // lost before the first packet, so not in its time
  std::uint64_t earlier_packets = 0;   // before the first packet, by its number
  std::uint64_t repeated_packets = 0;  // duplicates that were removed here
  std::uint64_t backward_steps = 0;    // of time, from a packet to the next one
  bool is_numbered = false;            // its packets have increasing numbers
  bool has_last = false;               // of the packets of its stream
  std::optional<std::int64_t> begin_ns;  // of the stream's first packet, in the file that has it
  std::optional<std::int64_t> end_ns;    // of the stream's last packet, in the file that has it
};

// The reason for refusing a time that is earlier than the previous one.
std::string backward_reason(std::int64_t from_ns, std::int64_t to_ns);

// True if a packet begins no earlier than the one before it in its file. The order of others is judged by
// `follow_streams`.
bool is_in_file_order(const Stream& file, std::size_t packet);

// One for each file, in their order. If what is corrupt is to be skipped, packets that are there twice are taken
// out of the later file, and steps of time backwards are counted; otherwise throws Unreadable.
std::vector<Continuity> follow_streams(const std::vector<std::unique_ptr<Stream>>& files, OnCorrupt on_corrupt);

}  // namespace ldos::ctf
