// One stream file.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "mapped_file.hpp"
#include "packet.hpp"
#include "parts.hpp"

namespace ldos::ctf {

struct Window {
  std::int64_t from_ns = std::numeric_limits<std::int64_t>::min();
  std::int64_t to_ns = std::numeric_limits<std::int64_t>::max();

  [[nodiscard]] bool holds(std::int64_t time_ns) const { return from_ns <= time_ns && time_ns <= to_ns; }
};

class Stream {
 public:
  // Maps the file and reads the header of every packet. Throws Unreadable.
  Stream(const Trace& trace, std::size_t trace_number, const Parts& parts, const std::string& path,
         OnCorrupt on_corrupt);

  // Shares the file and the headers of `opened`, for other parts.
  Stream(const Stream& opened, const Parts& parts) : Stream(opened) { parts_ = &parts; }

  [[nodiscard]] const Trace& trace() const { return *trace_; }
  [[nodiscard]] std::size_t trace_number() const { return trace_number_; }
  [[nodiscard]] const Parts& parts() const { return *parts_; }
  [[nodiscard]] OnCorrupt on_corrupt() const { return on_corrupt_; }
  [[nodiscard]] const std::uint8_t* data() const { return file_->bytes().data(); }
  [[nodiscard]] std::size_t bytes() const { return file_->bytes().size(); }
  [[nodiscard]] const std::string& path() const { return file_->path(); }
  [[nodiscard]] const std::vector<Packet>& packets() const { return list_->packets; }
  // Damaged headers of packets.
  [[nodiscard]] const std::vector<Corruption>& corruptions() const { return list_->corruptions; }
  // Bytes of a last packet with an incomplete header.
  [[nodiscard]] std::uint64_t truncated_bytes() const { return list_->truncated_bytes; }

  void populate(const Packet& packet) const { file_->populate(packet.offset, packet.content_bits / 8); }
  void release() const { file_->release(); }

  // Only before others share the headers.
  void drop_packets(const std::set<std::size_t>& indices);

  // True if a packet may have events in `window`, by the headers.
  [[nodiscard]] bool may_hold(const Window& window, std::size_t packet) const;

  // The packet in which an event's contexts begin at bit `bit` of the file.
  [[nodiscard]] const Packet& packet_at(std::uint64_t bit) const;

  // The CPU that wrote all packets; none if they differ.
  [[nodiscard]] const std::optional<std::int32_t>& only_cpu() const { return only_cpu_; }

 private:
  Stream(const Stream&) = default;

  void find_only_cpu();
  void carry_clock();

  const Trace* trace_;
  std::size_t trace_number_;
  const Parts* parts_;
  OnCorrupt on_corrupt_;
  std::shared_ptr<const MappedFile> file_;
  std::shared_ptr<PacketList> list_;
  std::optional<std::int32_t> only_cpu_;
};

}  // namespace ldos::ctf
