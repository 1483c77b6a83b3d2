// All events of one name, merged by time, as columns.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "occurrence.hpp"
#include "plan.hpp"

namespace ldos::ctf {

// A number per row, or one for all rows.
struct Origin {
  std::optional<std::int32_t> of_all;
  Buffer of_each;  // of 32 bits; empty if `of_all` is set
};

struct Table {
  std::string name;
  std::size_t rows = 0;
  Buffer timestamp_ns;  // i64
  Origin cpu_id;        // -1 if a stream does not name it
  Origin trace;         // index of the event's trace
  std::vector<Column> columns;
};

class TableWriter;

// A table that is written chunk by chunk, in any order and concurrently: the begin of each chunk
// is known from the census.
class TableBuilder {
 public:
  // `wanted` holds column names; empty means all.
  TableBuilder(std::string name, std::vector<Source> sources, const std::set<std::string>& wanted, std::size_t chunks);

  // To be called after every chunk has been written.
  Table finish();

 private:
  friend class TableWriter;

  void allocate(std::size_t chunks);
  void place_elements(std::size_t column, std::size_t chunks);
  [[nodiscard]] std::size_t elements(std::size_t chunk, std::size_t column) const;
  void join_texts(std::size_t column);
  void drop_needless_mask(Column& column) const;

  Table table_;
  std::vector<Source> sources_;
  Plan plan_;
  std::vector<std::size_t> first_row_;                   // by chunk, and the end
  std::vector<std::vector<std::size_t>> first_element_;  // of an open list: by column and chunk, and the end
  std::vector<std::vector<Dictionary>> texts_;           // by chunk and column
};

}  // namespace ldos::ctf
