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

#include "ldos_guard/throttled_publisher.hpp"

#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace ldos_guard
{
namespace
{

constexpr std::int64_t ns_per_ms = 1'000'000;
/// Time limit for an answer.
constexpr std::int64_t patience_ns = 1'000 * ns_per_ms;
/// Time between repeated requests.
constexpr std::int64_t repeat_ns = 1'000 * ns_per_ms;
/// Time between two searches for an absent node.
constexpr std::int64_t look_ns = 100 * ns_per_ms;

rcl_interfaces::msg::Parameter parameter_of(const std::string & name, double share)
{
  return rclcpp::Parameter(name, share).to_parameter_msg();
}

}  // namespace

ThrottledPublisher::ThrottledPublisher(
  rclcpp::Node & node, rclcpp::CallbackGroup::SharedPtr group, const std::string & name,
  const std::string & parameter, std::function<void()> on_answer)
: parameter_(parameter), on_answer_(std::move(on_answer)),
  client_(node.create_client<SetParameters>(
      name + "/set_parameters", rclcpp::ParametersQoS(), std::move(group)))
{}

void ThrottledPublisher::steer(double share, std::int64_t now_ns)
{
  if (request_ && now_ns - asked_ns_ > patience_ns) {
    give_up_waiting(now_ns);
  }
  if (request_ || (share == told_ && now_ns < next_ns_)) {
    return;
  }
  told_ = share;
  if (client_->service_is_ready()) {
    ask(share, now_ns);
  } else {
    complaint_ = "no such node";
    next_ns_ = now_ns + look_ns;
  }
}

bool ThrottledPublisher::is_settled(double share) const
{
  return !request_ && told_ == share;
}

void ThrottledPublisher::ask(double share, std::int64_t now_ns)
{
  asked_ns_ = now_ns;
  next_ns_ = now_ns + repeat_ns;
  auto request = std::make_shared<SetParameters::Request>();
  request->parameters.push_back(parameter_of(parameter_, share));
  try {
    request_ = client_->async_send_request(
      request, [this](rclcpp::Client<SetParameters>::SharedFuture answer) {
        hear(*answer.get());
        on_answer_();
      }).request_id;
  } catch (const rclcpp::exceptions::RCLError & error) {
    complaint_ = std::string("not asked: ") + error.what();
  }
}

void ThrottledPublisher::hear(const SetParameters::Response & response)
{
  request_.reset();
  if (response.results.empty()) {
    complaint_ = "refused: it has no answer to parameters";
  } else if (response.results.front().successful) {
    complaint_.clear();
  } else {
    complaint_ = "refused: " + response.results.front().reason;
  }
}

void ThrottledPublisher::give_up_waiting(std::int64_t now_ns)
{
  client_->remove_pending_request(*request_);
  request_.reset();
  complaint_ = "no answer";
  next_ns_ = now_ns;
}

}  // namespace ldos_guard
