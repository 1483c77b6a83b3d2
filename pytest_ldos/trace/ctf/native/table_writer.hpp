// Writes one chunk of a table.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "row_sink.hpp"
#include "table.hpp"

namespace ldos::ctf {

class TableWriter {
 public:
  TableWriter(TableBuilder& table, std::size_t chunk);

  // Appends events, in the order of rows. Throws Unreadable if there are more than
  // were counted: the file has been changed meanwhile.
  void write(std::span<const Occurrence> events);

  // Throws Unreadable if there were fewer.
  void finish();

 private:
  // Rows that are written at once: their addresses stay in the first cache.
  static constexpr std::size_t kBlock = 1024;

  void write_block(std::span<const Occurrence> events);
  void write_cpus(std::span<const Occurrence> events);
  void write_traces(std::span<const Occurrence> events);
  void locate(std::span<const Occurrence> events);
  void write_direct(std::span<const Occurrence> events);
  void gather_group(std::size_t group, const Block& block);
  void write_walked(std::span<const Occurrence> events);
  const Packet& packet_of(const Occurrence& event);
  [[noreturn]] void refuse() const;

  TableBuilder& table_;
  Plan& plan_;
  std::size_t chunk_;
  std::size_t row_;
  std::size_t end_;
  std::vector<const std::uint8_t*> files_;  // by source
  std::vector<std::int32_t> cpus_;          // by source; empty if one has several
  std::vector<const Packet*> packets_;      // by source: position of its last event
  std::vector<ElementRange> ranges_;        // by column
  std::vector<TextCodes> codes_;            // by column
  std::vector<const std::uint8_t*> events_;
  std::vector<const std::uint8_t*> of_group_;
  std::vector<std::uint32_t> rows_of_group_;
  std::vector<std::uint64_t> slots_;
};

}  // namespace ldos::ctf
