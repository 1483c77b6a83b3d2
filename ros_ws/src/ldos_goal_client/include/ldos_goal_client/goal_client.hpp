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

#ifndef LDOS_GOAL_CLIENT__GOAL_CLIENT_HPP_
#define LDOS_GOAL_CLIENT__GOAL_CLIENT_HPP_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include <moveit_msgs/action/move_group.hpp>
#include <rclcpp/rclcpp.hpp>
#include <sensor_msgs/msg/joint_state.hpp>

#include "ldos_goal_client/dialogue.hpp"
#include "ldos_goal_client/motion.hpp"
#include "ldos_goal_client/move_action.hpp"
#include "ldos_goal_client/move_request.hpp"
#include "ldos_goal_client/tip_pose.hpp"

namespace ldos_goal_client
{

/// Exit codes of the program.
enum ExitCode : int
{
  exit_succeeded = 0,
  exit_bad_settings = 2,
  exit_no_stack = 3,
  exit_interrupted = 130
};

/// Names of the stack's interfaces, and time limits for them.
struct StackSettings
{
  std::string action_name;
  std::string joint_states_topic;
  double server_timeout_s{};
  Planner planner;
};

/// Carries out the goals of a dialogue, one at a time.
///
/// Everything happens in callbacks of one executor: the action's, and a timer that watches
/// for everything without a callback (time-outs, the server's disappearance, new commands).
class GoalClient
{
public:
  /// @param is_interrupted returns true if the program is to end.
  /// @param finish is called once, with the exit code.
  GoalClient(
    rclcpp::Node & node, const StackSettings & settings, Dialogue & dialogue,
    std::function<bool()> is_interrupted, std::function<void(ExitCode)> finish);

private:
  using MoveGroup = MoveAction::MoveGroup;

  enum class State
  {
    awaiting_stack,
    idle,
    moving,
    awaiting_tip,
    finished
  };

  /// The reason for which a running goal was cancelled.
  enum class Cancelled
  {
    no,
    timed_out,
    interrupted
  };

  MoveAction::Listener listener();
  void watch();
  void watch_for_stack();
  void watch_for_command();
  void watch_motion();
  void watch_for_tip();

  bool joint_state_has_come();
  void start(MoveCommand command);
  void answered(bool is_accepted);
  void fed_back(const std::string & state);
  void ended(std::int8_t status, const MoveGroup::Result & result);
  void ask_to_end(Cancelled reason);
  void conclude_cancelled(const std::optional<Plan> & plan, double planning_time_s);
  void conclude(
    std::int32_t error_code, const std::string & message,
    const std::optional<Plan> & plan = std::nullopt, double planning_time_s = 0.0);
  void hand_over();
  void finish(ExitCode code);

  rclcpp::Node & node_;
  StackSettings settings_;
  Dialogue & dialogue_;
  std::function<bool()> is_interrupted_;
  std::function<void(ExitCode)> finish_;
  TraceMarkers markers_;
  rclcpp::CallbackGroup::SharedPtr unspun_;
  rclcpp::Subscription<sensor_msgs::msg::JointState>::SharedPtr joint_states_;
  TipPose tip_;
  MoveAction action_;
  rclcpp::TimerBase::SharedPtr timer_;

  State state_{State::awaiting_stack};
  bool has_joint_state_{false};
  std::optional<Motion> motion_;
  MoveReport report_;
  Cancelled cancelled_{Cancelled::no};
  /// The time limit of the present state.
  std::int64_t deadline_ns_;
};

}  // namespace ldos_goal_client

#endif  // LDOS_GOAL_CLIENT__GOAL_CLIENT_HPP_
