#include "walk_event.hpp"

#include <algorithm>
#include <utility>

namespace ldos::ctf {

namespace {

// Takes those integers of an event's header that its layout refers to.
struct HeaderTaker : Skip {
  HeaderTaker(const std::vector<Outer>& outers_, std::vector<std::uint64_t>& slots_) : outers(outers_), slots(slots_) {}

  void integer(std::int32_t leaf, std::uint64_t value) {
    const std::pair place(Scope::event_header, static_cast<std::size_t>(leaf));
    const auto is_before = [](const Outer& outer, const auto& wanted) { return std::pair(outer.scope, outer.leaf) < wanted; };
    const auto found = std::lower_bound(outers.begin(), outers.end(), place, is_before);
    if (found == outers.end() || std::pair(found->scope, found->leaf) != place) return;
    slots[static_cast<std::size_t>(found->slot)] = value;
  }

  const std::vector<Outer>& outers;
  std::vector<std::uint64_t>& slots;
};

}  // namespace

void take_outers(const Layout& layout, const Packet& packet, Cursor& cursor, std::vector<std::uint64_t>& slots) {
  slots.resize(std::max(slots.size(), static_cast<std::size_t>(layout.slots)));
  for (const Outer& outer : layout.outers) {
    if (outer.scope != Scope::event_header) slots[static_cast<std::size_t>(outer.slot)] = packet.kept[outer.kept];
  }
  if (!begins_at_header(layout)) return;
  std::vector<std::uint64_t> slots_of_header;
  HeaderTaker taker(layout.outers, slots);
  walk(packet.type->header, cursor, slots_of_header, taker);
}

}  // namespace ldos::ctf
