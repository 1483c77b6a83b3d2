// All events of one name, merged by time, as columns.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "column.hpp"
#include "stream.hpp"

namespace ldos::ctf {

// The events of one type in one stream file, in time order.
struct Source {
  const Stream* stream = nullptr;
  const EventType* type = nullptr;
  std::size_t trace = 0;
  std::vector<Occurrence> events;
};

struct Table {
  std::string name;
  std::size_t rows = 0;
  std::unique_ptr<std::int64_t[]> timestamp_ns;
  std::unique_ptr<std::int32_t[]> cpu_id;  // -1 where a stream does not say
  std::unique_ptr<std::uint32_t[]> trace;  // index of the trace the event lies in
  std::vector<Column> columns;
};

// Merges and decodes. `wanted` holds column names; empty means all.
Table build_table(const std::string& name, std::vector<Source> sources, const std::set<std::string>& wanted);

}  // namespace ldos::ctf
