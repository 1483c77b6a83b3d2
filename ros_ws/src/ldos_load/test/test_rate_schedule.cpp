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

#include "ldos_load/rate_schedule.hpp"

using ldos_load::RateSchedule;

constexpr std::int64_t ns_per_s = 1'000'000'000;

TEST(RateSchedule, MessagesAreDueAtEqualDistances)
{
  const RateSchedule schedule(1000.0, 1, 5'000);
  EXPECT_EQ(schedule.due_ns(0), 5'000);
  EXPECT_EQ(schedule.due_ns(1), 1'005'000);
  EXPECT_EQ(schedule.due_ns(1'000'000'000), 1'000'000 * ns_per_s + 5'000);
}

TEST(RateSchedule, BurstsAreDueTogetherAtTheSameRate)
{
  const RateSchedule schedule(1000.0, 10, 0);
  EXPECT_EQ(schedule.due_ns(9), 0);
  EXPECT_EQ(schedule.due_ns(10), 10'000'000);
  EXPECT_EQ(schedule.due_ns(19), 10'000'000);
  EXPECT_EQ(schedule.due_by(ns_per_s - 1), 1000U);
}

TEST(RateSchedule, NothingIsDueBeforeItBegins)
{
  const RateSchedule schedule(1000.0, 1, 100);
  EXPECT_EQ(schedule.due_by(99), 0U);
  EXPECT_EQ(schedule.due_by(100), 1U);
}

TEST(RateSchedule, PublishersAreInterleaved)
{
  const auto schedule = RateSchedule(1000.0, 10, 500).delayed_by(0.25);
  EXPECT_EQ(schedule.due_ns(0), 2'500'500);
  EXPECT_EQ(schedule.due_ns(10), 12'500'500);
}

TEST(RateSchedule, DueCountsAgreeWithDueTimes)
{
  for (const double rate_hz : {0.3, 7.0, 999.9, 1000.0, 30'000.0}) {
    for (const std::uint64_t burst : {1U, 3U, 100U}) {
      const RateSchedule schedule(rate_hz, burst, 12'345);
      for (std::uint64_t message = 0; message < 100'000; message += 997) {
        const auto due_ns = schedule.due_ns(message);
        EXPECT_GT(schedule.due_by(due_ns), message);
        EXPECT_LE(schedule.due_by(due_ns - 1), message);
      }
    }
  }
}
