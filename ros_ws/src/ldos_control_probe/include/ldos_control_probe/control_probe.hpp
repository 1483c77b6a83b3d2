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

#ifndef LDOS_CONTROL_PROBE__CONTROL_PROBE_HPP_
#define LDOS_CONTROL_PROBE__CONTROL_PROBE_HPP_

#include <cstdint>

#include "controller_interface/controller_interface.hpp"
#include "rclcpp/duration.hpp"
#include "rclcpp/time.hpp"
#include "rclcpp_lifecycle/state.hpp"

namespace ldos_control_probe
{

/// A controller that controls nothing: each update emits `ldos:control_cycle`.
/// The update neither allocates, locks nor logs.
class ControlProbe : public controller_interface::ControllerInterface
{
public:
  controller_interface::CallbackReturn on_init() override;

  /// NONE: the probe runs next to any controller, on any hardware.
  controller_interface::InterfaceConfiguration command_interface_configuration() const override;
  controller_interface::InterfaceConfiguration state_interface_configuration() const override;

  /// Cycles are counted from 0 at each activation.
  controller_interface::CallbackReturn on_activate(
    const rclcpp_lifecycle::State & previous) override;

  controller_interface::return_type update(
    const rclcpp::Time & time, const rclcpp::Duration & period) override;

private:
  std::uint64_t cycle_{0};
};

}  // namespace ldos_control_probe

#endif  // LDOS_CONTROL_PROBE__CONTROL_PROBE_HPP_
