// One stream file: its packets, and where in them the wanted events lie.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "mapped_file.hpp"
#include "trace.hpp"

namespace ldos::ctf {

struct Packet {
  std::uint64_t offset = 0;         // bytes from the file's start
  std::uint64_t content_bits = 0;   // header, context and events
  std::uint64_t first_event_bit = 0;
  const StreamType* type = nullptr;
  std::int64_t cpu = kNone;
  std::optional<std::int64_t> begin_ns;
  std::optional<std::int64_t> end_ns;
  std::uint64_t begin_cycles = 0;
  std::optional<std::uint64_t> sequence;
  std::optional<std::uint64_t> discarded;  // events lost in this stream so far
  std::uint32_t discarded_bits = 64;       // width of that counter
  bool truncated = false;                  // the file ends inside it
};

// Events lost in a stream between two moments.
struct Gap {
  std::int64_t from_ns = 0;
  std::int64_t to_ns = 0;
  std::uint64_t events = 0;
  std::uint64_t packets = 0;
};

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
  std::vector<Gap> gaps;
};

class Stream {
 public:
  // Maps the file and reads the head of every packet. Throws Unreadable.
  Stream(const Trace& trace, const std::string& path);

  // Appends each wanted event inside `window` to the list of its part, in the order of the file.
  StreamReport scan(const Window& window, std::vector<std::vector<Occurrence>>& parts) const;

  [[nodiscard]] const std::vector<Packet>& packets() const { return packets_; }
  [[nodiscard]] const std::uint8_t* data() const { return file_.bytes().data(); }
  [[nodiscard]] const std::string& path() const { return file_.path(); }
  [[nodiscard]] const Trace& trace() const { return *trace_; }
  // The packet that holds bit `bit` of the file.
  [[nodiscard]] const Packet& packet_at(std::uint64_t bit) const;

 private:
  const Trace* trace_;
  MappedFile file_;
  std::vector<Packet> packets_;
};

}  // namespace ldos::ctf
