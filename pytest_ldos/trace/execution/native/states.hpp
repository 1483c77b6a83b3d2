// States of threads from the kernel's scheduler events, by one walk in the order of time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "buffer.hpp"

namespace ldos::execution {

// A column of a table of events, which may be one number for all rows.
template <typename T>
struct View {
  const T* data = nullptr;
  std::int64_t stride = 0;  // in elements

  T operator[](std::size_t row) const { return data[static_cast<std::int64_t>(row) * stride]; }
};

// Effects of an event on a thread; those that take it off its CPU come first.
enum class Kind : std::int8_t { preempted, went_to_sleep, died, migrated, woken, switched_in };

enum class State : std::uint8_t { running, runnable, blocked, unknown };

constexpr std::int32_t kNobody = -1;

// Names of threads: codes of a column's dictionary, and the common number of each.
struct Names {
  View<std::uint32_t> codes;
  std::vector<std::int32_t> meaning;

  std::int32_t operator[](std::size_t row) const {
    const std::uint32_t code = codes[row];
    return code < meaning.size() ? meaning[code] : kNobody;
  }
};

// Tables in time order. `trace` is translated to a host by `Scheduling::host_of_trace`.
struct Switches {
  std::size_t rows = 0;
  View<std::int64_t> time_ns;
  View<std::uint32_t> trace;
  View<std::int32_t> cpu;
  View<std::int32_t> prev_tid;
  View<std::int64_t> prev_state;
  Names prev_name;
  View<std::int32_t> next_tid;
  Names next_name;
};

struct Moves {
  Kind kind = Kind::woken;
  std::size_t rows = 0;
  View<std::int64_t> time_ns;
  View<std::uint32_t> trace;
  View<std::int32_t> tid;
  View<std::int32_t> cpu;
  Names name;
};

struct Scheduling {
  Switches switches;
  std::vector<Moves> moves;  // of equal times, in this order
  std::vector<std::int32_t> host_of_trace;  // kNobody: no kernel trace
  // By host: disjoint spans of losses, in order.
  std::vector<std::vector<std::pair<std::int64_t, std::int64_t>>> losses;
};

// Columns of equal length, by host, tid and time; kNobody if there is none. Names are codes plus 1, or 0.
struct Intervals {
  std::size_t rows = 0;
  ctf::Buffer host, tid, name, begin_ns, end_ns, state, cpu, rival, rival_name;
};

Intervals build_states(const Scheduling& scheduling);

}  // namespace ldos::execution
