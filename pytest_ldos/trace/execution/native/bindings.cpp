// Python bindings of thread states, and of rows that belong together.

#include <malloc.h>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <span>
#include <stdexcept>
#include <tuple>

#include "rows.hpp"
#include "states.hpp"

namespace nb = nanobind;

namespace ldos::execution {

namespace {

template <typename T>
using Array = nb::ndarray<const T, nb::numpy, nb::ndim<1>>;

// Columns of one table, which must have equal lengths.
class Table {
 public:
  explicit Table(const nb::dict& columns) : columns_(columns), rows_(array<std::int64_t>("time_ns").shape(0)) {}

  [[nodiscard]] std::size_t rows() const { return rows_; }

  template <typename T>
  [[nodiscard]] View<T> view(const char* name) const {
    const Array<T> found = array<T>(name);
    if (found.shape(0) != rows_) throw std::invalid_argument("columns of different lengths");
    return {found.data(), found.stride(0)};
  }

  [[nodiscard]] Names names(const char* name) const {
    const auto [codes, meaning] = nb::cast<std::pair<nb::object, std::vector<std::int32_t>>>(columns_[name]);
    const auto found = nb::cast<Array<std::uint32_t>>(codes, false);
    if (found.shape(0) != rows_) throw std::invalid_argument("columns of different lengths");
    return {{found.data(), found.stride(0)}, meaning};
  }

 private:
  // Without conversion, because the memory of a converted copy would not outlive the call.
  template <typename T>
  [[nodiscard]] Array<T> array(const char* name) const {
    return nb::cast<Array<T>>(nb::handle(columns_[name]), false);
  }

  const nb::dict& columns_;
  std::size_t rows_;
};

Switches to_switches(const nb::dict& columns) {
  const Table table(columns);
  return {table.rows(),
          table.view<std::int64_t>("time_ns"),
          table.view<std::uint32_t>("trace"),
          table.view<std::int32_t>("cpu"),
          table.view<std::int32_t>("prev_tid"),
          table.view<std::int64_t>("prev_state"),
          table.names("prev_name"),
          table.view<std::int32_t>("next_tid"),
          table.names("next_name")};
}

Moves to_moves(int kind, const nb::dict& columns) {
  const Table table(columns);
  return {static_cast<Kind>(kind),
          table.rows(),
          table.view<std::int64_t>("time_ns"),
          table.view<std::uint32_t>("trace"),
          table.view<std::int32_t>("tid"),
          table.view<std::int32_t>("cpu"),
          table.names("name")};
}

template <typename T>
nb::object take_array(ctf::Buffer buffer, std::size_t rows) {
  auto* owner = new ctf::Buffer(std::move(buffer));
  nb::capsule keeper(owner, [](void* pointer) noexcept { delete static_cast<ctf::Buffer*>(pointer); });
  return nb::ndarray<nb::numpy, T, nb::ndim<1>>(owner->data(), {rows}, keeper).cast();
}

nb::dict build(const nb::dict& switches, const std::vector<std::pair<int, nb::dict>>& moves,
               std::vector<std::int32_t> host_of_trace,
               std::vector<std::vector<std::pair<std::int64_t, std::int64_t>>> losses) {
  Scheduling all{to_switches(switches), {}, std::move(host_of_trace), std::move(losses)};
  for (const auto& [kind, columns] : moves) all.moves.push_back(to_moves(kind, columns));
  Intervals found;
  {
    const nb::gil_scoped_release released;
    found = build_states(all);
  }
  nb::dict result;
  result["host"] = take_array<std::uint16_t>(std::move(found.host), found.rows);
  result["tid"] = take_array<std::int64_t>(std::move(found.tid), found.rows);
  result["name"] = take_array<std::uint32_t>(std::move(found.name), found.rows);
  result["begin_ns"] = take_array<std::int64_t>(std::move(found.begin_ns), found.rows);
  result["end_ns"] = take_array<std::int64_t>(std::move(found.end_ns), found.rows);
  result["state"] = take_array<std::uint8_t>(std::move(found.state), found.rows);
  result["cpu"] = take_array<std::int32_t>(std::move(found.cpu), found.rows);
  result["preempted_by"] = take_array<std::int32_t>(std::move(found.rival), found.rows);
  result["preempted_by_name"] = take_array<std::uint32_t>(std::move(found.rival_name), found.rows);
  return result;
}

template <typename T>
using Packed = nb::ndarray<const T, nb::numpy, nb::ndim<1>, nb::c_contig>;

template <typename T>
Packed<T> of_length(const Packed<T>& array, std::size_t rows) {
  if (array.shape(0) != rows) throw std::invalid_argument("columns of different lengths");
  return array;
}

void require_countable(std::size_t rows) {
  if (rows > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max())) throw std::length_error("too many rows");
}

template <typename T>
nb::object to_array(std::vector<T> values) {
  auto* owner = new std::vector<T>(std::move(values));
  nb::capsule keeper(owner, [](void* pointer) noexcept { delete static_cast<std::vector<T>*>(pointer); });
  return nb::ndarray<nb::numpy, T, nb::ndim<1>>(owner->data(), {owner->size()}, keeper).cast();
}

void require_threads(const Packed<std::int32_t>& thread) {
  require_countable(thread.shape(0));
  const std::int32_t* first = thread.data();
  if (std::any_of(first, first + thread.shape(0), [](std::int32_t each) { return each < 0; })) {
    throw std::invalid_argument("an event of no thread");
  }
}

using Columns = std::tuple<Packed<std::int32_t>, Packed<std::int64_t>, Packed<std::uint64_t>>;

Calls to_calls(const Columns& columns) {
  const auto& [thread, time_ns, handle] = columns;
  const std::size_t rows = thread.shape(0);
  require_threads(thread);
  return {rows, thread.data(), of_length(time_ns, rows).data(), of_length(handle, rows).data()};
}

std::tuple<nb::object, nb::object, nb::object> pair(const Columns& starts, const Columns& ends, bool lossy) {
  Pairs found;
  {
    const nb::gil_scoped_release released;
    found = pair_calls(to_calls(starts), to_calls(ends), lossy);
  }
  return {to_array(std::move(found.end)), to_array(std::move(found.parent)), to_array(std::move(found.open))};
}

std::pair<nb::object, nb::object> order(const Packed<std::int32_t>& thread, const Packed<std::int64_t>& since_ns, int bits) {
  of_length(since_ns, thread.shape(0));
  if (bits < 0 || bits > std::numeric_limits<std::int64_t>::digits) throw std::invalid_argument("too many bits");
  Ordered found;
  {
    const nb::gil_scoped_release released;
    require_threads(thread);
    found = order_by_thread({thread.data(), thread.shape(0)}, since_ns.data(), bits);
  }
  return {to_array(std::move(found.key)), to_array(std::move(found.row))};
}

nb::object near(const Packed<std::int64_t>& keys, const Packed<std::int32_t>& rows, const Packed<std::int64_t>& others,
                const std::optional<Packed<std::int32_t>>& places, int bits, bool above, std::int64_t shift) {
  const Order order{keys.shape(0), keys.data(), of_length(rows, keys.shape(0)).data(), bits};
  const std::size_t count = others.shape(0);
  if (places) of_length(*places, count);
  std::vector<std::int32_t> found;
  {
    const nb::gil_scoped_release released;
    found.assign(count, kNoRow);
    std::size_t place = 0;
    for (std::size_t other = 0; other < count; ++other) {
      const std::size_t to = places ? static_cast<std::uint32_t>(places->data()[other]) : other;
      if (to >= count) throw std::out_of_range("a row that is not in the table");
      found[to] = row_near(order, others.data()[other], above, shift, place);
    }
  }
  return to_array(std::move(found));
}

using Integers = nb::ndarray<nb::ro, nb::numpy, nb::ndim<1>>;

// Writes some rows of a column to each `step`-th place.
template <typename T>
void copy_rows(const Integers& column, std::size_t from, std::size_t count, std::int64_t* to, std::size_t step) {
  const View<T> values{static_cast<const T*>(column.data()), column.stride(0)};
  for (std::size_t row = 0; row < count; ++row) to[row * step] = static_cast<std::int64_t>(values[from + row]);
}

using Copy = void (*)(const Integers&, std::size_t, std::size_t, std::int64_t*, std::size_t);

Copy copy_of(const Integers& column) {
  if (column.dtype() == nb::dtype<std::int64_t>()) return copy_rows<std::int64_t>;
  if (column.dtype() == nb::dtype<std::uint64_t>()) return copy_rows<std::uint64_t>;
  if (column.dtype() == nb::dtype<std::int32_t>()) return copy_rows<std::int32_t>;
  if (column.dtype() == nb::dtype<std::uint32_t>()) return copy_rows<std::uint32_t>;
  if (column.dtype() == nb::dtype<std::int16_t>()) return copy_rows<std::int16_t>;
  if (column.dtype() == nb::dtype<std::uint16_t>()) return copy_rows<std::uint16_t>;
  if (column.dtype() == nb::dtype<std::int8_t>()) return copy_rows<std::int8_t>;
  if (column.dtype() == nb::dtype<std::uint8_t>()) return copy_rows<std::uint8_t>;
  throw std::invalid_argument("a column of something other than integers");
}

// The first row of each distinct combination of values, and the combination of each row.
std::pair<nb::object, nb::object> distinct(const std::vector<Integers>& columns) {
  constexpr std::size_t kBlock = 1024;
  const std::size_t rows = columns.empty() ? 0 : columns.front().shape(0);
  require_countable(rows);
  std::vector<std::pair<const Integers*, Copy>> varying;
  for (const Integers& column : columns) {
    if (column.shape(0) != rows) throw std::invalid_argument("columns of different lengths");
    const Copy copy = copy_of(column);
    if (column.stride(0) != 0) varying.emplace_back(&column, copy);
  }
  std::vector<std::int32_t> first;
  std::vector<std::int32_t> group;
  {
    const nb::gil_scoped_release released;
    group.resize(rows);
    const std::size_t width = varying.size();
    Distinct combinations(width);
    std::vector<std::int64_t> block(width * kBlock);
    for (std::size_t from = 0; from < rows; from += kBlock) {
      const std::size_t count = std::min(kBlock, rows - from);
      for (std::size_t at = 0; at < width; ++at) {
        varying[at].second(*varying[at].first, from, count, block.data() + at, width);
      }
      const std::span numbers(group.data() + from, count);
      combinations.number(block, numbers);
      for (std::size_t row = 0; first.size() < combinations.size(); ++row) {
        if (numbers[row] == static_cast<std::int32_t>(first.size())) first.push_back(static_cast<std::int32_t>(from + row));
      }
    }
  }
  return {to_array(std::move(first)), to_array(std::move(group))};
}

// Gives freed memory back to the system; glibc otherwise keeps tens of megabytes of each thread that allocated.
void trim() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

}  // namespace

NB_MODULE(_states, module) {
  using nb::literals::operator""_a;
  module.def("pair", &pair, "starts"_a, "ends"_a, nb::kw_only(), "lossy"_a);
  module.def("distinct", &distinct, "columns"_a);
  module.def("order", &order, "thread"_a, "since_ns"_a, nb::kw_only(), "bits"_a);
  module.def("near", &near, "keys"_a, "rows"_a, "others"_a, "places"_a.none(), nb::kw_only(), "bits"_a, "above"_a, "shift"_a);
  module.def("trim", &trim);
  module.def("build", &build, nb::kw_only(), "switches"_a, "moves"_a, "host_of_trace"_a, "losses"_a);
}

}  // namespace ldos::execution
