// The declarations of a metadata file: clocks, streams and their events.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "field_class.hpp"

namespace ldos::ctf {

struct ClockClass {
  std::string name;
  std::string uuid;
  std::uint64_t frequency = 1'000'000'000;
  std::int64_t offset_seconds = 0;
  std::uint64_t offset_cycles = 0;
  bool offset_is_negative = false;  // that of cycles
  bool is_absolute = false;         // its origin is the epoch
};

struct EventClass {
  std::string name;
  std::uint64_t id = 0;
  FieldPtr context;  // may be null
  FieldPtr payload;  // may be null
};

struct StreamClass {
  std::uint64_t id = 0;
  FieldPtr packet_context;  // may be null
  FieldPtr event_header;    // may be null
  FieldPtr event_context;   // may be null
  std::map<std::uint64_t, EventClass> events;
};

using Uuid = std::array<std::uint8_t, 16>;
using EnvironmentValue = std::variant<std::string, std::int64_t>;

struct TraceClass {
  ByteOrder order = ByteOrder::little;
  std::optional<Uuid> uuid;
  FieldPtr packet_header;  // may be null
  std::map<std::string, EnvironmentValue> environment;
  std::map<std::string, ClockClass> clocks;
  std::map<std::uint64_t, StreamClass> streams;
};

// The text of a metadata file, TSDL (CTF 1.8) or JSON (CTF 2): plain, or extracted from its packets.
// Throws Unreadable (naming `file`) for foreign or truncated packets and for other text.
std::string metadata_text(std::span<const std::uint8_t> bytes, const std::string& file);

bool is_json(std::string_view text);

// Each throws MetadataError with line and column.
TraceClass parse_metadata(std::string_view text);
TraceClass parse_json_metadata(std::string_view text);

}  // namespace ldos::ctf
