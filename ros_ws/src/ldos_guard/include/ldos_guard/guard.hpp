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

#ifndef LDOS_GUARD__GUARD_HPP_
#define LDOS_GUARD__GUARD_HPP_

#include <cstdint>
#include <memory>
#include <optional>

#include <rclcpp/rclcpp.hpp>

#include "ldos_guard/aimd.hpp"
#include "ldos_guard/path_watch.hpp"
#include "ldos_guard/stamp.hpp"
#include "ldos_guard/steering.hpp"

namespace ldos_guard
{

/// Watches how late messages are at the end of a path, and throttles publishers if too many are.
///
/// At its end, it restores the publishers' full rate.
class Guard : public rclcpp::Node
{
public:
  explicit Guard(const rclcpp::NodeOptions & options);
  ~Guard() override;

private:
  void hear(const rclcpp::SerializedMessage & message);
  std::optional<std::int64_t> age_ns(const rclcpp::SerializedMessage & message) const;
  void close_window();
  void report(bool is_final) const;

  StampPlace stamp_place_{};
  std::unique_ptr<PathWatch> watch_;
  std::unique_ptr<Aimd> law_;
  std::unique_ptr<Steering> steering_;
  rclcpp::GenericSubscription::SharedPtr subscription_;
  rclcpp::TimerBase::SharedPtr window_timer_;
  rclcpp::TimerBase::SharedPtr report_timer_;
  rclcpp::TimerBase::SharedPtr end_timer_;
  rclcpp::PreShutdownCallbackHandle farewell_;
};

}  // namespace ldos_guard

#endif  // LDOS_GUARD__GUARD_HPP_
