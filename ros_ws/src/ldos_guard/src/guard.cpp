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

#include "ldos_guard/guard.hpp"

#include <span>

#include <chrono>
#include <csignal>
#include <iostream>
#include <memory>
#include <optional>

#include <rclcpp_components/register_node_macro.hpp>

#include "ldos_guard/guard_parameters.hpp"
#include "ldos_guard/monotonic.hpp"
#include "ldos_guard/report.hpp"

namespace ldos_guard
{
namespace
{

using Milliseconds = std::chrono::duration<double, std::milli>;
using Seconds = std::chrono::duration<double>;

/// Time limit for restoring the publishers' full rate.
constexpr std::chrono::milliseconds farewell_patience{500};
/// Queue length for messages while one is processed.
constexpr std::size_t depth = 100;

std::int64_t ns_of(double milliseconds)
{
  return std::chrono::round<std::chrono::nanoseconds>(Milliseconds(milliseconds)).count();
}

AimdSettings law_of(const guard::Params & params)
{
  return {
    params.late_share, params.least_share, params.decrease,
    static_cast<std::uint64_t>(params.calm_windows), params.increase};
}

}  // namespace

Guard::Guard(const rclcpp::NodeOptions & options)
: rclcpp::Node("guard", options)
{
  // It still has to restore the rate when the reader of its reports has ended.
  std::signal(SIGPIPE, SIG_IGN);
  guard::ParamListener parameters(get_node_parameters_interface());
  const auto params = parameters.get_params();
  stamp_place_ = find_stamp(params.type);
  law_ = std::make_unique<Aimd>(law_of(params));
  steering_ = std::make_unique<Steering>(*this, params.publishers, params.parameter);
  watch_ = std::make_unique<PathWatch>(ns_of(params.deadline_ms), ns_of(params.silence_ms));
  subscription_ = create_generic_subscription(
    params.topic, params.type, rclcpp::QoS(depth).best_effort(),
    [this](std::shared_ptr<const rclcpp::SerializedMessage> message) {hear(*message);});
  window_timer_ =
    create_wall_timer(Milliseconds(params.window_ms), [this]() {close_window();});
  report_timer_ =
    create_wall_timer(Seconds(params.report_period_s), [this]() {report(false);});
  if (params.seconds > 0.0) {
    end_timer_ = create_wall_timer(Seconds(params.seconds), []() {rclcpp::shutdown();});
  }
  farewell_ = get_node_base_interface()->get_context()->add_pre_shutdown_callback(
    [this]() {steering_->release(farewell_patience);});
}

Guard::~Guard()
{
  const auto context = get_node_base_interface()->get_context();
  context->remove_pre_shutdown_callback(farewell_);
  if (rclcpp::ok(context)) {
    steering_->release(farewell_patience);
  }
  report(true);
}

void Guard::hear(const rclcpp::SerializedMessage & message)
{
  watch_->hear(age_ns(message), monotonic_ns());
}

std::optional<std::int64_t> Guard::age_ns(const rclcpp::SerializedMessage & message) const
{
  const auto & bytes = message.get_rcl_serialized_message();
  const auto stamp_ns = read_stamp(stamp_place_, std::span(bytes.buffer, bytes.buffer_length));
  const auto now_ns = get_clock()->now().nanoseconds();
  // A simulation's clock is 0 until its first message.
  return stamp_ns && now_ns != 0 ? std::optional(now_ns - *stamp_ns) : std::nullopt;
}

void Guard::close_window()
{
  law_->observe(watch_->close_window(monotonic_ns()));
  steering_->set_share(law_->share());
}

void Guard::report(bool is_final) const
{
  const Progress progress{
    law_->share(), watch_->heard(), law_->decreases(), law_->increases(), steering_->missing()};
  std::cout << report_line(monotonic_ns(), progress, is_final) << std::flush;
}

}  // namespace ldos_guard

RCLCPP_COMPONENTS_REGISTER_NODE(ldos_guard::Guard)
