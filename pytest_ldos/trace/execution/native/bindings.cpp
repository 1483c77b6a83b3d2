// Python bindings of thread states.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>

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

}  // namespace

NB_MODULE(_states, module) {
  using nb::literals::operator""_a;
  module.def("build", &build, nb::kw_only(), "switches"_a, "moves"_a, "host_of_trace"_a, "losses"_a);
}

}  // namespace ldos::execution
