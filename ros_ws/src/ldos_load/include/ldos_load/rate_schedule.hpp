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

#ifndef LDOS_LOAD__RATE_SCHEDULE_HPP_
#define LDOS_LOAD__RATE_SCHEDULE_HPP_

#include <cstdint>

namespace ldos_load
{

/// Due times of the messages of a flood: evenly spaced bursts from a beginning, so that
/// one that is late does not delay those after it.
class RateSchedule
{
public:
  /// @param rate_hz messages a second, not bursts.
  /// @param begin_ns time of the first burst.
  RateSchedule(double rate_hz, std::uint64_t burst, std::int64_t begin_ns);

  /// The same, a share of the time between two bursts later.
  RateSchedule delayed_by(double share) const;

  /// The time at which a message is due.
  std::int64_t due_ns(std::uint64_t message) const;

  /// The number of messages that are due up to and including this time.
  std::uint64_t due_by(std::int64_t now_ns) const;

private:
  double burst_period_ns_;
  std::uint64_t burst_;
  std::int64_t begin_ns_;
};

}  // namespace ldos_load

#endif  // LDOS_LOAD__RATE_SCHEDULE_HPP_
