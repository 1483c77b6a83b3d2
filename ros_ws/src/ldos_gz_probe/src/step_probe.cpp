// Copyright (c) 2026 The pytest-ldos authors
//
// Permission is hereby granted, free of charge, to any person obtaining a copy
// of this software and associated documentation files (the "Software"), to deal
// in the Software without restriction, including without limitation the rights
// to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
// copies of the Software, and to permit persons to whom the Software is
// furnished to do so, subject to the following conditions:
//
// The above copyright notice and this permission notice shall be included in
// all copies or substantial portions of the Software.
//
// THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
// IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
// FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL
// THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
// LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
// OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN
// THE SOFTWARE.

#include <chrono>

#include <gz/plugin/Register.hh>
#include <gz/sim/EntityComponentManager.hh>
#include <gz/sim/System.hh>

#include "ldos_tracepoints/tracepoints.hpp"

namespace ldos_gz_probe
{

/// Emits `ldos:sim_step` once per simulation step.
class StepProbe : public gz::sim::System, public gz::sim::ISystemPreUpdate
{
public:
  // PreUpdate, because the thread that steps the simulator calls it itself. Every PostUpdate runs
  // on a thread of its own: its time would contain that thread's wake-up.
  void PreUpdate(const gz::sim::UpdateInfo & info, gz::sim::EntityComponentManager &) override
  {
    if (info.paused) {
      return;
    }
    const auto sim_time = std::chrono::duration_cast<std::chrono::nanoseconds>(info.simTime);
    ldos_tracepoints::sim_step(info.iterations, sim_time.count());
  }
};

}  // namespace ldos_gz_probe

// cppcheck-suppress unknownMacro
GZ_ADD_PLUGIN(ldos_gz_probe::StepProbe, gz::sim::System, gz::sim::ISystemPreUpdate)
GZ_ADD_PLUGIN_ALIAS(ldos_gz_probe::StepProbe, "ldos_gz_probe::StepProbe")
