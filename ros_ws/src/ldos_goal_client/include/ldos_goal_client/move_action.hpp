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

#ifndef LDOS_GOAL_CLIENT__MOVE_ACTION_HPP_
#define LDOS_GOAL_CLIENT__MOVE_ACTION_HPP_

#include <cstdint>
#include <functional>
#include <string>

#include <moveit_msgs/action/move_group.hpp>
#include <rclcpp/rclcpp.hpp>

namespace ldos_goal_client
{

/// The client's side of the MoveGroup action, one goal at a time.
///
/// It uses the action's services and topic directly, with its own goal ids:
/// `rclcpp_action::Client` generates the id, handles feedback before responses, and drops
/// feedback to a goal whose response it has not seen. On a busy machine both wait together,
/// and the beginning of planning would be lost.
class MoveAction
{
public:
  using MoveGroup = moveit_msgs::action::MoveGroup;

  /// Callbacks for the goal that was sent last.
  struct Listener
  {
    std::function<void(bool is_accepted)> answered;
    std::function<void(const std::string & state)> fed_back;
    /// With a status of action_msgs/GoalStatus.
    std::function<void(std::int8_t status, const MoveGroup::Result & result)> ended;
  };

  MoveAction(rclcpp::Node & node, const std::string & name, Listener listener);

  /// True if a complete action server is known.
  bool server_is_there() const;

  /// @param goal_id 32 hex characters, different for each goal.
  void send(const std::string & goal_id, const MoveGroup::Goal & goal);

  /// Cancels the goal that was sent last.
  void cancel();

private:
  using SendGoal = MoveGroup::Impl::SendGoalService;
  using GetResult = MoveGroup::Impl::GetResultService;
  using CancelGoal = MoveGroup::Impl::CancelGoalService;
  using Feedback = MoveGroup::Impl::FeedbackMessage;
  using Uuid = SendGoal::Request::_goal_id_type;

  void answer(const Uuid & id, bool is_accepted);
  void end(const Uuid & id, const GetResult::Response & response);
  void feed_back(const Feedback & message);

  rclcpp::Node & node_;
  Listener listener_;
  std::string feedback_topic_;
  rclcpp::Client<SendGoal>::SharedPtr send_goal_;
  rclcpp::Client<GetResult>::SharedPtr get_result_;
  rclcpp::Client<CancelGoal>::SharedPtr cancel_goal_;
  rclcpp::Subscription<Feedback>::SharedPtr feedback_;
  Uuid current_{};
};

}  // namespace ldos_goal_client

#endif  // LDOS_GOAL_CLIENT__MOVE_ACTION_HPP_
