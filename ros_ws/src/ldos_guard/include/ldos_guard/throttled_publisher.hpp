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

#ifndef LDOS_GUARD__THROTTLED_PUBLISHER_HPP_
#define LDOS_GUARD__THROTTLED_PUBLISHER_HPP_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include <rcl_interfaces/srv/set_parameters.hpp>
#include <rclcpp/rclcpp.hpp>

namespace ldos_guard
{

/// A node whose share of its rate is set through a parameter.
///
/// No function waits. After an answer, the share is sent again each second: the node may have been
/// restarted.
class ThrottledPublisher
{
public:
  /// @param name of the node.
  /// @param on_answer called after each answer.
  ThrottledPublisher(
    rclcpp::Node & node, rclcpp::CallbackGroup::SharedPtr group, const std::string & name,
    const std::string & parameter, std::function<void()> on_answer);

  /// Sends the share if it is due.
  void steer(double share, std::int64_t now_ns);

  /// True if no request is pending and this share was sent last, or the node is absent.
  bool is_settled(double share) const;

  /// The reason why it has not confirmed the share; empty if it has.
  const std::string & complaint() const {return complaint_;}

private:
  using SetParameters = rcl_interfaces::srv::SetParameters;

  void ask(double share, std::int64_t now_ns);
  void hear(const SetParameters::Response & response);
  void give_up_waiting(std::int64_t now_ns);

  std::string parameter_;
  std::function<void()> on_answer_;
  rclcpp::Client<SetParameters>::SharedPtr client_;
  std::optional<std::int64_t> request_;
  std::int64_t asked_ns_{0};
  std::int64_t next_ns_{0};
  double told_{0.0};
  std::string complaint_{"not asked yet"};
};

}  // namespace ldos_guard

#endif  // LDOS_GUARD__THROTTLED_PUBLISHER_HPP_
