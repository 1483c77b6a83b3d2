#include "packet.hpp"

#include <algorithm>
#include <cstring>

#include "record.hpp"
#include "unreadable.hpp"

namespace ldos::ctf {

namespace {

constexpr std::uint32_t kPacketMagic = 0xC1FC1FC1;
constexpr std::uint64_t kNeverWritten = ~0ULL;

// The bytes every packet of a trace begins with: magic number and `uuid`, as far as declared.
std::string packet_signature(const Trace& trace, const std::optional<Uuid>& uuid) {
  std::string signature;
  for (const Leaf& leaf : trace.packet_header.leaves) {
    if (leaf.fixed_bit != signature.size() * 8) break;
    if (signature.empty() && leaf.name == "magic" && leaf.size == 32) {
      for (int i = 0; i < 4; ++i) {
        const int byte = leaf.order == ByteOrder::little ? i : 3 - i;
        signature += static_cast<char>(kPacketMagic >> (8 * byte) & 0xFFU);
      }
    } else if (leaf.name == "uuid" && leaf.size == 8 && leaf.count == 16 && uuid) {
      signature.append(uuid->begin(), uuid->end());
    }
  }
  return signature;
}

// A packet and the sizes it gives itself, in bits.
struct Head {
  Packet packet;
  std::optional<std::uint64_t> whole;
  std::optional<std::uint64_t> content;
  std::optional<Uuid> uuid;
};

// Iterates over the headers of packets.
class PacketReader {
 public:
  PacketReader(const Trace& trace, const MappedFile& file)
      : trace_(trace), file_(file), bytes_(file.bytes()) {
    expect_uuid(trace.declared.uuid);
  }

  PacketList run(OnCorrupt on_corrupt) {
    find_uuid();
    for (std::uint64_t offset = 0; offset < bytes_.size();) {
      try {
        if (is_blank(offset)) throw Overrun{};
        list_.packets.push_back(read(offset));
        offset += list_.packets.back().bytes;
      } catch (const Overrun&) {
        list_.truncated_bytes = bytes_.size() - offset;
        break;
      } catch (const Unreadable& error) {
        if (on_corrupt == OnCorrupt::refuse) throw;
        const std::uint64_t next = find_head(offset + 1);
        list_.corruptions.push_back({offset, next - offset, error.what()});
        offset = next;
      }
    }
    return std::move(list_);
  }

 private:
  [[noreturn]] void fail(std::uint64_t offset, const std::string& reason) const {
    throw Unreadable(file_.path(), offset, reason);
  }

  void expect_uuid(const std::optional<Uuid>& uuid) {
    uuid_ = uuid;
    signature_ = packet_signature(trace_, uuid_);
  }

  // A file may have the uuid of another trace in all its packets, if its metadata was replaced
  // by hand. If one packet has the metadata's uuid, the others are damaged.
  void find_uuid() {
    if (bytes_.empty() || !uuid_ || find_head(0) != bytes_.size()) return;
    expect_uuid(std::nullopt);
    try {
      const std::optional<Uuid> found = head(0).uuid;
      expect_uuid(found ? found : trace_.declared.uuid);
    } catch (const Overrun&) {
      expect_uuid(trace_.declared.uuid);
    } catch (const Unreadable&) {
      expect_uuid(trace_.declared.uuid);
    }
  }

  [[nodiscard]] std::uint64_t left(std::uint64_t offset) const { return bytes_.size() - offset; }

  // True if only zeros follow: space that was never written.
  bool is_blank(std::uint64_t offset) {
    if (signature_.empty() || bytes_[offset] != 0) return false;
    if (!blank_from_) blank_from_ = written_end(0, bytes_.size());
    return offset >= *blank_from_;
  }

  [[nodiscard]] std::uint64_t written_end(std::uint64_t begin, std::uint64_t end) const {
    while (end > begin && bytes_[end - 1] == 0) --end;
    return end;
  }

  Packet read(std::uint64_t offset) {
    Head found = head(offset);
    settle_extent(found);
    return found.packet;
  }

  // All fields of a packet's header and context. Throws Overrun if the file ends inside them.
  Head head(std::uint64_t offset) {
    check_signature(offset);
    Cursor cursor{bytes_.data() + offset, 0, left(offset) * 8};
    Head found;
    found.packet.offset = offset;
    try {
      const Record header = read_record(trace_.packet_header, cursor, slots_);
      describe_stream(header, found);
      const Record context = read_record(found.packet.type->packet_context, cursor, slots_);
      describe(context, found);
      for (const Outer& outer : found.packet.type->kept) {
        found.packet.kept.push_back((outer.scope == Scope::packet_header ? header : context).values[outer.leaf]);
      }
    } catch (const TimeOverflow&) {
      fail(offset, std::string("packet with ") + kTimeOverflow);
    } catch (const UnknownTag& tag) {
      fail(offset, "packet header with an undeclared variant tag " + std::to_string(tag.value));
    }
    found.packet.first_event_bit = cursor.bit;
    return found;
  }

  void check_signature(std::uint64_t offset) const {
    const std::size_t known = std::min<std::uint64_t>(left(offset), signature_.size());
    if (std::memcmp(bytes_.data() + offset, signature_.data(), std::min<std::size_t>(known, sizeof kPacketMagic)) != 0) {
      fail(offset, "not a packet (wrong magic number)");
    }
    if (std::memcmp(bytes_.data() + offset, signature_.data(), known) != 0) fail_uuid(offset);
  }

  [[noreturn]] void fail_uuid(std::uint64_t offset) const {
    fail(offset, "packet of another trace (its uuid is not the metadata's)");
  }

  void describe_stream(const Record& header, Head& found) const {
    Packet& packet = found.packet;
    if (const auto magic = header.find("magic"); magic && *magic != kPacketMagic) {
      fail(packet.offset, "not a packet (wrong magic number)");
    }
    found.uuid = uuid_of(header);
    if (uuid_ && found.uuid && found.uuid != uuid_) fail_uuid(packet.offset);
    packet.foreign = trace_.declared.uuid && found.uuid && found.uuid != trace_.declared.uuid;
    packet.type = &stream_of(header, packet.offset);
    packet.instance = header.find("stream_instance_id");
  }

  static std::optional<Uuid> uuid_of(const Record& header) {
    Uuid uuid{};
    if (header.uuid.size() != uuid.size()) return std::nullopt;
    std::transform(header.uuid.begin(), header.uuid.end(), uuid.begin(),
                   [](std::uint64_t byte) { return static_cast<std::uint8_t>(byte); });
    return uuid;
  }

  // If packets do not name their stream, there is only one.
  [[nodiscard]] const StreamType& stream_of(const Record& header, std::uint64_t offset) const {
    const auto id = header.find("stream_id");
    if (!id && trace_.streams.size() == 1) return trace_.streams.begin()->second;
    const auto found = trace_.streams.find(id.value_or(0));
    if (found != trace_.streams.end()) return found->second;
    fail(offset, "packet of stream " + std::to_string(id.value_or(0)) + ", which is not declared");
  }

  void describe(const Record& context, Head& found) const {
    Packet& packet = found.packet;
    if (const auto begin = context.find("timestamp_begin")) {
      packet.begin_cycles = *begin;
      packet.begin_ns = packet.type->clock(*begin);
    }
    // An end before the beginning, or beyond all time, was never written.
    const auto end = context.find("timestamp_end");
    packet.end_cycles = end.value_or(0);
    if (end && *end >= packet.begin_cycles) packet.end_ns = packet.type->clock.moment(*end);
    packet.sequence = context.find("packet_seq_num");
    packet.discarded = context.find("events_discarded");
    for (const Leaf& leaf : packet.type->packet_context.leaves) {
      if (leaf.name == "events_discarded") packet.discarded_bits = leaf.size;
      if (leaf.name == "packet_seq_num") packet.sequence_bits = leaf.size;
      if (leaf.name == "timestamp_begin") packet.begin_bits = leaf.size;
      if (leaf.name == "timestamp_end") packet.end_bits = leaf.size;
    }
    if (const auto cpu = context.find("cpu_id")) packet.cpu = static_cast<std::int64_t>(*cpu);
    found.whole = size_of(context, "packet_size", packet);
    found.content = size_of(context, "content_size", packet);
  }

  // A size of 0, or with all bits set, is one that was never written.
  static std::optional<std::uint64_t> size_of(const Record& context, const char* name, Packet& packet) {
    const auto size = context.find(name);
    if (size != 0U && size != kNeverWritten) return size;
    packet.unfinished = true;
    return std::nullopt;
  }

  // Limits the declared size of a packet to the available bytes.
  void settle_extent(Head& found) {
    Packet& packet = found.packet;
    check_sizes(found);
    const std::uint64_t available = left(packet.offset);
    const std::uint64_t behind_head = packet.offset + (packet.first_event_bit + 7) / 8;
    if (found.whole) {
      packet.bytes = *found.whole / 8;
    } else if (found.content) {
      packet.bytes = *found.content / 8 + (*found.content % 8 != 0 ? 1 : 0);
    } else {
      packet.bytes = find_head(behind_head) - packet.offset;
    }
    packet.unfinished = packet.unfinished && !found.content;
    if (packet.bytes > available) check_end(packet, find_head(behind_head));
    const std::uint64_t content = found.content.value_or(packet.bytes * 8);
    packet.truncated = content > available * 8;
    if (packet.truncated) packet.missing_bytes = (content - available * 8 - 1) / 8 + 1;
    if (packet.bytes > available) packet.missing_padding = packet.bytes - available - packet.missing_bytes;
    packet.bytes = std::min(packet.bytes, available);
    packet.content_bits = std::min(content, available * 8);
    packet.no_event_from_bit = packet.content_bits;
    if (packet.unfinished) {
      packet.no_event_from_bit = (written_end(packet.offset, packet.offset + packet.bytes) - packet.offset) * 8;
    }
  }

  void check_sizes(const Head& found) const {
    const std::uint64_t offset = found.packet.offset;
    if (found.whole && *found.whole % 8 != 0) fail(offset, "packet size is not a whole number of bytes");
    if (found.whole && found.content && *found.content > *found.whole) {
      fail(offset, "packet content is larger than the packet");
    }
    const auto content = found.content ? found.content : found.whole;
    if (content && *content < found.packet.first_event_bit) fail(offset, "packet content ends inside its header");
  }

  // A packet that extends beyond the file must be the last one of a truncated file.
  void check_end(const Packet& packet, std::uint64_t next) const {
    if (next == bytes_.size()) return;
    fail(packet.offset, "packet of " + std::to_string(packet.bytes) +
                            " bytes goes beyond the end of the file, but another one begins at byte " +
                            std::to_string(next));
  }

  // The first valid packet header at or after `from`; the end of the file if there is none.
  std::uint64_t find_head(std::uint64_t from) {
    if (signature_.empty()) return bytes_.size();
    while (from < bytes_.size()) {
      const void* found = ::memmem(bytes_.data() + from, left(from), signature_.data(), signature_.size());
      if (found == nullptr) break;
      from = static_cast<std::uint64_t>(static_cast<const std::uint8_t*>(found) - bytes_.data());
      if (makes_sense(from)) return from;
      ++from;
    }
    return bytes_.size();
  }

  bool makes_sense(std::uint64_t offset) {
    try {
      check_sizes(head(offset));
      return true;
    } catch (const Overrun&) {
      return false;
    } catch (const Unreadable&) {
      return false;
    }
  }

  const Trace& trace_;
  const MappedFile& file_;
  std::span<const std::uint8_t> bytes_;
  std::optional<Uuid> uuid_;  // that packets must have
  std::string signature_;
  std::vector<std::uint64_t> slots_;
  std::optional<std::uint64_t> blank_from_;
  PacketList list_;
};

}  // namespace

PacketList read_packets(const Trace& trace, const MappedFile& file, OnCorrupt on_corrupt) {
  return PacketReader(trace, file).run(on_corrupt);
}

}  // namespace ldos::ctf
