// Compares two readings of the same files byte by byte.
#pragma once

#include <algorithm>
#include <cstring>
#include <vector>

#include "session.hpp"

namespace ldos::ctf {

inline bool equal(const Buffer& a, const Buffer& b) {
  return a.bytes() == b.bytes() && (a.empty() || std::memcmp(a.data(), b.data(), a.bytes()) == 0);
}

inline bool equal(const Origin& a, const Origin& b) { return a.of_all == b.of_all && equal(a.of_each, b.of_each); }

inline bool equal(const Column& a, const Column& b) {
  return a.name == b.name && equal(a.values, b.values) && equal(a.offsets, b.offsets) && equal(a.valid, b.valid) &&
         a.dictionary.entries() == b.dictionary.entries();
}

inline bool equal(const Corruption& a, const Corruption& b) {
  return a.offset == b.offset && a.bytes == b.bytes && a.reason == b.reason;
}

template <typename T>
bool equal(const std::vector<T>& a, const std::vector<T>& b) {
  const auto is_equal = [](const T& one, const T& other) { return equal(one, other); };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), is_equal);
}

inline bool equal(const Table& a, const Table& b) {
  return a.name == b.name && a.rows == b.rows && equal(a.timestamp_ns, b.timestamp_ns) && equal(a.cpu_id, b.cpu_id) &&
         equal(a.trace, b.trace) && equal(a.columns, b.columns);
}

inline bool equal(const StreamSummary& a, const StreamSummary& b) {
  return a.path == b.path && a.packets == b.packets && a.events == b.events &&
         a.truncated_bytes == b.truncated_bytes && equal(a.corruptions, b.corruptions);
}

inline bool equal(const Session& a, const Session& b) {
  return equal(a.summaries, b.summaries) && equal(a.tables, b.tables);
}

}  // namespace ldos::ctf
