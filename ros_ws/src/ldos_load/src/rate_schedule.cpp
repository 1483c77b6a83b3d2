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

#include "ldos_load/rate_schedule.hpp"

#include <cmath>

namespace ldos_load
{
namespace
{

constexpr double ns_per_s = 1e9;

}  // namespace

RateSchedule::RateSchedule(double rate_hz, std::uint64_t burst, std::int64_t begin_ns)
: burst_period_ns_(ns_per_s * static_cast<double>(burst) / rate_hz), burst_(burst),
  begin_ns_(begin_ns)
{}

RateSchedule RateSchedule::delayed_by(double share) const
{
  auto later = *this;
  later.begin_ns_ += static_cast<std::int64_t>(share * burst_period_ns_);
  return later;
}

std::int64_t RateSchedule::due_ns(std::uint64_t message) const
{
  const auto bursts = static_cast<double>(message / burst_);
  return begin_ns_ + static_cast<std::int64_t>(std::ceil(bursts * burst_period_ns_));
}

std::uint64_t RateSchedule::due_by(std::int64_t now_ns) const
{
  if (now_ns < begin_ns_) {
    return 0;
  }
  auto bursts = static_cast<std::uint64_t>(
    static_cast<double>(now_ns - begin_ns_) / burst_period_ns_) + 1;
  // The division rounds; the schedule decides.
  while (due_ns(bursts * burst_) <= now_ns) {
    ++bursts;
  }
  while (bursts > 1 && due_ns((bursts - 1) * burst_) > now_ns) {
    --bursts;
  }
  return bursts * burst_;
}

}  // namespace ldos_load
