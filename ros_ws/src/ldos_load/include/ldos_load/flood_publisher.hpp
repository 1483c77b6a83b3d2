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

#ifndef LDOS_LOAD__FLOOD_PUBLISHER_HPP_
#define LDOS_LOAD__FLOOD_PUBLISHER_HPP_

#include <stop_token>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <rclcpp/rclcpp.hpp>
#include <std_msgs/msg/string.hpp>

#include "ldos_load/counts.hpp"
#include "ldos_load/error_bins.hpp"
#include "ldos_load/throttled_schedule.hpp"

namespace flood_publisher
{

class ParamListener;

}  // namespace flood_publisher

namespace ldos_load
{

using TextPublisher = rclcpp::Publisher<std_msgs::msg::String>;

/// A thread that floods one topic.
///
/// A late message is sent immediately, but not if it is later than `longest_lag_ns`: a
/// publisher that cannot keep up does not accumulate messages for an endless burst.
class Flood
{
public:
  static constexpr std::int64_t longest_lag_ns = 250'000'000;

  Flood(
    TextPublisher::SharedPtr publisher, std::unique_ptr<ThrottledSchedule> schedule,
    std::size_t size_bytes);

  /// Sets the share of its messages that it sends.
  void throttle(double share, std::int64_t now_ns);

  /// Returns after the last message was sent.
  void stop();

  /// Adds the progress of this topic.
  void add_to(Progress & progress, std::int64_t now_ns) const;

private:
  void publish_until(const std::stop_token & stopping, std::size_t size_bytes);
  void publish(std_msgs::msg::String & message, std::int64_t now_ns, std::int64_t due_ns);

  TextPublisher::SharedPtr publisher_;
  const std::unique_ptr<ThrottledSchedule> schedule_;
  std::atomic<std::uint64_t> published_{0};
  std::atomic<std::uint64_t> given_up_{0};
  ErrorBins errors_;
  std::int64_t last_sent_ns_{0};
  std::int64_t last_due_ns_{0};
  std::jthread thread_;
};

/// Floods topics at a fixed rate, and reports its progress periodically and at the end.
///
/// Its parameter `throttle` is the share of that rate which it may use; one whose readers rely on
/// every message refuses to be throttled.
class FloodPublisher : public rclcpp::Node
{
public:
  explicit FloodPublisher(const rclcpp::NodeOptions & options);
  ~FloodPublisher() override;

private:
  void accept_throttle();
  void throttle(double share);
  void begin_when_met();
  bool is_matched() const;
  void begin(std::int64_t begin_ns);
  void report(bool is_final) const;

  std::unique_ptr<flood_publisher::ParamListener> parameters_;
  OnSetParametersCallbackHandle::SharedPtr refusal_;
  PostSetParametersCallbackHandle::SharedPtr obedience_;
  double throttle_{1.0};
  double rate_hz_{};
  std::uint64_t burst_{};
  std::size_t size_bytes_{};
  std::vector<TextPublisher::SharedPtr> publishers_;
  std::vector<std::unique_ptr<Flood>> floods_;
  bool awaits_readers_ = false;
  rclcpp::Event::SharedPtr graph_news_;
  std::int64_t started_ns_ = 0;
  std::int64_t news_ns_ = 0;
  rclcpp::TimerBase::SharedPtr begin_timer_;
  rclcpp::TimerBase::SharedPtr report_timer_;
  rclcpp::TimerBase::SharedPtr end_timer_;
};

}  // namespace ldos_load

#endif  // LDOS_LOAD__FLOOD_PUBLISHER_HPP_
