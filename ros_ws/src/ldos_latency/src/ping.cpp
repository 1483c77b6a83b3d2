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

#include "ldos_latency/ping.hpp"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <vector>

#include <nlohmann/json.hpp>

namespace ldos_latency
{
namespace
{

constexpr double kNsPerSecond = 1e9;
constexpr std::int64_t kLookNs = 10'000'000;

std::int64_t seconds(rclcpp::Node & node, const char * name, double value)
{
  const auto given = node.declare_parameter<double>(name, value);
  if (!(given >= 0 && given <= 3600)) {
    throw std::invalid_argument(std::string(name) + " must be between 0 and 3600");
  }
  return static_cast<std::int64_t>(given * kNsPerSecond);
}

std::int64_t interval_of(double rate_hz)
{
  if (!(rate_hz >= 0 && rate_hz <= 1e6)) {
    throw std::invalid_argument("rate_hz must be between 0 and 1000000");
  }
  return rate_hz > 0 ? static_cast<std::int64_t>(kNsPerSecond / rate_hz) : 0;
}

std::size_t size_of(std::int64_t size)
{
  if (size < 1 || size > (1 << 20)) {
    throw std::invalid_argument("size_bytes must be between 1 and 1048576");
  }
  return static_cast<std::size_t>(size);
}

void write(std::ofstream & file, const std::vector<std::int64_t> & times)
{
  file.write(
    reinterpret_cast<const char *>(times.data()),
    static_cast<std::streamsize>(times.size() * sizeof(times[0])));
}

}  // namespace

Ping::Ping()
: rclcpp::Node("latency_ping"),
  match_timeout_ns_(seconds(*this, "match_timeout_s", 10.0)),
  samples_(declare_parameter<std::string>("samples", "")),
  message_(make_message(size_of(declare_parameter<std::int64_t>("size_bytes", 1024))))
{
  settings_.warm_up_ns = seconds(*this, "warm_up_s", 0.2);
  settings_.duration_ns = seconds(*this, "seconds", 1.0);
  settings_.patience_ns = seconds(*this, "patience_s", 0.25);
  settings_.interval_ns = interval_of(declare_parameter<double>("rate_hz", 0.0));
  const auto qos = qos_of(*this);
  publisher_ = create_publisher<Message>(kPingTopic, qos);
  subscription_ = create_subscription<Message>(
    kPongTopic, qos, [this](std::unique_ptr<Message> message) {take(*message);});
}

void Ping::run(rclcpp::Executor & executor)
{
  if (!await_match(executor)) {
    std::cout << nlohmann::json{{"matched", false}} << std::endl;
    return;
  }
  exchange_.emplace(settings_, now_ns());
  std::uint64_t lost = 0;
  bool is_alone = false;
  while (rclcpp::ok() && !is_alone && !exchange_->is_over(now_ns())) {
    send_due();
    is_alone = exchange_->lost() > lost && !is_matched();
    lost = exchange_->lost();
    executor.spin_once(
      std::chrono::nanoseconds(std::max<std::int64_t>(0, exchange_->next_moment() - now_ns())));
  }
  report(is_alone);
}

bool Ping::is_matched() const
{
  return publisher_->get_subscription_count() > 0 && subscription_->get_publisher_count() > 0;
}

bool Ping::await_match(rclcpp::Executor & executor) const
{
  const auto deadline = now_ns() + match_timeout_ns_;
  while (rclcpp::ok() && now_ns() < deadline) {
    if (is_matched()) {
      return true;
    }
    executor.spin_once(std::chrono::nanoseconds(kLookNs));
  }
  return false;
}

void Ping::send_due()
{
  if (const auto number = exchange_->next(now_ns())) {
    message_.layout.data_offset = *number;
    publisher_->publish(message_);
  }
}

void Ping::take(const Message & message)
{
  const auto time_ns = now_ns();
  if (exchange_) {
    exchange_->close(message.layout.data_offset, stamp_of(message), time_ns);
    send_due();
  }
}

void Ping::report(bool is_alone) const
{
  if (!samples_.empty()) {
    std::ofstream file(samples_, std::ios::binary);
    write(file, exchange_->round_trips());
    write(file, exchange_->ways_there());
    if (!file.flush()) {
      throw std::runtime_error("times cannot be written to " + samples_);
    }
  }
  const nlohmann::json found = {
    {"matched", true}, {"sent", exchange_->sent()}, {"lost", exchange_->lost()},
    {"late", exchange_->late()}, {"elapsed_ns", exchange_->elapsed_ns()}, {"is_alone", is_alone}};
  std::cout << found << std::endl;
}

}  // namespace ldos_latency
