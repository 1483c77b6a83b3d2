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

#include "ldos_goal_client/move_action.hpp"

#include <memory>
#include <string>
#include <utility>

namespace ldos_goal_client
{
namespace
{

constexpr std::size_t feedback_depth = 10;

template<typename Uuid>
Uuid uuid_of(const std::string & goal_id)
{
  Uuid id;
  for (std::size_t at = 0; at < id.uuid.size(); ++at) {
    id.uuid[at] = static_cast<std::uint8_t>(std::stoul(goal_id.substr(2 * at, 2), nullptr, 16));
  }
  return id;
}

}  // namespace

MoveAction::MoveAction(rclcpp::Node & node, const std::string & name, Listener listener)
: node_(node), listener_(std::move(listener)), feedback_topic_(name + "/_action/feedback"),
  send_goal_(node.create_client<SendGoal>(name + "/_action/send_goal")),
  get_result_(node.create_client<GetResult>(name + "/_action/get_result")),
  cancel_goal_(node.create_client<CancelGoal>(name + "/_action/cancel_goal")),
  feedback_(node.create_subscription<Feedback>(
      feedback_topic_, rclcpp::QoS(feedback_depth),
      [this](const Feedback & message) {feed_back(message);}))
{}

bool MoveAction::server_is_there() const
{
  return send_goal_->service_is_ready() && get_result_->service_is_ready() &&
         cancel_goal_->service_is_ready() && node_.count_publishers(feedback_topic_) > 0;
}

void MoveAction::send(const std::string & goal_id, const MoveGroup::Goal & goal)
{
  // There will be no more responses to goals that timed out.
  send_goal_->prune_pending_requests();
  get_result_->prune_pending_requests();
  cancel_goal_->prune_pending_requests();
  current_ = uuid_of<Uuid>(goal_id);
  auto request = std::make_shared<SendGoal::Request>();
  request->goal_id = current_;
  request->goal = goal;
  send_goal_->async_send_request(
    request, [this, id = current_](rclcpp::Client<SendGoal>::SharedFuture response) {
      answer(id, response.get()->accepted);
    });
}

void MoveAction::answer(const Uuid & id, bool is_accepted)
{
  if (id != current_) {
    return;
  }
  listener_.answered(is_accepted);
  if (!is_accepted) {
    return;
  }
  auto request = std::make_shared<GetResult::Request>();
  request->goal_id = id;
  get_result_->async_send_request(
    request, [this, id](rclcpp::Client<GetResult>::SharedFuture response) {
      end(id, *response.get());
    });
}

void MoveAction::end(const Uuid & id, const GetResult::Response & response)
{
  if (id != current_) {
    return;
  }
  // The executor takes one message at a time: feedback may still be waiting.
  Feedback message;
  rclcpp::MessageInfo info;
  while (feedback_->take(message, info)) {
    feed_back(message);
  }
  listener_.ended(response.status, response.result);
}

void MoveAction::feed_back(const Feedback & message)
{
  if (message.goal_id == current_) {
    listener_.fed_back(message.feedback.state);
  }
}

void MoveAction::cancel()
{
  auto request = std::make_shared<CancelGoal::Request>();
  request->goal_info.goal_id = current_;
  cancel_goal_->async_send_request(request, [](rclcpp::Client<CancelGoal>::SharedFuture) {});
}

}  // namespace ldos_goal_client
