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

#include "ldos_control_probe/control_probe.hpp"

#include "ldos_tracepoints/tracepoints.hpp"
#include "pluginlib/class_list_macros.hpp"

namespace ldos_control_probe
{

using controller_interface::CallbackReturn;
using controller_interface::InterfaceConfiguration;
using controller_interface::interface_configuration_type;

CallbackReturn ControlProbe::on_init()
{
  return CallbackReturn::SUCCESS;
}

InterfaceConfiguration ControlProbe::command_interface_configuration() const
{
  return {interface_configuration_type::NONE, {}};
}

InterfaceConfiguration ControlProbe::state_interface_configuration() const
{
  return {interface_configuration_type::NONE, {}};
}

CallbackReturn ControlProbe::on_activate(const rclcpp_lifecycle::State &)
{
  cycle_ = 0;
  return CallbackReturn::SUCCESS;
}

controller_interface::return_type ControlProbe::update(
  const rclcpp::Time & time, const rclcpp::Duration & period)
{
  ldos_tracepoints::control_cycle(cycle_++, time.nanoseconds(), period.nanoseconds());
  return controller_interface::return_type::OK;
}

}  // namespace ldos_control_probe

PLUGINLIB_EXPORT_CLASS(ldos_control_probe::ControlProbe, controller_interface::ControllerInterface)
