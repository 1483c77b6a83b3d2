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

#include <gtest/gtest.h>

#include <cstdint>

#include "ldos_load/throttled_schedule.hpp"

using ldos_load::RateSchedule;
using ldos_load::ThrottledSchedule;

constexpr std::int64_t ns_per_ms = 1'000'000;
constexpr std::int64_t ns_per_s = 1'000'000'000;
constexpr std::int64_t begin_ns = 7'000;

ThrottledSchedule at_share(double share, std::uint64_t burst = 1)
{
  return {RateSchedule(1000.0, burst, begin_ns), begin_ns, share};
}

TEST(ThrottledSchedule, TheFullShareIsThePlainSchedule)
{
  const RateSchedule plain(999.9, 3, begin_ns);
  const ThrottledSchedule whole(plain, begin_ns, 1.0);
  for (std::uint64_t message = 0; message < 10'000; message += 7) {
    const auto due_ns = plain.due_ns(message);
    EXPECT_EQ(whole.due_ns(message), due_ns);
    EXPECT_EQ(whole.allowed_by(due_ns), plain.due_by(due_ns));
    EXPECT_EQ(whole.requested_by(due_ns), plain.due_by(due_ns));
  }
}

TEST(ThrottledSchedule, AtAHalfMessagesAreDueHalfAsOften)
{
  const auto half = at_share(0.5);
  EXPECT_EQ(half.due_ns(0), begin_ns);
  EXPECT_EQ(half.due_ns(1), begin_ns + 2 * ns_per_ms);
  EXPECT_EQ(half.allowed_by(begin_ns + ns_per_s - 1), 500U);
  EXPECT_EQ(half.requested_by(begin_ns + ns_per_s - 1), 1000U);
}

TEST(ThrottledSchedule, BurstsStayWhole)
{
  const auto half = at_share(0.5, 10);
  EXPECT_EQ(half.due_ns(9), begin_ns);
  EXPECT_EQ(half.due_ns(10), begin_ns + 20 * ns_per_ms);
  EXPECT_EQ(half.allowed_by(begin_ns + ns_per_s - 1) % 10, 0U);
}

TEST(ThrottledSchedule, InterleavedSchedulesStayInterleaved)
{
  const RateSchedule plain(1000.0, 1, begin_ns);
  const ThrottledSchedule first(plain, begin_ns, 0.5);
  const ThrottledSchedule second(plain.delayed_by(0.5), begin_ns, 0.5);
  for (std::uint64_t message = 0; message < 100; ++message) {
    EXPECT_EQ(second.due_ns(message) - first.due_ns(message), ns_per_ms);
  }
}

TEST(ThrottledSchedule, AChangeNeitherAddsNorDropsMessages)
{
  ThrottledSchedule schedule(RateSchedule(1000.0, 1, begin_ns), begin_ns, 1.0);
  schedule.throttle(0.1, begin_ns + ns_per_s);
  EXPECT_EQ(schedule.allowed_by(begin_ns + ns_per_s), 1001U);
  EXPECT_EQ(schedule.due_ns(1001), begin_ns + ns_per_s + 10 * ns_per_ms);
  schedule.throttle(1.0, begin_ns + 2 * ns_per_s);
  EXPECT_EQ(schedule.allowed_by(begin_ns + 2 * ns_per_s), 1101U);
  EXPECT_EQ(schedule.due_ns(1101), begin_ns + 2 * ns_per_s + ns_per_ms);
  EXPECT_EQ(schedule.requested_by(begin_ns + 2 * ns_per_s), 2001U);
}

TEST(ThrottledSchedule, AChangeBeforeTheBeginningDoesNotDelayIt)
{
  ThrottledSchedule schedule(RateSchedule(1000.0, 1, begin_ns), begin_ns, 1.0);
  schedule.throttle(0.1, 0);
  EXPECT_EQ(schedule.due_ns(0), begin_ns);
  EXPECT_EQ(schedule.due_ns(1), begin_ns + 10 * ns_per_ms);
}

TEST(ThrottledSchedule, AChangeDoesNotDelayEarlierMessages)
{
  ThrottledSchedule schedule(RateSchedule(1000.0, 1, begin_ns), begin_ns, 1.0);
  schedule.throttle(0.5, begin_ns + 100 * ns_per_ms);
  schedule.throttle(0.01, begin_ns + 200 * ns_per_ms);
  EXPECT_EQ(schedule.due_ns(90), begin_ns + 90 * ns_per_ms);
  EXPECT_EQ(schedule.due_ns(140), begin_ns + 180 * ns_per_ms);
}

TEST(ThrottledSchedule, ManyChangesAddUp)
{
  ThrottledSchedule schedule(RateSchedule(1000.0, 1, begin_ns), begin_ns, 1.0);
  for (std::int64_t change = 0; change < 10'000; ++change) {
    schedule.throttle(change % 2 == 0 ? 0.25 : 0.75, begin_ns + change * ns_per_ms);
  }
  const auto now_ns = begin_ns + 10 * ns_per_s;
  EXPECT_NEAR(static_cast<double>(schedule.allowed_by(now_ns)), 5'000.0, 2.0);
}

TEST(ThrottledSchedule, AllowedCountsAgreeWithDueTimes)
{
  for (const double share : {0.01, 0.3, 0.37, 0.99, 1.0}) {
    const ThrottledSchedule schedule(RateSchedule(997.0, 3, begin_ns), begin_ns, share);
    for (std::uint64_t message = 0; message < 30'000; message += 997) {
      const auto due_ns = schedule.due_ns(message);
      EXPECT_GT(schedule.allowed_by(due_ns + 1), message);
      EXPECT_LE(schedule.allowed_by(due_ns - 2), message);
    }
  }
}

TEST(ThrottledSchedule, NothingIsDueAgainAtTheSmallestShare)
{
  const auto schedule = at_share(5e-324);
  EXPECT_EQ(schedule.due_ns(0), begin_ns);
  EXPECT_GT(schedule.due_ns(1), begin_ns + 30LL * 365 * 24 * 3600 * ns_per_s);
  EXPECT_EQ(schedule.allowed_by(begin_ns + 3600 * ns_per_s), 1U);
}
