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

#include "ldos_load/throttled_schedule.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <mutex>

namespace ldos_load
{
namespace
{

/// Time for which earlier shares are kept; messages that are later are not looked up.
constexpr std::int64_t memory_ns = 1'000'000'000;
/// About 31 years.
constexpr double longest_wait_ns = 1e18;

}  // namespace

std::int64_t ThrottledSchedule::Stretch::passed_by(std::int64_t now_ns) const
{
  return passed_ns + static_cast<std::int64_t>(
    std::floor(static_cast<double>(now_ns - begin_ns) * share));
}

std::int64_t ThrottledSchedule::Stretch::real_ns(std::int64_t passed_by_then_ns) const
{
  const double wait_ns = std::ceil(static_cast<double>(passed_by_then_ns - passed_ns) / share);
  return begin_ns +
         static_cast<std::int64_t>(std::clamp(wait_ns, -longest_wait_ns, longest_wait_ns));
}

ThrottledSchedule::ThrottledSchedule(
  const RateSchedule & schedule, std::int64_t begin_ns, double share)
: schedule_(schedule), stretches_{{begin_ns, begin_ns, share}}
{}

void ThrottledSchedule::throttle(double share, std::int64_t now_ns)
{
  const std::scoped_lock lock(mutex_);
  const auto from_ns = std::max(now_ns, stretches_.back().begin_ns);
  stretches_.push_back({from_ns, stretches_.back().passed_by(from_ns), share});
  while (stretches_.size() > 1 && stretches_[1].begin_ns < now_ns - memory_ns) {
    stretches_.pop_front();
  }
}

std::int64_t ThrottledSchedule::due_ns(std::uint64_t message) const
{
  const auto passed_ns = schedule_.due_ns(message);
  const std::scoped_lock lock(mutex_);
  std::size_t found = stretches_.size() - 1;
  while (found > 0 && stretches_[found].passed_ns > passed_ns) {
    --found;
  }
  return stretches_[found].real_ns(passed_ns);
}

std::uint64_t ThrottledSchedule::allowed_by(std::int64_t now_ns) const
{
  const std::scoped_lock lock(mutex_);
  return schedule_.due_by(stretches_.back().passed_by(now_ns));
}

std::uint64_t ThrottledSchedule::requested_by(std::int64_t now_ns) const
{
  return schedule_.due_by(now_ns);
}

}  // namespace ldos_load
