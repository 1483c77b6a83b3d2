// Python bindings of both sides; blocking calls release the interpreter's lock.

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <cstdint>
#include <string>

#include "pinger.hpp"
#include "ponger.hpp"

namespace nb = nanobind;
using namespace ldos::pingpong;

namespace {

nb::bytes as_bytes(const std::vector<Time>& times) { return nb::bytes(times.data(), times.size() * sizeof(Time)); }

void define_pinger(nb::module_& module) {
  nb::class_<Pinger>(module, "Pinger")
      .def(nb::init<const Participant&>(), nb::keep_alive<1, 2>())
      .def("await_match", &Pinger::await_match, nb::call_guard<nb::gil_scoped_release>(), nb::arg("patience_ns"))
      .def("shares_memory", &Pinger::shares_memory)
      .def(
          "run",
          [](Pinger& pinger, std::uint32_t size, Time warm_up, Time duration, Time patience, Time interval,
             bool listener, int cpu) {
            return pinger.run(PingSettings{size, warm_up, duration, patience, interval, listener, cpu});
          },
          nb::call_guard<nb::gil_scoped_release>(), nb::kw_only(), nb::arg("size"), nb::arg("warm_up_ns"),
          nb::arg("duration_ns"), nb::arg("patience_ns"), nb::arg("interval_ns"), nb::arg("listener"), nb::arg("cpu"));
}

}  // namespace

NB_MODULE(_pingpong, module) {
  nb::exception<DdsError>(module, "DdsError");
  nb::class_<Participant>(module, "Participant")
      .def(nb::init<const std::string&, std::uint32_t, bool>(), nb::call_guard<nb::gil_scoped_release>(),
           nb::arg("library"), nb::arg("domain"), nb::kw_only(), nb::arg("reliable"));
  nb::class_<PingResult>(module, "PingResult")
      .def_prop_ro("round_trips", [](const PingResult& result) { return as_bytes(result.round_trips); })
      .def_prop_ro("ways_there", [](const PingResult& result) { return as_bytes(result.ways_there); })
      .def_ro("sent", &PingResult::sent)
      .def_ro("lost", &PingResult::lost)
      .def_ro("late", &PingResult::late)
      .def_ro("elapsed_ns", &PingResult::elapsed)
      .def_ro("is_alone", &PingResult::is_alone);
  nb::class_<Ponger>(module, "Ponger")
      .def(nb::init<const Participant&, bool, int>(), nb::keep_alive<1, 2>(), nb::arg("participant"), nb::kw_only(),
           nb::arg("listener"), nb::arg("cpu"))
      .def("stop", &Ponger::stop, nb::call_guard<nb::gil_scoped_release>());
  define_pinger(module);
}
