// One stream file.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "losses.hpp"
#include "mapped_file.hpp"
#include "packet.hpp"
#include "parts.hpp"

namespace ldos::ctf {

struct Window {
  std::int64_t from_ns = std::numeric_limits<std::int64_t>::min();
  std::int64_t to_ns = std::numeric_limits<std::int64_t>::max();

  [[nodiscard]] bool holds(std::int64_t time_ns) const { return from_ns <= time_ns && time_ns <= to_ns; }

  // By its head alone; a packet that is cut may hold later events than it says.
  [[nodiscard]] bool touches(const Packet& packet) const {
    if (packet.begin_ns && *packet.begin_ns > to_ns) return false;
    return !packet.end_ns || packet.truncated || *packet.end_ns >= from_ns;
  }
};

class Stream {
 public:
  // Maps the file and reads the head of every packet. Throws Unreadable.
  Stream(const Trace& trace, std::size_t trace_number, const Parts& parts, const std::string& path)
      : trace_(&trace), trace_number_(trace_number), parts_(&parts), file_(path), packets_(read_packets(trace, file_)) {
    if (packets_.empty()) return;
    const auto differs = [this](const Packet& packet) { return packet.cpu != packets_.front().cpu; };
    if (std::none_of(packets_.begin(), packets_.end(), differs)) {
      only_cpu_ = static_cast<std::int32_t>(packets_.front().cpu);
    }
  }

  [[nodiscard]] const Trace& trace() const { return *trace_; }
  [[nodiscard]] std::size_t trace_number() const { return trace_number_; }
  [[nodiscard]] const Parts& parts() const { return *parts_; }
  [[nodiscard]] const std::uint8_t* data() const { return file_.bytes().data(); }
  [[nodiscard]] std::size_t bytes() const { return file_.bytes().size(); }
  [[nodiscard]] const std::string& path() const { return file_.path(); }
  [[nodiscard]] const std::vector<Packet>& packets() const { return packets_; }

  // The CPU that wrote all packets; none where they differ.
  [[nodiscard]] const std::optional<std::int32_t>& only_cpu() const { return only_cpu_; }

 private:
  const Trace* trace_;
  std::size_t trace_number_;
  const Parts* parts_;
  MappedFile file_;
  std::vector<Packet> packets_;
  std::optional<std::int32_t> only_cpu_;
};

}  // namespace ldos::ctf
