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

#ifndef LDOS_GUARD__STEERING_HPP_
#define LDOS_GUARD__STEERING_HPP_

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <rclcpp/rclcpp.hpp>

#include "ldos_guard/throttled_publisher.hpp"

namespace ldos_guard
{

/// Sends publishers their share on a separate thread, so that the watch of the path is never
/// delayed.
class Steering
{
public:
  /// @param publishers names of nodes.
  /// @param parameter name of the publishers' parameter for the share.
  Steering(
    rclcpp::Node & node, const std::vector<std::string> & publishers,
    const std::string & parameter);

  /// From any thread.
  void set_share(double share);

  /// Restores the full rate of all publishers, and waits for their answers up to the limit.
  void release(std::chrono::milliseconds patience);

  /// Publishers that have not confirmed the share, each with the reason.
  std::vector<std::string> missing() const;

private:
  struct Named
  {
    std::string name;
    std::unique_ptr<ThrottledPublisher> publisher;
  };

  void steer();
  void note();
  double share() const;

  // Used by the thread only.
  rclcpp::CallbackGroup::SharedPtr group_;
  rclcpp::executors::SingleThreadedExecutor executor_;
  std::vector<Named> publishers_;
  rclcpp::TimerBase::SharedPtr timer_;

  // Shared; the mutex is never held while waiting for a publisher.
  mutable std::mutex mutex_;
  std::condition_variable noted_;
  double share_{1.0};
  bool is_released_{false};
  bool is_settled_{false};
  std::vector<std::string> missing_;

  std::jthread thread_;
};

}  // namespace ldos_guard

#endif  // LDOS_GUARD__STEERING_HPP_
