#include "stream.hpp"

#include <algorithm>

#include "event_reader.hpp"

namespace ldos::ctf {

Stream::Stream(const Trace& trace, std::size_t trace_number, const Parts& parts, const std::string& path,
               OnCorrupt on_corrupt)
    : trace_(&trace),
      trace_number_(trace_number),
      parts_(&parts),
      on_corrupt_(on_corrupt),
      file_(std::make_shared<const MappedFile>(path)),
      list_(std::make_shared<PacketList>(read_packets(trace, *file_, on_corrupt))) {
  find_only_cpu();
  carry_clock();
}

// Takes the upper part of a packet's time from the last event of the packet before.
void Stream::carry_clock() {
  std::uint64_t clock = 0;
  for (Packet& packet : list_->packets) {
    if (!packet.type->clock_goes_on) continue;
    const bool is_told = packet.begin_bits != 0;
    packet.begin_cycles = is_told ? advance(clock, packet.begin_cycles, packet.begin_bits) : clock;
    EventReader reader(*this, packet, first_place(packet));
    reader.run([](const Met&) { return true; });
    clock = reader.place().clock;
    if (is_told) packet.begin_ns = packet.type->clock.moment(packet.begin_cycles);
    if (packet.end_ns) packet.end_ns = packet.type->clock.moment(advance(clock, packet.end_cycles, packet.end_bits));
  }
}

void Stream::find_only_cpu() {
  const auto& packets = list_->packets;
  const auto is_same = [&](const Packet& packet) { return packet.cpu == packets.front().cpu; };
  if (packets.empty() || !std::all_of(packets.begin(), packets.end(), is_same)) return;
  only_cpu_ = static_cast<std::int32_t>(packets.front().cpu);
}

void Stream::drop_packets(const std::set<std::size_t>& indices) {
  std::size_t index = 0;
  std::erase_if(list_->packets, [&](const Packet&) { return indices.contains(index++); });
  find_only_cpu();
}

// A packet's end may be too early (LTTng up to 2.10): its events end where the next one begins.
bool Stream::may_hold(const Window& window, std::size_t number) const {
  const Packet& packet = list_->packets[number];
  if (packet.begin_ns && *packet.begin_ns > window.to_ns) return false;
  if (number + 1 == list_->packets.size()) return true;
  const Packet& next = list_->packets[number + 1];
  return !packet.end_ns || !next.begin_ns || std::max(*packet.end_ns, *next.begin_ns) >= window.from_ns;
}

const Packet& Stream::packet_at(std::uint64_t bit) const {
  const auto& packets = list_->packets;
  const auto begins_behind = [](std::uint64_t at, const Packet& packet) {
    return at < packet.offset * 8 + packet.first_event_bit;
  };
  return *std::prev(std::upper_bound(packets.begin(), packets.end(), bit, begins_behind));
}

}  // namespace ldos::ctf
