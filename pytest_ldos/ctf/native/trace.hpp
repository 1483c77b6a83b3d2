// One trace: its declarations compiled, ready to read its streams.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "layout.hpp"
#include "metadata.hpp"

namespace ldos::ctf {

// The two event headers LTTng writes have loops of their own; any other is interpreted.
enum class HeaderKind : std::uint8_t { compact, large, interpreted };

struct EventType {
  std::string name;
  Layout layout;
  std::optional<std::uint64_t> fixed_bytes;  // of contexts and payload, where never variable
};

struct StreamType {
  std::uint64_t number = 0;  // the metadata's id
  HeaderKind header_kind = HeaderKind::interpreted;
  ByteOrder header_order = ByteOrder::little;
  Layout packet_context;
  Layout header;
  std::vector<EventType> types;
  std::unordered_map<std::uint64_t, std::size_t> type_by_id;
};

// Cycles of the trace's clock as nanoseconds since the epoch.
struct ClockToEpoch {
  std::uint64_t frequency = 1'000'000'000;
  std::int64_t offset_ns = 0;

  [[nodiscard]] std::int64_t operator()(std::uint64_t cycles) const {
    if (frequency == 1'000'000'000) return static_cast<std::int64_t>(cycles + static_cast<std::uint64_t>(offset_ns));
    const auto wide = static_cast<unsigned __int128>(cycles) * 1'000'000'000U / frequency;
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(wide) + static_cast<std::uint64_t>(offset_ns));
  }
};

struct Trace {
  std::string metadata_path;
  TraceClass declared;
  Layout packet_header;
  ClockToEpoch clock;
  std::string clock_name;
  std::map<std::uint64_t, StreamType> streams;
};

// Reads and compiles a metadata file. Throws Unreadable.
Trace open_trace(const std::string& metadata_path);

}  // namespace ldos::ctf
