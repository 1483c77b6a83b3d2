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

#include "ldos_goal_client/goal_client.hpp"

#include <chrono>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include <action_msgs/msg/goal_status.hpp>
#include <moveit_msgs/msg/move_it_error_codes.hpp>

namespace ldos_goal_client
{
namespace
{

using action_msgs::msg::GoalStatus;
using moveit_msgs::msg::MoveItErrorCodes;

constexpr std::chrono::milliseconds watch_period{20};
constexpr std::int64_t ns_per_s = 1'000'000'000;
/// Time limit for the result of a cancelled goal.
constexpr std::int64_t cancel_grace_ns = ns_per_s;
/// Time limit for a transform newer than the result.
constexpr std::int64_t tip_grace_ns = ns_per_s;

std::int64_t after_s(double seconds)
{
  return monotonic_ns() + static_cast<std::int64_t>(seconds * static_cast<double>(ns_per_s));
}

std::string in_seconds(double seconds)
{
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f s", seconds);
  return text;
}

/// MoveIt's code for a result that has none.
std::int32_t code_of_status(std::int8_t status)
{
  return status == GoalStatus::STATUS_CANCELED ? MoveItErrorCodes::PREEMPTED :
         MoveItErrorCodes::FAILURE;
}

}  // namespace

GoalClient::GoalClient(
  rclcpp::Node & node, const StackSettings & settings, Dialogue & dialogue,
  std::function<bool()> is_interrupted, std::function<void(ExitCode)> finish)
: node_(node), settings_(settings), dialogue_(dialogue),
  is_interrupted_(std::move(is_interrupted)), finish_(std::move(finish)),
  unspun_(node.create_callback_group(rclcpp::CallbackGroupType::MutuallyExclusive, false)),
  tip_(node, settings.planner.base_frame),
  action_(node, settings.action_name, listener()),
  deadline_ns_(after_s(settings.server_timeout_s))
{
  // Taken manually until the first one arrives, so that later samples cost nothing.
  rclcpp::SubscriptionOptions options;
  options.callback_group = unspun_;
  joint_states_ = node.create_subscription<sensor_msgs::msg::JointState>(
    settings_.joint_states_topic, rclcpp::SensorDataQoS().keep_last(1),
    [](const sensor_msgs::msg::JointState &) {}, options);
  timer_ = node.create_wall_timer(watch_period, [this]() {watch();});
}

MoveAction::Listener GoalClient::listener()
{
  MoveAction::Listener listener;
  listener.answered = [this](bool is_accepted) {answered(is_accepted);};
  listener.fed_back = [this](const std::string & state) {fed_back(state);};
  listener.ended = [this](std::int8_t status, const MoveGroup::Result & result) {
      ended(status, result);
    };
  return listener;
}

void GoalClient::watch()
{
  if (is_interrupted_() && (state_ == State::awaiting_stack || state_ == State::idle)) {
    finish(exit_interrupted);
  }
  switch (state_) {
    case State::awaiting_stack: return watch_for_stack();
    case State::idle: return watch_for_command();
    case State::moving: return watch_motion();
    case State::awaiting_tip: return watch_for_tip();
    case State::finished: return;
  }
}

void GoalClient::watch_for_stack()
{
  const bool has_server = action_.server_is_there();
  if (has_server && joint_state_has_come()) {
    dialogue_.ready();
    state_ = State::idle;
  } else if (monotonic_ns() > deadline_ns_) {
    const auto missing = has_server ? "no joint state on " + settings_.joint_states_topic :
      "no action server " + settings_.action_name;
    RCLCPP_ERROR(
      node_.get_logger(), "%s within %s: is the stack running, in this ROS_DOMAIN_ID?",
      missing.c_str(), in_seconds(settings_.server_timeout_s).c_str());
    finish(exit_no_stack);
  }
}

bool GoalClient::joint_state_has_come()
{
  sensor_msgs::msg::JointState state;
  rclcpp::MessageInfo info;
  has_joint_state_ = has_joint_state_ || joint_states_->take(state, info);
  return has_joint_state_;
}

void GoalClient::watch_for_command()
{
  // Checked first, because a finished dialogue has no further goal.
  const bool is_over = dialogue_.is_over();
  if (auto command = dialogue_.next()) {
    start(std::move(*command));
  } else if (is_over) {
    finish(exit_succeeded);
  }
}

void GoalClient::start(MoveCommand command)
{
  const auto request = to_request(command, settings_.planner);
  cancelled_ = Cancelled::no;
  motion_.emplace(std::move(command), markers_, monotonic_ns);
  state_ = State::moving;
  motion_->begin();
  motion_->enter(Phase::goal_sent);
  action_.send(motion_->command().goal_id, request);
}

void GoalClient::answered(bool is_accepted)
{
  if (state_ != State::moving) {
    return;
  }
  if (!is_accepted) {
    conclude(MoveItErrorCodes::FAILURE, "move_group refused the goal");
    return;
  }
  motion_->enter(Phase::goal_accepted);
  if (cancelled_ != Cancelled::no) {
    action_.cancel();
  }
}

void GoalClient::fed_back(const std::string & state)
{
  const auto phase = phase_of(state);
  if (phase && state_ == State::moving) {
    // If both are waiting, feedback is handled before the response.
    motion_->enter(Phase::goal_accepted);
    motion_->enter(*phase);
  }
}

void GoalClient::ended(std::int8_t status, const MoveGroup::Result & result)
{
  if (state_ != State::moving) {
    return;
  }
  motion_->enter(Phase::result);
  const auto plan = plan_of(result);
  if (cancelled_ != Cancelled::no) {
    conclude_cancelled(plan, result.planning_time);
  } else if (result.error_code.val == MoveItErrorCodes::UNDEFINED) {
    const auto message = "a result without an error code, of a goal with status " +
      std::to_string(status);
    conclude(code_of_status(status), message, plan, result.planning_time);
  } else {
    conclude(result.error_code.val, result.error_code.message, plan, result.planning_time);
  }
}

void GoalClient::watch_motion()
{
  if (cancelled_ != Cancelled::no) {
    if (monotonic_ns() > deadline_ns_) {
      conclude_cancelled(std::nullopt, 0.0);
    }
  } else if (is_interrupted_()) {
    ask_to_end(Cancelled::interrupted);
  } else if (motion_->is_overdue()) {
    ask_to_end(Cancelled::timed_out);
  } else if (!action_.server_is_there()) {
    conclude(
      MoveItErrorCodes::COMMUNICATION_FAILURE,
      "the action server " + settings_.action_name + " disappeared");
  }
}

void GoalClient::ask_to_end(Cancelled reason)
{
  cancelled_ = reason;
  deadline_ns_ = monotonic_ns() + cancel_grace_ns;
  action_.cancel();
}

void GoalClient::conclude_cancelled(const std::optional<Plan> & plan, double planning_time_s)
{
  const bool is_answered = motion_->stamps().at(Phase::result).has_value();
  const std::string end = is_answered ? "; cancelled" : "; cancelling it had no answer";
  if (cancelled_ == Cancelled::interrupted) {
    conclude(MoveItErrorCodes::PREEMPTED, "interrupted" + end, plan, planning_time_s);
  } else {
    const auto limit = in_seconds(motion_->command().timeout_s);
    conclude(MoveItErrorCodes::TIMED_OUT, "no result within " + limit + end, plan, planning_time_s);
  }
}

void GoalClient::conclude(
  std::int32_t error_code, const std::string & message, const std::optional<Plan> & plan,
  double planning_time_s)
{
  motion_->end(error_code, plan);
  const auto & command = motion_->command();
  report_ = {
    command.goal_id, error_code, message, motion_->stamps(), plan, planning_time_s, std::nullopt};
  const bool is_known =
    error_code != MoveItErrorCodes::COMMUNICATION_FAILURE && cancelled_ != Cancelled::interrupted;
  if (is_known && !command.plan_only && std::holds_alternative<Pose>(command.goal.target)) {
    tip_.expect_after_now(command.goal.link);
    deadline_ns_ = monotonic_ns() + tip_grace_ns;
    state_ = State::awaiting_tip;
  } else {
    hand_over();
  }
}

void GoalClient::watch_for_tip()
{
  if (const auto pose = tip_.newer()) {
    report_.pose_error = error_between(*pose, std::get<Pose>(motion_->command().goal.target));
    hand_over();
  } else if (monotonic_ns() > deadline_ns_ || is_interrupted_()) {
    hand_over();
  }
}

void GoalClient::hand_over()
{
  const auto & command = motion_->command();
  if (report_.error_code != MoveItErrorCodes::SUCCESS) {
    RCLCPP_WARN(
      node_.get_logger(), "goal '%s' ended with %d: %s", command.goal.name.c_str(),
      report_.error_code, report_.message.c_str());
  }
  dialogue_.ended(report_);
  if (is_interrupted_()) {
    finish(exit_interrupted);
  } else {
    state_ = State::idle;
  }
}

void GoalClient::finish(ExitCode code)
{
  state_ = State::finished;
  timer_->cancel();
  finish_(code);
}

}  // namespace ldos_goal_client
