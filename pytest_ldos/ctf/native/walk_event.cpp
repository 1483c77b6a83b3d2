#include "walk_event.hpp"

namespace ldos::ctf {

void take_outers(const Layout& layout, const Packet& packet, Cursor& cursor, std::vector<std::uint64_t>& slots) {
  slots.resize(std::max(slots.size(), static_cast<std::size_t>(layout.slots)));
  Record header;
  if (begins_at_header(layout)) {
    std::vector<std::uint64_t> slots_of_header;
    header = read_record(packet.type->header, cursor, slots_of_header);
  }
  const auto value_of = [&](const Outer& outer) {
    switch (outer.scope) {
      case Scope::packet_header: return packet.header_values[outer.leaf];
      case Scope::packet_context: return packet.context_values[outer.leaf];
      default: return header.values[outer.leaf];
    }
  };
  for (const Outer& outer : layout.outers) slots[static_cast<std::size_t>(outer.slot)] = value_of(outer);
}

}  // namespace ldos::ctf
