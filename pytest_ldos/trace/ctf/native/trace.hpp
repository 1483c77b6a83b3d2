// One trace: its declarations compiled, ready to read its streams.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "clock.hpp"
#include "layout.hpp"
#include "metadata.hpp"

namespace ldos::ctf {

// The two event headers that LTTng writes have specialised loops; any other is interpreted.
enum class HeaderKind : std::uint8_t { compact, large, interpreted };

struct EventType {
  std::string name;
  Layout layout;
  std::optional<std::uint64_t> fixed_bytes;  // of contexts and payload, if never variable
};

struct StreamType {
  std::uint64_t number = 0;  // the metadata's id
  bool has_clock = false;
  ClockToEpoch clock;          // without one, every time is 0
  bool clock_in_events = false;  // fields of events are also values of the clock
  bool clock_goes_on = false;  // packets have only the lower part of their time; the rest is the previous packet's
  HeaderKind header_kind = HeaderKind::interpreted;
  ByteOrder header_order = ByteOrder::little;
  Layout packet_context;
  Layout header;
  std::vector<Outer> kept;  // of a packet's header and context, because events refer to it
  std::vector<EventType> types;
  std::unordered_map<std::uint64_t, std::size_t> type_by_id;
};

struct Trace {
  std::string metadata_path;
  TraceClass declared;
  Layout packet_header;
  std::string clock_name;  // empty if events have no time
  std::int64_t clock_offset_ns = 0;
  std::map<std::uint64_t, StreamType> streams;
};

// Reads and compiles a metadata file. Throws Unreadable.
Trace open_trace(const std::string& metadata_path);

}  // namespace ldos::ctf
