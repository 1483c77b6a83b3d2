// The packets of one stream file.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "mapped_file.hpp"
#include "trace.hpp"

namespace ldos::ctf {

struct Packet {
  std::uint64_t offset = 0;         // bytes from the file's start
  std::uint64_t content_bits = 0;   // header, context and events
  std::uint64_t first_event_bit = 0;
  const StreamType* type = nullptr;
  std::int64_t cpu = kNone;
  std::optional<std::int64_t> begin_ns;
  std::optional<std::int64_t> end_ns;
  std::uint64_t begin_cycles = 0;
  std::optional<std::uint64_t> sequence;
  std::optional<std::uint64_t> discarded;  // events lost in this stream so far
  std::uint32_t discarded_bits = 64;       // width of that counter
  bool truncated = false;                  // the file ends inside it
};

// Reads the head of every packet. Throws Unreadable.
std::vector<Packet> read_packets(const Trace& trace, const MappedFile& file);

}  // namespace ldos::ctf
