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

// A number a row, or one for all rows.
struct Origin {
  std::optional<std::int32_t> of_all;
  Buffer of_each;  // of 32 bits; empty where `of_all` holds
};

struct Table {
  std::string name;
  std::size_t rows = 0;
  Buffer timestamp_ns;  // i64
  Origin cpu_id;        // -1 where a stream does not say
  Origin trace;         // index of the trace the event lies in
  std::vector<Column> columns;
};

class TableWriter;

// A table that is written chunk by chunk, in any order and at the same time: where each chunk
// begins is known from the census.
class TableBuilder {
 public:
  // `wanted` holds column names; empty means all.
  TableBuilder(std::string name, std::vector<Source> sources, const std::set<std::string>& wanted, std::size_t chunks);

  // When every chunk has been written.
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
