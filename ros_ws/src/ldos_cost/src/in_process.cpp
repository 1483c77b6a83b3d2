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

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <std_msgs/msg/string.hpp>

#include "ldos_cost/rung.hpp"
#include "ldos_cost/stamps.hpp"

namespace ldos_cost
{
namespace
{

using Callback = std::function<void (const std_msgs::msg::String &)>;

/// Publishing is a call: no middleware, no threads.
class InProcess : public Rung
{
public:
  explicit InProcess(const Settings & settings)
  : settings_(settings)
  {
    message_.data.assign(static_cast<std::size_t>(settings.size_bytes), ' ');
    const Callback count = [this](const std_msgs::msg::String & message) {
        received_ += message.data.empty() ? 0 : 1;
      };
    const std::vector<Callback> subscribers(static_cast<std::size_t>(settings.subscribers), count);
    topics_.assign(static_cast<std::size_t>(settings.topics), subscribers);
  }

  bool is_matched() override {return true;}

  Counts exchange() override
  {
    received_ = 0;
    const auto begin_ns = monotonic_ns();
    for (std::int64_t tick = 1; tick <= settings_.ticks; ++tick) {
      sleep_until(begin_ns + tick * settings_.period_ns());
      publish_all();
    }
    return {settings_.ticks * settings_.topics, received_};
  }

private:
  void publish_all() const
  {
    for (const auto & topic : topics_) {
      for (const auto & subscriber : topic) {
        subscriber(message_);
      }
    }
  }

  Settings settings_;
  std_msgs::msg::String message_;
  std::vector<std::vector<Callback>> topics_;
  std::int64_t received_{0};
};

}  // namespace

std::unique_ptr<Rung> make_in_process(const Settings & settings)
{
  return std::make_unique<InProcess>(settings);
}

std::string topic_name(std::int64_t number)
{
  return "/cost_topic_" + std::to_string(number);
}

}  // namespace ldos_cost
