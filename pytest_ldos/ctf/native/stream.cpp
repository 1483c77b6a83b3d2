#include "stream.hpp"

#include <algorithm>

#include "record.hpp"
#include "unreadable.hpp"
#include "walk.hpp"

namespace ldos::ctf {

namespace {

// Moves a clock forward to the next value whose low `bits` bits are `low`.
std::uint64_t advance(std::uint64_t clock, std::uint64_t low, std::uint32_t bits) {
  if (bits == 64) return low;
  const std::uint64_t mask = (1ULL << bits) - 1;
  const std::uint64_t next = (clock & ~mask) | low;
  return low < (clock & mask) ? next + mask + 1 : next;
}

// Goes through the events of one packet.
class EventScan {
 public:
  EventScan(const Stream& stream, const Packet& packet) : stream_(stream), packet_(packet) {
    cursor_.base = stream.data() + packet.offset;
    cursor_.bit = packet.first_event_bit;
    cursor_.end = packet.content_bits;
    clock_ = packet.begin_cycles;
  }

  template <typename OnEvent>
  void run(StreamReport& report, const OnEvent& on_event) {
    while (cursor_.bit < packet_.no_event_from_bit) {
      start_ = cursor_.bit;
      try {
        const EventType& type = header();
        const std::uint64_t at = cursor_.bit;
        skip(type);
        if (cursor_.bit == start_) fail("an event of no size");
        ++report.events;
        on_event(type, stream_.trace().clock(clock_), packet_.offset * 8 + at);
      } catch (const Overrun&) {
        if (!packet_.truncated && !packet_.unfinished) fail("an event goes beyond its packet's content");
        return cut(report);
      } catch (const UnknownTag& tag) {
        if (packet_.unfinished) return cut(report);
        fail("no option is declared for variant tag " + std::to_string(tag.value));
      } catch (const Unreadable&) {
        if (packet_.unfinished) return cut(report);
        throw;
      }
    }
  }

 private:
  void cut(StreamReport& report) const {
    const std::uint64_t end = packet_.unfinished ? packet_.no_event_from_bit : cursor_.end;
    report.truncated_bytes += (std::max(end, start_) - start_) / 8;
  }

  [[noreturn]] void fail(const std::string& reason) const {
    throw Unreadable(stream_.path(), packet_.offset + start_ / 8, reason);
  }

  const EventType& header() {
    std::uint64_t id = 0;
    switch (packet_.type->header_kind) {
      case HeaderKind::compact: id = compact_header(); break;
      case HeaderKind::large: id = large_header(); break;
      case HeaderKind::interpreted: id = interpreted_header(); break;
    }
    const EventType* type = packet_.type->find(id);
    if (type == nullptr) fail("event id " + std::to_string(id) + " is not declared");
    return *type;
  }

  std::uint64_t take(std::uint32_t bits) {
    if (cursor_.left() < bits) throw Overrun{};
    const std::uint64_t value = load_bits(cursor_.base, cursor_.bit, bits, packet_.type->header_order);
    cursor_.bit += bits;
    return value;
  }

  void to_byte() {
    const std::uint64_t aligned = (cursor_.bit + 7) & ~7ULL;
    if (aligned > cursor_.end) throw Overrun{};
    cursor_.bit = aligned;
  }

  std::uint64_t compact_header() {
    to_byte();
    const std::uint64_t id = take(5);
    if (id == 31) return extended_header();
    clock_ = advance(clock_, take(27), 27);
    return id;
  }

  std::uint64_t large_header() {
    to_byte();
    const std::uint64_t id = take(16);
    if (id == 65535) return extended_header();
    clock_ = advance(clock_, take(32), 32);
    return id;
  }

  std::uint64_t extended_header() {
    to_byte();
    const std::uint64_t id = take(32);
    clock_ = take(64);
    return id;
  }

  std::uint64_t interpreted_header() {
    const Layout& layout = packet_.type->header;
    const Record record = read_record(layout, cursor_, slots_);
    std::uint64_t id = packet_.type->types.size() == 1 ? packet_.type->type_by_id.begin()->first : 0;
    for (std::size_t i = 0; i < layout.leaves.size(); ++i) {
      if (!record.present[i]) continue;
      const Leaf& leaf = layout.leaves[i];
      if (leaf.name == "id" || leaf.name.ends_with(".id")) id = record.values[i];
      if (!leaf.clock.empty()) clock_ = advance(clock_, record.values[i], leaf.size);
    }
    return id;
  }

  void skip(const EventType& type) {
    if (type.fixed_bytes) {
      if (cursor_.left() < *type.fixed_bytes * 8) throw Overrun{};
      cursor_.bit += *type.fixed_bytes * 8;
      return;
    }
    Skip nothing;
    walk(type.layout, cursor_, slots_, nothing);
  }

  const Stream& stream_;
  const Packet& packet_;
  Cursor cursor_;
  std::uint64_t clock_ = 0;
  std::uint64_t start_ = 0;
  std::vector<std::uint64_t> slots_;
};

}  // namespace

Stream::Stream(const Trace& trace, const std::string& path, OnCorrupt on_corrupt)
    : trace_(&trace), file_(path), on_corrupt_(on_corrupt), list_(read_packets(trace, file_, on_corrupt)) {}

void Stream::drop_packets(const std::set<std::size_t>& indices) {
  std::size_t index = 0;
  std::erase_if(list_.packets, [&](const Packet&) { return indices.contains(index++); });
}

StreamReport Stream::scan(const Window& window, std::vector<std::vector<Occurrence>>& parts) const {
  StreamReport report;
  report.truncated_bytes = list_.truncated_bytes;
  report.corruptions = list_.corruptions;
  const auto& packets = list_.packets;
  for (std::size_t i = 0; i < packets.size(); ++i) {
    const Packet& packet = packets[i];
    if (packet.begin_ns && *packet.begin_ns > window.to_ns) continue;
    // A packet's end may be too early (LTTng up to 2.10): its events end where the next one begins.
    const Packet* next = i + 1 < packets.size() ? &packets[i + 1] : nullptr;
    if (packet.end_ns && next != nullptr && next->begin_ns &&
        std::max(*packet.end_ns, *next->begin_ns) < window.from_ns) {
      continue;
    }
    try {
      EventScan(*this, packet).run(report, [&](const EventType& type, std::int64_t time_ns, std::uint64_t bit) {
        if (type.part == kNone || !window.holds(time_ns)) return;
        parts[static_cast<std::size_t>(type.part)].push_back({time_ns, bit});
      });
    } catch (const Unreadable& error) {
      if (on_corrupt_ == OnCorrupt::refuse) throw;
      const std::uint64_t at = error.offset.value_or(packet.offset);
      report.corruptions.push_back({at, packet.offset + packet.content_bits / 8 - at, error.what()});
    }
  }
  return report;
}

const Packet& Stream::packet_at(std::uint64_t bit) const {
  const auto after = std::upper_bound(list_.packets.begin(), list_.packets.end(), bit / 8,
                                      [](std::uint64_t byte, const Packet& packet) { return byte < packet.offset; });
  return *std::prev(after);
}

}  // namespace ldos::ctf
