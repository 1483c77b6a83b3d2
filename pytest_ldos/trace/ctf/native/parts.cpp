#include "parts.hpp"

#include <algorithm>

namespace ldos::ctf {

namespace {

// Beyond this many ids for each declared event, ids are looked up instead of indexed.
constexpr std::uint64_t kSparse = 16;

std::uint32_t bytes_to_skip(const EventType& type) {
  const std::uint64_t bytes = type.fixed_bytes.value_or(EventEntry::kVariable);
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(bytes, EventEntry::kVariable));
}

}  // namespace

EventIndex::EventIndex(const StreamType& stream) {
  std::uint64_t size = 0;
  for (const auto& [id, unused] : stream.type_by_id) {
    if (id < kSparse * (stream.types.size() + kSparse)) size = std::max(size, id + 1);
  }
  dense_.resize(size);
  for (const auto& [id, number] : stream.type_by_id) {
    const EventType& type = stream.types[number];
    EventEntry& entry = id < size ? dense_[id] : sparse_[id];
    entry = EventEntry{&type, bytes_to_skip(type), kNone};
  }
}

EventEntry& EventIndex::insert(std::uint64_t id) { return id < dense_.size() ? dense_[id] : sparse_[id]; }

Parts::Parts(const Trace& trace, const std::set<std::string>* wanted) {
  for (const auto& [stream_id, stream] : trace.streams) {
    EventIndex& index = index_of.emplace(&stream, stream).first->second;
    const std::map<std::uint64_t, std::size_t> in_order(stream.type_by_id.begin(), stream.type_by_id.end());
    for (const auto& [id, number] : in_order) {
      const EventType& type = stream.types[number];
      if (wanted != nullptr && !wanted->contains(type.name)) continue;
      index.insert(id).part = static_cast<std::int32_t>(all.size());
      all.push_back({&type, stream.header_kind != HeaderKind::interpreted});
    }
  }
}

}  // namespace ldos::ctf
