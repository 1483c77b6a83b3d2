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

#include "ldos_latency/exchange.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>

namespace ldos_latency
{
namespace
{

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::size_t kMostPerSecond = 200'000;

/// Memory whose pages are mapped before the measurement.
std::vector<std::int64_t> make_room(std::int64_t duration_ns)
{
  std::vector<std::int64_t> times(
    static_cast<std::size_t>(duration_ns / kSecond + 1) * kMostPerSecond, 1);
  times.clear();
  return times;
}

}  // namespace

std::int64_t now_ns()
{
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

Exchange::Exchange(const ExchangeSettings & settings, std::int64_t begin_ns)
: settings_(settings),
  measure_from_ns_(begin_ns + settings.warm_up_ns),
  end_ns_(measure_from_ns_ + settings.duration_ns),
  due_ns_(begin_ns),
  round_trips_(make_room(settings.duration_ns)),
  ways_there_(make_room(settings.duration_ns))
{
}

std::optional<std::uint32_t> Exchange::next(std::int64_t time_ns)
{
  if (is_open_) {
    if (time_ns < sent_at_ns_ + settings_.patience_ns) {
      return std::nullopt;
    }
    is_open_ = false;
    if (counts()) {
      ++lost_;
      elapsed_ns_ = time_ns - measure_from_ns_;
    }
  }
  if (time_ns < due_ns_ || time_ns >= end_ns_) {
    return std::nullopt;
  }
  due_ns_ += settings_.interval_ns;
  if (due_ns_ < time_ns) {  // missed messages are not sent later
    due_ns_ = time_ns + settings_.interval_ns;
  }
  is_open_ = true;
  sent_at_ns_ = time_ns;
  sent_ += counts() ? 1 : 0;
  return ++number_;
}

void Exchange::close(std::uint32_t number, std::int64_t stamp_ns, std::int64_t time_ns)
{
  if (!is_open_ || number != number_) {
    ++late_;
    return;
  }
  is_open_ = false;
  if (counts()) {
    round_trips_.push_back(time_ns - sent_at_ns_);
    ways_there_.push_back(stamp_ns - sent_at_ns_);
    elapsed_ns_ = time_ns - measure_from_ns_;
  }
}

bool Exchange::is_over(std::int64_t time_ns) const
{
  return !is_open_ && time_ns >= end_ns_;
}

std::int64_t Exchange::next_moment() const
{
  return is_open_ ? sent_at_ns_ + settings_.patience_ns : std::min(due_ns_, end_ns_);
}

}  // namespace ldos_latency
