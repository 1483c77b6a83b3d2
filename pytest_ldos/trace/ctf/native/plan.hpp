// The columns of a table, and how each is filled from events of each layout.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "census.hpp"
#include "column.hpp"

namespace ldos::ctf {

// The events of one part in one stream.
struct Source {
  Source(const Stream& stream_, std::size_t part_, const StreamCensus& census_)
      : stream(&stream_), part(part_), census(&census_) {}

  const Stream* stream;
  std::size_t part;
  const StreamCensus* census;

  [[nodiscard]] const Part& description() const { return stream->parts().all[part]; }
  [[nodiscard]] const Layout& layout() const { return description().type->layout; }

  [[nodiscard]] bool has_rows() const;
  [[nodiscard]] std::uint64_t rows(std::size_t chunk) const;
  [[nodiscard]] std::uint64_t elements(std::size_t chunk, std::size_t leaf) const;

 private:
  [[nodiscard]] const PartTally* tally(std::size_t chunk) const;
};

// Sources whose events have the columns of fixed position at the same places.
struct Group {
  std::vector<const Leaf*> leaves;  // of each direct column; null if the events have no such field
};

// Columns are of two kinds. Direct ones are at a fixed byte of all events that have them, and
// are filled column by column. The others are found by walking through each event.
struct Plan {
  std::vector<Column> columns;
  std::vector<std::size_t> direct;
  std::vector<std::size_t> walked;
  std::vector<Group> groups;
  std::vector<std::size_t> group_of;                   // by source
  std::vector<std::vector<std::int32_t>> walked_leaf;  // by source and leaf: the walked column it goes to, or kNone
  std::vector<std::vector<std::int32_t>> any_leaf;     // by source and leaf: the column it goes to, or kNone

  // Bytes that every row takes.
  [[nodiscard]] std::uint64_t bytes_per_row() const;
};

// `wanted` holds column names; empty means all.
Plan make_plan(const std::vector<Source>& sources, const std::set<std::string>& wanted);

}  // namespace ldos::ctf
