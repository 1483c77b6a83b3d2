// The packets of a stream file: their headers, and bytes that cannot be one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "mapped_file.hpp"
#include "trace.hpp"

namespace ldos::ctf {

// Treatment of corrupt bytes.
enum class OnCorrupt : std::uint8_t { refuse, skip };

struct Packet {
  std::uint64_t offset = 0;         // bytes from the file's start
  std::uint64_t bytes = 0;          // to the next packet or the end of the file
  std::uint64_t content_bits = 0;   // header, context and events
  std::uint64_t first_event_bit = 0;
  std::uint64_t no_event_from_bit = 0;  // from there on, only padding follows
  const StreamType* type = nullptr;
  std::int64_t cpu = kNone;
  std::optional<std::int64_t> begin_ns;
  std::optional<std::int64_t> end_ns;
  std::uint64_t begin_cycles = 0;
  std::uint32_t begin_bits = 0;            // width of that time; 0 if it is not given
  std::uint64_t end_cycles = 0;
  std::uint32_t end_bits = 0;
  std::vector<std::uint64_t> kept;         // values that events refer to (`StreamType::kept`)
  std::optional<std::uint64_t> instance;   // of the stream, among those of its class
  std::optional<std::uint64_t> sequence;
  std::optional<std::uint64_t> discarded;  // events lost in this stream so far
  std::uint32_t discarded_bits = 64;       // width of that counter
  std::uint32_t sequence_bits = 64;
  bool truncated = false;                  // the file ends inside it
  std::uint64_t missing_bytes = 0;         // of its content, after the file's end
  std::uint64_t missing_padding = 0;       // bytes of the padding after its content, after the file's end
  bool foreign = false;                    // its uuid is not the metadata's
  bool unfinished = false;                 // its size was never written: it has all events that follow

  // True if an event's contexts may begin at bit `bit` of the file; after the last byte, those of
  // an event that has none.
  [[nodiscard]] bool has_event_at(std::uint64_t bit) const {
    return offset * 8 + first_event_bit <= bit && bit <= offset * 8 + content_bits;
  }
};

// Corrupt bytes that were skipped.
struct Corruption {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::string reason;
};

struct PacketList {
  std::vector<Packet> packets;
  std::vector<Corruption> corruptions;
  std::uint64_t truncated_bytes = 0;  // of a packet with an incomplete header
};

// Throws Unreadable for corrupt bytes, unless they are to be skipped.
PacketList read_packets(const Trace& trace, const MappedFile& file, OnCorrupt on_corrupt);

}  // namespace ldos::ctf
