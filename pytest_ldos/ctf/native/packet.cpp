#include "packet.hpp"

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

}  // namespace

std::vector<Packet> read_packets(const Trace& trace, const MappedFile& file) { return PacketReader(trace, file).run(); }

}  // namespace ldos::ctf
