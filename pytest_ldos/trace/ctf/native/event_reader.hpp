// Iterates over the events of a packet.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bits.hpp"
#include "list_counts.hpp"
#include "stream.hpp"
#include "unreadable.hpp"
#include "walk_event.hpp"

namespace ldos::ctf {

// LTTng's compact header: 5 bits of id and 27 of the clock in one word, or an extended header.
struct CompactHeader {
  static constexpr std::uint64_t kBytes = 4;
  static constexpr std::uint64_t kExtendedAt = 1;
  static constexpr std::uint64_t kExtendedId = 31;
  static constexpr std::uint32_t kClockBits = 27;

  CompactHeader(const std::uint8_t* at, ByteOrder order) {
    const auto word = load_bytes<std::uint32_t>(at, order);
    id = order == ByteOrder::little ? word & 31 : word >> 27;
    low_clock = order == ByteOrder::little ? word >> 5 : word & ((1U << 27) - 1);
  }

  std::uint32_t id;
  std::uint32_t low_clock;
};

// LTTng's large header: 16 bits of id, then 32 of the clock, or an extended header.
struct LargeHeader {
  static constexpr std::uint64_t kBytes = 6;
  static constexpr std::uint64_t kExtendedAt = 2;
  static constexpr std::uint64_t kExtendedId = 65535;
  static constexpr std::uint32_t kClockBits = 32;

  LargeHeader(const std::uint8_t* at, ByteOrder order)
      : id(load_bytes<std::uint16_t>(at, order)), low_clock(load_bytes<std::uint32_t>(at + 2, order)) {}

  std::uint32_t id;
  std::uint32_t low_clock;
};

// The extended header of both: 32 bits of id, 64 of the clock.
inline constexpr std::uint64_t kExtendedBytes = 12;

// Moves a clock forward to the next value whose low `bits` bits are `low`.
inline std::uint64_t advance(std::uint64_t clock, std::uint64_t low, std::uint32_t bits) {
  if (bits == 64) return low;
  const std::uint64_t span = 1ULL << bits;
  return clock + ((low - clock) & (span - 1));
}

// A place between two events of a packet.
struct Place {
  std::uint64_t bit = 0;
  std::uint64_t clock = 0;
};

inline Place first_place(const Packet& packet) { return {packet.first_event_bit, packet.begin_cycles}; }

// An event that was found: its contexts begin at `bit` of the packet.
struct Met {
  const EventEntry& entry;
  std::int64_t time_ns;
  std::uint64_t bit;
};

class EventReader {
 public:
  EventReader(const Stream& stream, const Packet& packet, const Place& place)
      : stream_(stream),
        packet_(packet),
        index_(stream.parts().index_of.at(packet.type)),
        to_epoch_(packet.type->clock),
        base_(stream.data() + packet.offset),
        place_(place) {}

  // Calls `on_event(met)` for each event until it returns false or the packet ends.
  // An event for which it returned false has not been passed. Damage ends a packet, or throws
  // Unreadable if damage is to be refused.
  template <typename OnEvent>
  void run(const OnEvent& on_event) {
    try {
      switch (packet_.type->header_kind) {
        case HeaderKind::compact: return run_bytes<CompactHeader>(on_event);
        case HeaderKind::large: return run_bytes<LargeHeader>(on_event);
        case HeaderKind::interpreted: return run_bits(on_event);
      }
    } catch (const Overrun&) {
      if (packet_.truncated) return cut();
      end_at_damage("an event goes beyond its packet's content");
    } catch (const UnknownTag& tag) {
      end_at_damage("no option is declared for variant tag " + std::to_string(tag.value));
    } catch (const TimeOverflow&) {
      end_at_damage(kTimeOverflow);
    } catch (const Damage& damage) {
      end_at_damage(damage.reason);
    }
  }

  [[nodiscard]] const Place& place() const { return place_; }
  // Bytes after the last whole event of a truncated packet.
  [[nodiscard]] std::uint64_t truncated_bytes() const { return truncated_bytes_; }
  // The damage at which a packet ended.
  [[nodiscard]] const std::optional<Corruption>& corruption() const { return corruption_; }
  // Elements of the lists in the current event, if its size is variable.
  [[nodiscard]] const ListCounts& lists() const { return lists_; }

 private:
  struct Damage {
    std::string reason;
  };

  // Takes the values of an interpreted header.
  struct HeaderSink : Skip {
    void integer(std::int32_t leaf_number, std::uint64_t value) {
      const Leaf& leaf = layout.leaves[static_cast<std::size_t>(leaf_number)];
      if (leaf.name == "id" || leaf.name.ends_with(".id")) id = value;
      if (!leaf.clock.empty()) clock = advance(clock, value, leaf.size);
    }
    const Layout& layout;
    std::uint64_t clock;
    std::uint64_t id;
  };

  // Counts lists, and takes clock values from fields of an event.
  struct EventSink : Skip {
    void list_begin(std::int32_t leaf, std::uint64_t count) { lists.list_begin(leaf, count); }
    void integer(std::int32_t leaf_number, std::uint64_t value) {
      const Leaf& leaf = layout.leaves[static_cast<std::size_t>(leaf_number)];
      if (!leaf.clock.empty()) clock = advance(clock, value, leaf.size);
    }
    ListCounts& lists;
    const Layout& layout;
    std::uint64_t& clock;
  };

  // In an unfinished packet, bytes that are no event are unused space.
  void end_at_damage(const std::string& reason) {
    if (packet_.unfinished) return cut();
    const std::uint64_t at = packet_.offset + place_.bit / 8;
    if (stream_.on_corrupt() == OnCorrupt::refuse) throw Unreadable(stream_.path(), at, reason);
    corruption_ = Corruption{at, packet_.offset + packet_.content_bits / 8 - at, reason};
    place_.bit = packet_.content_bits;
  }

  void cut() {
    truncated_bytes_ = (std::max(packet_.no_event_from_bit, place_.bit) - place_.bit) / 8;
    place_.bit = packet_.content_bits;
  }

  [[noreturn, gnu::noinline]] static void fail_undeclared(std::uint64_t id) {
    throw Damage{"event id " + std::to_string(id) + " is not declared"};
  }

  const EventEntry& entry_of(std::uint64_t id) const {
    const EventEntry* entry = index_.find(id);
    if (entry == nullptr) [[unlikely]] fail_undeclared(id);
    return *entry;
  }

  // The bit after an event of variable size.
  std::uint64_t skip(const EventEntry& entry, std::uint64_t bit) {
    Cursor cursor{base_, bit, packet_.content_bits};
    lists_.reset(entry.type->layout.leaves.size());
    walk_event(entry.type->layout, packet_, cursor, slots_, lists_);
    return cursor.bit;
  }

  // The same for events whose fields may move the clock.
  std::uint64_t skip(const EventEntry& entry, std::uint64_t bit, std::uint64_t& clock) {
    if (!packet_.type->clock_in_events) return skip(entry, bit);
    const Layout& layout = entry.type->layout;
    Cursor cursor{base_, bit, packet_.content_bits};
    lists_.reset(layout.leaves.size());
    EventSink sink{{}, lists_, layout, clock};
    walk_event(layout, packet_, cursor, slots_, sink);
    return cursor.bit;
  }

  // The end of an event is known only once its id is: the processor cannot run ahead, and its own
  // prefetching stops at each page.
  static void prefetch(const std::uint8_t* at) {
    constexpr std::uintptr_t kDistance = 2048;
    __builtin_prefetch(reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(at) + kDistance));
  }

  // Both of LTTng's headers begin and end at a byte boundary.
  template <typename Header, typename OnEvent>
  void run_bytes(const OnEvent& on_event) {
    const ByteOrder order = packet_.type->header_order;
    const std::uint64_t end = packet_.content_bits / 8;
    const std::uint64_t stop = (packet_.no_event_from_bit + 7) / 8;
    const ClockToEpoch to_epoch = to_epoch_;
    const std::uint8_t* const base = base_;
    std::uint64_t clock = place_.clock;
    for (std::uint64_t at = (place_.bit + 7) / 8; at < stop;) {
      place_ = {at * 8, clock};
      prefetch(base + at);
      if (end < at + Header::kBytes) [[unlikely]] throw Overrun{};
      const Header header(base + at, order);
      std::uint64_t id = header.id;
      if (id != Header::kExtendedId) [[likely]] {
        clock = advance(clock, header.low_clock, Header::kClockBits);
        at += Header::kBytes;
      } else {
        at += Header::kExtendedAt + kExtendedBytes;
        if (end < at) throw Overrun{};
        id = load_bytes<std::uint32_t>(base + at - kExtendedBytes, order);
        clock = load_bytes<std::uint64_t>(base + at - 8, order);
      }
      const EventEntry& entry = entry_of(id);
      std::uint64_t next = at + entry.bytes;
      if (entry.bytes == EventEntry::kVariable) [[unlikely]] next = (skip(entry, at * 8) + 7) / 8;
      else if (end < next) [[unlikely]] throw Overrun{};
      if (!on_event(Met{entry, to_epoch(clock), at * 8})) return;
      at = next;
    }
    place_ = {packet_.content_bits, clock};
  }

  template <typename OnEvent>
  void run_bits(const OnEvent& on_event) {
    const StreamType& type = *packet_.type;
    const std::uint64_t only_id = type.types.size() == 1 ? type.type_by_id.begin()->first : 0;
    while (place_.bit < packet_.no_event_from_bit) {
      Cursor cursor{base_, place_.bit, packet_.content_bits};
      HeaderSink header{{}, type.header, place_.clock, only_id};
      walk(type.header, cursor, slots_, header);
      const EventEntry& entry = entry_of(header.id);
      const std::uint64_t begin = begins_at_header(entry.type->layout) ? place_.bit : cursor.bit;
      std::uint64_t clock = header.clock;
      const std::uint64_t next = skip(entry, begin, clock);
      if (next == place_.bit) throw Damage{"an event of no size"};
      if (!on_event(Met{entry, to_epoch_(header.clock), begin})) return;
      place_ = {next, clock};
    }
  }

  const Stream& stream_;
  const Packet& packet_;
  const EventIndex& index_;
  const ClockToEpoch& to_epoch_;
  const std::uint8_t* base_;
  Place place_;
  std::uint64_t truncated_bytes_ = 0;
  std::optional<Corruption> corruption_;
  ListCounts lists_;
  std::vector<std::uint64_t> slots_;
};

}  // namespace ldos::ctf
