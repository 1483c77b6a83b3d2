#include "stream.hpp"

#include <algorithm>

#include "record.hpp"
#include "unreadable.hpp"
#include "walk.hpp"

namespace ldos::ctf {

namespace {

constexpr std::uint64_t kPacketMagic = 0xC1FC1FC1;
constexpr std::uint64_t kUnknownSize = ~0ULL;

// Reads the head of one packet after the other.
class PacketReader {
 public:
  PacketReader(const Trace& trace, const MappedFile& file) : trace_(trace), file_(file) {}

  std::vector<Packet> run() {
    std::vector<Packet> packets;
    for (std::uint64_t offset = 0; offset < file_.bytes().size();) {
      auto [packet, bytes] = read(offset);
      packets.push_back(packet);
      offset += bytes;
    }
    return packets;
  }

 private:
  [[noreturn]] void fail(std::uint64_t offset, const std::string& reason) const {
    throw Unreadable(file_.path(), offset, reason);
  }

  std::pair<Packet, std::uint64_t> read(std::uint64_t offset) {
    const std::uint64_t available = (file_.bytes().size() - offset) * 8;
    Cursor cursor{file_.bytes().data() + offset, 0, available};
    Packet packet;
    packet.offset = offset;
    try {
      packet.type = &stream_type(cursor, offset);
      const Record context = read_record(packet.type->packet_context, cursor, slots_);
      describe(context, packet);
      return {packet, size(context, packet, cursor, available)};
    } catch (const Overrun&) {
      fail(offset, "the file ends inside a packet's header");
    } catch (const UnknownTag& tag) {
      fail(offset, "packet header with an undeclared variant tag " + std::to_string(tag.value));
    }
  }

  const StreamType& stream_type(Cursor& cursor, std::uint64_t offset) {
    const Record header = read_record(trace_.packet_header, cursor, slots_);
    if (const auto magic = header.find("magic"); magic && *magic != kPacketMagic) {
      fail(offset, "not a packet (wrong magic number)");
    }
    if (trace_.declared.uuid && !header.uuid.empty() && !same_uuid(header.uuid)) {
      fail(offset, "packet of another trace (its uuid is not the metadata's)");
    }
    const std::uint64_t id = header.find("stream_id").value_or(0);
    const auto found = trace_.streams.find(id);
    if (found == trace_.streams.end()) fail(offset, "packet of stream " + std::to_string(id) + ", which is not declared");
    return found->second;
  }

  [[nodiscard]] bool same_uuid(const std::vector<std::uint64_t>& bytes) const {
    return std::equal(bytes.begin(), bytes.end(), trace_.declared.uuid->begin(), trace_.declared.uuid->end());
  }

  void describe(const Record& context, Packet& packet) const {
    if (const auto begin = context.find("timestamp_begin")) {
      packet.begin_cycles = *begin;
      packet.begin_ns = trace_.clock(*begin);
    }
    if (const auto end = context.find("timestamp_end")) packet.end_ns = trace_.clock(*end);
    packet.sequence = context.find("packet_seq_num");
    packet.discarded = context.find("events_discarded");
    for (const Leaf& leaf : packet.type->packet_context.leaves) {
      if (leaf.name == "events_discarded") packet.discarded_bits = leaf.size;
    }
    if (const auto cpu = context.find("cpu_id")) packet.cpu = static_cast<std::int64_t>(*cpu);
  }

  // Fills the packet's extent and returns the bytes to the next one.
  std::uint64_t size(const Record& context, Packet& packet, const Cursor& cursor, std::uint64_t available) const {
    std::uint64_t whole = context.find("packet_size").value_or(kUnknownSize);
    std::uint64_t content = context.find("content_size").value_or(whole);
    if (whole == kUnknownSize) whole = available;
    if (content == kUnknownSize) content = whole;
    if (whole == 0 || whole % 8 != 0) fail(packet.offset, "packet size is not a whole number of bytes");
    if (content > whole) fail(packet.offset, "packet content is larger than the packet");
    if (content < cursor.bit) fail(packet.offset, "packet content ends inside its header");
    packet.truncated = content > available;
    packet.content_bits = std::min(content, available);
    packet.first_event_bit = cursor.bit;
    return std::min(whole, available) / 8;
  }

  const Trace& trace_;
  const MappedFile& file_;
  std::vector<std::uint64_t> slots_;
};

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
    while (cursor_.bit < cursor_.end) {
      start_ = cursor_.bit;
      try {
        const EventType& type = header();
        const std::uint64_t at = cursor_.bit;
        skip(type);
        if (cursor_.bit == start_) fail("an event of no size");
        ++report.events;
        on_event(type, stream_.trace().clock(clock_), packet_.offset * 8 + at);
      } catch (const Overrun&) {
        if (!packet_.truncated) fail("an event goes beyond its packet's content");
        report.truncated_bytes += (cursor_.end - start_) / 8;
        return;
      } catch (const UnknownTag& tag) {
        fail("no option is declared for variant tag " + std::to_string(tag.value));
      }
    }
  }

 private:
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

// Follows a counter of lost events. It may wrap, and LTTng's is seen to step back and return:
// differences are signed, and only what goes beyond the highest value so far is a new loss.
class LossCounter {
 public:
  std::uint64_t advance_to(std::uint64_t counter, std::uint32_t bits) {
    total_ += sign_extend(counter - last_, bits);
    last_ = counter;
    const auto risen = static_cast<std::int64_t>(total_ - highest_);
    if (risen <= 0) return 0;
    highest_ = total_;
    return static_cast<std::uint64_t>(risen);
  }

 private:
  std::uint64_t last_ = 0;
  std::uint64_t total_ = 0;  // modulo 2^64
  std::uint64_t highest_ = 0;
};

std::vector<Gap> find_gaps(const std::vector<Packet>& packets) {
  std::vector<Gap> gaps;
  const Packet* before = nullptr;
  LossCounter lost;
  for (const Packet& packet : packets) {
    Gap gap;
    const std::int64_t begin = packet.begin_ns.value_or(0);
    gap.from_ns = before != nullptr ? before->end_ns.value_or(begin) : begin;
    gap.to_ns = packet.end_ns.value_or(begin);
    if (packet.discarded) gap.events = lost.advance_to(*packet.discarded, packet.discarded_bits);
    if (before != nullptr && packet.sequence && before->sequence && *packet.sequence > *before->sequence + 1) {
      gap.packets = *packet.sequence - *before->sequence - 1;
    }
    if (gap.events != 0 || gap.packets != 0) gaps.push_back(gap);
    before = &packet;
  }
  return gaps;
}

}  // namespace

Stream::Stream(const Trace& trace, const std::string& path)
    : trace_(&trace), file_(path), packets_(PacketReader(trace, file_).run()) {}

StreamReport Stream::scan(const Window& window, std::vector<std::vector<Occurrence>>& parts) const {
  StreamReport report;
  report.gaps = find_gaps(packets_);
  for (const Packet& packet : packets_) {
    if (packet.begin_ns && *packet.begin_ns > window.to_ns) continue;
    if (packet.end_ns && !packet.truncated && *packet.end_ns < window.from_ns) continue;
    EventScan(*this, packet).run(report, [&](const EventType& type, std::int64_t time_ns, std::uint64_t bit) {
      if (type.part == kNone || !window.holds(time_ns)) return;
      parts[static_cast<std::size_t>(type.part)].push_back({time_ns, bit});
    });
  }
  return report;
}

const Packet& Stream::packet_at(std::uint64_t bit) const {
  const auto after = std::upper_bound(packets_.begin(), packets_.end(), bit / 8,
                                      [](std::uint64_t byte, const Packet& packet) { return byte < packet.offset; });
  return *std::prev(after);
}

}  // namespace ldos::ctf
