// Counts events by fields that many of them share, such as those that name their thread, without making rows of them.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "session.hpp"

namespace ldos::ctf {

// Nothing if the event has no such field, or one that is neither an integer nor text.
using FieldValue = std::variant<std::monostate, std::int64_t, std::string>;

// The events of one name.
struct EventTally {
  std::set<std::string> fields;  // that any event declares
  // Number of events by trace and by the values of the fields that they are counted by.
  std::map<std::pair<std::size_t, std::vector<FieldValue>>, std::uint64_t> counts;
};

// By name of the wanted events. Throws Unreadable.
std::map<std::string, EventTally> tally_events(const Opened& opened, const std::set<std::string>& wanted,
                                               const std::vector<std::string>& by, unsigned threads);

}  // namespace ldos::ctf
