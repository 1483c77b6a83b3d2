// Counts events by fields that many of them share, such as those that name their thread, without making rows of them.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "session.hpp"

namespace ldos::ctf {

// Nothing if the event has no such field, or one that is neither an integer nor text.
using FieldValue = std::variant<std::monostate, std::int64_t, std::string>;

struct TallyRow {
  std::size_t trace = 0;
  std::vector<FieldValue> values;  // of the fields that events are counted by
  std::uint64_t events = 0;
};

// The events of one name.
struct EventTally {
  std::set<std::string> fields;  // that any event declares
  std::vector<TallyRow> rows;    // ordered by trace and values
};

// By name of the wanted events. Throws Unreadable.
std::map<std::string, EventTally> tally_events(const Opened& opened, const std::set<std::string>& wanted,
                                               const std::vector<std::string>& by, unsigned threads);

}  // namespace ldos::ctf
