// The requested event types of a trace, numbered: its parts.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "trace.hpp"

namespace ldos::ctf {

// Properties of an event that a reader needs, by the id in its header.
struct EventEntry {
  static constexpr std::uint32_t kVariable = std::numeric_limits<std::uint32_t>::max();

  const EventType* type = nullptr;   // null if the id is not declared
  std::uint32_t bytes = kVariable;   // of contexts and payload
  std::int32_t part = kNone;         // kNone: not requested
};

// The entries of one stream type. Ids are small and dense in what LTTng writes.
class EventIndex {
 public:
  EventIndex() = default;
  explicit EventIndex(const StreamType& stream);

  EventEntry& insert(std::uint64_t id);

  [[nodiscard]] const EventEntry* find(std::uint64_t id) const {
    if (id < dense_.size()) [[likely]] return dense_[id].type != nullptr ? &dense_[id] : nullptr;
    const auto found = sparse_.find(id);
    return found != sparse_.end() ? &found->second : nullptr;
  }

 private:
  std::vector<EventEntry> dense_;
  std::unordered_map<std::uint64_t, EventEntry> sparse_;
};

struct Part {
  const EventType* type = nullptr;
  bool starts_at_byte = false;  // its contexts always begin at a byte
};

struct Parts {
  std::vector<Part> all;
  std::map<const StreamType*, EventIndex> index_of;

  // `wanted` holds names of events; null means all.
  Parts(const Trace& trace, const std::set<std::string>* wanted);
};

}  // namespace ldos::ctf
