// Walks an event, whose lengths and tags may refer to fields around it.
#pragma once

#include "packet.hpp"
#include "walk.hpp"

namespace ldos::ctf {

// True if an event is walked from its header on, because a field in it refers to the header.
inline bool begins_at_header(const Layout& layout) {
  return !layout.outers.empty() && layout.outers.back().scope == Scope::event_header;
}

// Stores the values around an event for its layout; skips its header if it begins there.
void take_outers(const Layout& layout, const Packet& packet, Cursor& cursor, std::vector<std::uint64_t>& slots);

template <typename Sink>
void walk_event(const Layout& layout, const Packet& packet, Cursor& cursor, std::vector<std::uint64_t>& slots,
                Sink& sink) {
  if (!layout.outers.empty()) [[unlikely]] take_outers(layout, packet, cursor, slots);
  walk(layout, cursor, slots, sink);
}

}  // namespace ldos::ctf
