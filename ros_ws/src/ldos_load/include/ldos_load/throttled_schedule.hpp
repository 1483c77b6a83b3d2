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

#ifndef LDOS_LOAD__THROTTLED_SCHEDULE_HPP_
#define LDOS_LOAD__THROTTLED_SCHEDULE_HPP_

#include <cstdint>
#include <deque>
#include <mutex>

#include "ldos_load/rate_schedule.hpp"

namespace ldos_load
{

/// A schedule whose time passes at a share of the real one: at a half, messages are due half as
/// often, evenly, and a change of the share neither adds nor drops any.
///
/// One thread may change the share while others read.
class ThrottledSchedule
{
public:
  /// @param begin_ns real time from which on time is throttled; the same for interleaved
  ///   schedules.
  /// @param share of the real time, above 0 and up to 1.
  ThrottledSchedule(const RateSchedule & schedule, std::int64_t begin_ns, double share);

  /// From now on, or from its beginning on, time passes at this share.
  void throttle(double share, std::int64_t now_ns);

  /// The time at which a message is due under the throttle.
  std::int64_t due_ns(std::uint64_t message) const;

  /// The number of messages due under the throttle up to and including this time.
  std::uint64_t allowed_by(std::int64_t now_ns) const;

  /// The number that would be due without it.
  std::uint64_t requested_by(std::int64_t now_ns) const;

private:
  /// A span with one share.
  struct Stretch
  {
    std::int64_t begin_ns;
    /// The schedule's time at its beginning.
    std::int64_t passed_ns;
    double share;

    std::int64_t passed_by(std::int64_t now_ns) const;
    std::int64_t real_ns(std::int64_t passed_by_then_ns) const;
  };

  const RateSchedule schedule_;
  mutable std::mutex mutex_;
  std::deque<Stretch> stretches_;
};

}  // namespace ldos_load

#endif  // LDOS_LOAD__THROTTLED_SCHEDULE_HPP_
