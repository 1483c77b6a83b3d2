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

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>

#include "controller_interface/controller_interface.hpp"
#include "controller_interface/controller_interface_params.hpp"
#include "lifecycle_msgs/msg/state.hpp"
#include "pluginlib/class_loader.hpp"
#include "rclcpp/rclcpp.hpp"

namespace
{

using controller_interface::ControllerInterface;
using controller_interface::interface_configuration_type;
using controller_interface::return_type;
using lifecycle_msgs::msg::State;

class ControlProbeTest : public ::testing::Test
{
protected:
  static void SetUpTestSuite() {rclcpp::init(0, nullptr);}
  static void TearDownTestSuite() {rclcpp::shutdown();}

  void SetUp() override
  {
    probe_ = loader_.createSharedInstance("ldos_control_probe/ControlProbe");
    controller_interface::ControllerInterfaceParams params;
    params.controller_name = "control_probe";
    params.update_rate = 500;
    params.node_options = probe_->define_custom_node_options();
    ASSERT_EQ(probe_->init(params), return_type::OK);
  }

  void TearDown() override
  {
    probe_->get_node()->shutdown();
    probe_.reset();
  }

  std::uint8_t configure_and_activate()
  {
    probe_->configure();
    return probe_->get_node()->activate().id();
  }

  pluginlib::ClassLoader<ControllerInterface> loader_{
    "controller_interface", "controller_interface::ControllerInterface"};
  std::shared_ptr<ControllerInterface> probe_;
};

TEST_F(ControlProbeTest, ClaimsNoInterfaces)
{
  EXPECT_EQ(probe_->command_interface_configuration().type, interface_configuration_type::NONE);
  EXPECT_EQ(probe_->state_interface_configuration().type, interface_configuration_type::NONE);
  EXPECT_TRUE(probe_->command_interface_configuration().names.empty());
  EXPECT_TRUE(probe_->state_interface_configuration().names.empty());
}

TEST_F(ControlProbeTest, UpdatesWhileActive)
{
  ASSERT_EQ(configure_and_activate(), State::PRIMARY_STATE_ACTIVE);
  const rclcpp::Duration period{0, 2'000'000};
  rclcpp::Time time{0, 0, RCL_ROS_TIME};
  for (int cycle = 0; cycle < 1000; ++cycle) {
    time += period;
    ASSERT_EQ(probe_->update(time, period), return_type::OK);
  }
}

TEST_F(ControlProbeTest, CanBeActivatedAgain)
{
  ASSERT_EQ(configure_and_activate(), State::PRIMARY_STATE_ACTIVE);
  ASSERT_EQ(probe_->get_node()->deactivate().id(), State::PRIMARY_STATE_INACTIVE);
  ASSERT_EQ(probe_->get_node()->activate().id(), State::PRIMARY_STATE_ACTIVE);
}

}  // namespace
