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

#include "ldos_load/flood_publisher.hpp"

#include <sys/prctl.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <rcl_interfaces/msg/set_parameters_result.hpp>
#include <rclcpp_components/register_node_macro.hpp>

#include "ldos_load/counts.hpp"
#include "ldos_load/flood_publisher_parameters.hpp"
#include "ldos_load/payload.hpp"

namespace ldos_load
{
namespace
{

constexpr std::int64_t ns_per_s = 1'000'000'000;
/// Longest wait, so that the thread can be ended and a new throttle takes effect soon.
constexpr std::int64_t longest_sleep_ns = ns_per_s / 100;
/// Time between two checks if the flood may begin.
constexpr std::chrono::milliseconds begin_period{10};
/// Time without changes of the graph after which discovery is complete. Fast DDS may delay
/// every send of a process by 333 ms while it opens the shared memory of a new peer.
constexpr std::int64_t quiet_ns = ns_per_s;
/// Time limit for a graph that keeps changing.
constexpr std::int64_t quiet_patience_ns = 10 * ns_per_s;

void sleep_until(std::int64_t mono_ns)
{
  timespec moment{};
  moment.tv_sec = mono_ns / ns_per_s;
  moment.tv_nsec = mono_ns % ns_per_s;
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &moment, nullptr);
}

rclcpp::QoS qos_of(const flood_publisher::Params & params)
{
  const rclcpp::QoS qos(rclcpp::KeepLast(static_cast<std::size_t>(params.depth)));
  return params.reliability == "reliable" ? rclcpp::QoS(qos).reliable() :
         rclcpp::QoS(qos).best_effort();
}

constexpr char why_not_throttled[] =
  "a reliable publisher is not throttled: its readers wait for every message";

rcl_interfaces::msg::SetParametersResult refuse_throttle(
  const std::vector<rclcpp::Parameter> & changes)
{
  rcl_interfaces::msg::SetParametersResult result;
  result.successful = std::none_of(
    changes.begin(), changes.end(), [](const auto & change) {
      return change.get_name() == "throttle";
    });
  result.reason = result.successful ? "" : why_not_throttled;
  return result;
}

}  // namespace

Flood::Flood(
  TextPublisher::SharedPtr publisher, std::unique_ptr<ThrottledSchedule> schedule,
  std::size_t size_bytes)
: publisher_(std::move(publisher)), schedule_(std::move(schedule)),
  thread_([this, size_bytes](const std::stop_token & stopping) {
      publish_until(stopping, size_bytes);
    })
{}

void Flood::stop()
{
  thread_.request_stop();
  if (thread_.joinable()) {
    thread_.join();
  }
}

void Flood::throttle(double share, std::int64_t now_ns)
{
  schedule_->throttle(share, now_ns);
}

void Flood::add_to(Progress & progress, std::int64_t now_ns) const
{
  progress.published[publisher_->get_topic_name()] = published_;
  progress.requested += schedule_->requested_by(now_ns);
  progress.allowed += schedule_->allowed_by(now_ns);
  progress.given_up += given_up_;
  for (const auto & [bin, count] : errors_.counts()) {
    progress.error_bins[bin] += count;
  }
}

void Flood::publish_until(const std::stop_token & stopping, std::size_t size_bytes)
{
  // Threads wake up to 50 µs late otherwise.
  prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
  std_msgs::msg::String message;
  message.data = make_payload(size_bytes);
  for (std::uint64_t slot = 0; !stopping.stop_requested(); ) {
    const std::int64_t now_ns = monotonic_ns();
    const std::int64_t due_ns = schedule_->due_ns(slot);
    if (due_ns > now_ns) {
      sleep_until(std::min(due_ns, now_ns + longest_sleep_ns));
    } else if (now_ns - due_ns > longest_lag_ns) {
      const auto next_slot = std::max(schedule_->allowed_by(now_ns), slot + 1);
      given_up_ += next_slot - slot;
      slot = next_slot;
    } else {
      publish(message, now_ns, due_ns);
      ++slot;
    }
  }
}

void Flood::publish(std_msgs::msg::String & message, std::int64_t now_ns, std::int64_t due_ns)
{
  write_sequence(message.data, published_);
  try {
    publisher_->publish(message);
  } catch (const rclcpp::exceptions::RCLError & error) {
    // A reliable publisher waited too long for its readers.
    RCLCPP_WARN_ONCE(rclcpp::get_logger("flood_publisher"), "not sent: %s", error.what());
    ++given_up_;
    return;
  }
  if (published_++ > 0) {
    errors_.add((now_ns - last_sent_ns_) - (due_ns - last_due_ns_));
  }
  last_sent_ns_ = now_ns;
  last_due_ns_ = due_ns;
}

FloodPublisher::FloodPublisher(const rclcpp::NodeOptions & options)
: rclcpp::Node("flood_publisher", options)
{
  survive_without_reader();
  parameters_ = std::make_unique<flood_publisher::ParamListener>(get_node_parameters_interface());
  const auto params = parameters_->get_params();
  accept_throttle();
  rate_hz_ = params.rate_hz;
  burst_ = static_cast<std::uint64_t>(params.burst);
  size_bytes_ = static_cast<std::size_t>(params.size_bytes);
  for (const auto & topic :
    topic_names(params.topic_prefix, params.first_number, params.publishers))
  {
    publishers_.push_back(create_publisher<std_msgs::msg::String>(topic, qos_of(params)));
  }
  awaits_readers_ = params.awaits_readers;
  graph_news_ = get_graph_event();
  started_ns_ = news_ns_ = monotonic_ns();
  begin_timer_ = create_wall_timer(begin_period, [this]() {begin_when_met();});
  report_timer_ = create_wall_timer(
    std::chrono::duration<double>(params.report_period_s), [this]() {report(false);});
  if (params.seconds > 0.0) {
    end_timer_ = create_wall_timer(
      std::chrono::duration<double>(params.seconds), []() {rclcpp::shutdown();});
  }
}

FloodPublisher::~FloodPublisher()
{
  for (const auto & flood : floods_) {
    flood->stop();
  }
  report(true);
}

void FloodPublisher::accept_throttle()
{
  const auto params = parameters_->get_params();
  throttle_ = params.throttle;
  if (params.reliability == "reliable") {
    if (throttle_ < 1.0) {
      throw std::invalid_argument(std::string("parameter 'throttle': ") + why_not_throttled);
    }
    refusal_ = add_on_set_parameters_callback(refuse_throttle);
  }
  obedience_ = add_post_set_parameters_callback(
    [this](const std::vector<rclcpp::Parameter> & changes) {
      for (const auto & change : changes) {
        if (change.get_name() == "throttle") {
          throttle(change.as_double());
        }
      }
    });
}

void FloodPublisher::throttle(double share)
{
  throttle_ = share;
  const auto now_ns = monotonic_ns();
  for (const auto & flood : floods_) {
    flood->throttle(share, now_ns);
  }
}

void FloodPublisher::begin_when_met()
{
  const auto now_ns = monotonic_ns();
  if (graph_news_->check_and_clear()) {
    news_ns_ = now_ns;
  }
  const bool is_quiet =
    now_ns - news_ns_ >= quiet_ns || now_ns - started_ns_ >= quiet_patience_ns;
  if (is_quiet && (!awaits_readers_ || is_matched())) {
    begin_timer_->cancel();
    graph_news_.reset();
    begin(now_ns);
  }
}

bool FloodPublisher::is_matched() const
{
  return std::all_of(
    publishers_.begin(), publishers_.end(), [](const auto & publisher) {
      return publisher->get_subscription_count() > 0;
    });
}

void FloodPublisher::begin(std::int64_t begin_ns)
{
  const RateSchedule schedule(rate_hz_, burst_, begin_ns);
  for (std::size_t index = 0; index < publishers_.size(); ++index) {
    const auto share = static_cast<double>(index) / static_cast<double>(publishers_.size());
    floods_.push_back(
      std::make_unique<Flood>(
        publishers_[index],
        std::make_unique<ThrottledSchedule>(schedule.delayed_by(share), begin_ns, throttle_),
        size_bytes_));
  }
}

void FloodPublisher::report(bool is_final) const
{
  const auto now_ns = monotonic_ns();
  Progress progress;
  for (const auto & publisher : publishers_) {
    progress.published[publisher->get_topic_name()] = 0;
  }
  for (const auto & flood : floods_) {
    flood->add_to(progress, now_ns);
  }
  std::cout << published_line(now_ns, progress, is_final) << std::flush;
}

}  // namespace ldos_load

RCLCPP_COMPONENTS_REGISTER_NODE(ldos_load::FloodPublisher)
