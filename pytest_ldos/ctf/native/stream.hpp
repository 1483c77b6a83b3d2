// One stream file: its packets, and where in them the wanted events lie.
#pragma once

#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "continuity.hpp"
#include "mapped_file.hpp"
#include "packet.hpp"
#include "trace.hpp"

namespace ldos::ctf {

// A wanted event: when, and at which bit of its file its contexts begin.
struct Occurrence {
  std::int64_t time_ns = 0;
  std::uint64_t bit = 0;
};

struct Window {
  std::int64_t from_ns = std::numeric_limits<std::int64_t>::min();
  std::int64_t to_ns = std::numeric_limits<std::int64_t>::max();

  [[nodiscard]] bool holds(std::int64_t time_ns) const { return from_ns <= time_ns && time_ns <= to_ns; }
};

// What a scan found beside the events themselves.
struct StreamReport {
  std::uint64_t events = 0;           // decoded, wanted or not
  std::uint64_t truncated_bytes = 0;  // behind the last whole event of a cut packet
  std::vector<Corruption> corruptions;
};

class Stream {
 public:
  // Maps the file and reads the head of every packet. Throws Unreadable.
  Stream(const Trace& trace, const std::string& path, OnCorrupt on_corrupt);

  // Appends each wanted event inside `window` to the list of its part, in the order of the file.
  StreamReport scan(const Window& window, std::vector<std::vector<Occurrence>>& parts) const;

  [[nodiscard]] const std::vector<Packet>& packets() const { return list_.packets; }
  void drop_packets(const std::set<std::size_t>& indices);
  [[nodiscard]] const std::uint8_t* data() const { return file_.bytes().data(); }
  [[nodiscard]] std::uint64_t size() const { return file_.bytes().size(); }
  [[nodiscard]] const std::string& path() const { return file_.path(); }
  [[nodiscard]] const Trace& trace() const { return *trace_; }
  // The packet that holds bit `bit` of the file.
  [[nodiscard]] const Packet& packet_at(std::uint64_t bit) const;

 private:
  const Trace* trace_;
  MappedFile file_;
  OnCorrupt on_corrupt_;
  PacketList list_;
};

}  // namespace ldos::ctf
