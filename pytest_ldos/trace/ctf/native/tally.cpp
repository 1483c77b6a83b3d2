#include "tally.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "event_reader.hpp"
#include "parallel.hpp"

namespace ldos::ctf {

namespace {

constexpr std::uint64_t kRunBytes = 8 << 20;  // counted at once by one thread

using Counts = std::map<std::vector<FieldValue>, std::uint64_t>;

// Adjacent bytes, from the first one of an event's contexts.
struct Bytes {
  std::uint64_t begin;
  std::uint64_t end;
};

// Takes the values of the fields that events are counted by.
struct KeySink : Skip {
  void integer(std::int32_t leaf, std::uint64_t value) { set(leaf, static_cast<std::int64_t>(value)); }
  void text(std::int32_t leaf, std::string_view value) { set(leaf, std::string(value)); }

  void set(std::int32_t leaf, FieldValue value) {
    const auto place = std::find(leaves.begin(), leaves.end(), leaf);
    if (place != leaves.end()) values[static_cast<std::size_t>(place - leaves.begin())] = std::move(value);
  }

  const std::vector<std::int32_t>& leaves;
  std::vector<FieldValue>& values;
};

// Counts the events of one part in one stream. If their fields are at fixed bytes, those of recent ones are compared
// as they are, and few events are walked.
class PartCounter {
 public:
  PartCounter(const Part& part, const std::vector<std::string>& by) : layout_(part.type->layout) {
    for (const std::string& name : by) {
      const auto is_it = [&](const Leaf& leaf) { return leaf.name == name; };
      const auto found = std::find_if(layout_.leaves.begin(), layout_.leaves.end(), is_it);
      const bool is_there = found != layout_.leaves.end();
      leaves_.push_back(is_there ? static_cast<std::int32_t>(found - layout_.leaves.begin()) : kNone);
      if (is_there) is_direct_ &= part.starts_at_byte && add_bytes(*found);
    }
    join_bytes();
    if (is_direct_) recent_.resize(kRecent);
  }

  void count(const Packet& packet, Cursor cursor, std::vector<std::uint64_t>& slots) {
    if (!is_direct_) {
      ++*find(packet, cursor, slots);
      return;
    }
    const std::uint8_t* const event = cursor.base + cursor.bit / 8;
    Recent& recent = recent_[hash(event)];
    if (recent.event == nullptr || !is_same(recent.event, event)) recent = {event, find(packet, cursor, slots)};
    ++*recent.count;
  }

  [[nodiscard]] const Counts& counts() const { return counts_; }

 private:
  static constexpr std::size_t kRecent = 256;

  struct Recent {
    const std::uint8_t* event = nullptr;
    std::uint64_t* count = nullptr;
  };

  bool add_bytes(const Leaf& leaf) {
    if (!leaf.fixed_bit || *leaf.fixed_bit % 8 != 0 || leaf.optional) return false;
    const std::uint64_t size = leaf.kind == LeafKind::text ? leaf.count : leaf.size / 8;
    if (size == 0 || (leaf.kind != LeafKind::text && (leaf.kind != LeafKind::integer || leaf.size % 8 != 0))) return false;
    bytes_.push_back({*leaf.fixed_bit / 8, *leaf.fixed_bit / 8 + size});
    return true;
  }

  void join_bytes() {
    std::sort(bytes_.begin(), bytes_.end(), [](const Bytes& a, const Bytes& b) { return a.begin < b.begin; });
    std::vector<Bytes> joined;
    for (const Bytes& each : bytes_) {
      if (!joined.empty() && joined.back().end == each.begin) joined.back().end = each.end;
      else joined.push_back(each);
    }
    bytes_ = std::move(joined);
  }

  // By the first and the last bytes of each range: a thread's number is often at one of its ends.
  [[nodiscard]] std::size_t hash(const std::uint8_t* event) const {
    std::uint64_t mixed = 0;
    for (const Bytes& each : bytes_) {
      const std::size_t size = std::min<std::size_t>(each.end - each.begin, sizeof(std::uint64_t));
      std::uint64_t first = 0;
      std::uint64_t last = 0;
      std::memcpy(&first, event + each.begin, size);
      std::memcpy(&last, event + each.end - size, size);
      mixed = (mixed ^ first ^ last * 0xff51afd7ed558ccdULL) * 0x9e3779b97f4a7c15ULL;
    }
    return mixed >> 56;
  }

  [[nodiscard]] bool is_same(const std::uint8_t* a, const std::uint8_t* b) const {
    std::uint64_t difference = 0;
    for (const Bytes& each : bytes_) {
      std::uint64_t at = each.begin;
      for (; at + 8 <= each.end; at += 8) difference |= load_native<std::uint64_t>(a + at) ^ load_native<std::uint64_t>(b + at);
      for (; at < each.end; ++at) difference |= static_cast<std::uint64_t>(a[at] ^ b[at]);
    }
    return difference == 0;
  }

  std::uint64_t* find(const Packet& packet, Cursor& cursor, std::vector<std::uint64_t>& slots) {
    std::vector<FieldValue> values(leaves_.size());
    KeySink sink{{}, leaves_, values};
    walk_event(layout_, packet, cursor, slots, sink);
    return &counts_[std::move(values)];
  }

  const Layout& layout_;
  std::vector<std::int32_t> leaves_;  // of each field, or kNone
  std::vector<Bytes> bytes_;          // of all fields
  bool is_direct_ = true;
  std::vector<Recent> recent_;
  Counts counts_;
};

std::vector<PartCounter> tally_run(const Stream& stream, const Run& run, const std::vector<std::string>& by) {
  std::vector<PartCounter> parts;
  std::vector<std::uint64_t> slots;
  for (const Part& part : stream.parts().all) parts.emplace_back(part, by);
  for (std::size_t number = run.first; number <= run.last; ++number) {
    const Packet& packet = stream.packets()[number];
    stream.populate(packet);
    EventReader reader(stream, packet, first_place(packet));
    reader.run([&](const Met& met) {
      if (met.entry.part == kNone) return true;
      const Cursor cursor{stream.data() + packet.offset, met.bit, packet.content_bits};
      parts[static_cast<std::size_t>(met.entry.part)].count(packet, cursor, slots);
      return true;
    });
  }
  return parts;
}

}  // namespace

std::map<std::string, EventTally> tally_events(const Opened& opened, const std::set<std::string>& wanted,
                                               const std::vector<std::string>& by, unsigned threads) {
  std::vector<std::unique_ptr<Parts>> parts;
  for (const auto& trace : opened.traces) parts.push_back(std::make_unique<Parts>(*trace, &wanted));
  const std::vector<Run> runs = find_runs(opened.streams, {}, kRunBytes);
  std::vector<std::vector<PartCounter>> counted(runs.size());
  for_each_index(runs.size(), threads, [&](std::size_t i) {
    const Stream& stream = *opened.streams[runs[i].stream];
    counted[i] = tally_run(Stream(stream, *parts[stream.trace_number()]), runs[i], by);
  });
  std::map<std::string, EventTally> result;
  for (const auto& stream : opened.streams) {
    for (const Part& part : parts[stream->trace_number()]->all) {
      EventTally& tally = result[part.type->name];
      for (const Leaf& leaf : part.type->layout.leaves) tally.fields.insert(leaf.name);
    }
  }
  for (std::size_t i = 0; i < counted.size(); ++i) {
    const std::size_t trace = opened.streams[runs[i].stream]->trace_number();
    for (std::size_t part = 0; part < counted[i].size(); ++part) {
      auto& counts = result[parts[trace]->all[part].type->name].counts;
      for (const auto& [values, events] : counted[i][part].counts()) counts[{trace, values}] += events;
    }
  }
  return result;
}

}  // namespace ldos::ctf
