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
#include <optional>

#include "ldos_guard/path_watch.hpp"

using ldos_guard::PathWatch;

constexpr std::int64_t deadline_ns = 10;
constexpr std::int64_t silence_ns = 500;

PathWatch new_watch()
{
  return {deadline_ns, silence_ns};
}

TEST(PathWatch, OlderThanTheDeadlineIsLate)
{
  auto watch = new_watch();
  watch.hear(10, 1'001);
  watch.hear(11, 1'002);
  watch.hear(-5, 1'003);
  const auto window = watch.close_window(1'100);
  EXPECT_EQ(window.received, 3U);
  EXPECT_EQ(window.late, 1U);
  EXPECT_FALSE(window.is_silent);
}

TEST(PathWatch, WindowsAreResetAndTotalsKept)
{
  auto watch = new_watch();
  watch.hear(50, 1'001);
  watch.close_window(1'100);
  watch.hear(1, 1'101);
  const auto window = watch.close_window(1'200);
  EXPECT_EQ(window.received, 1U);
  EXPECT_EQ(window.late, 0U);
  EXPECT_EQ(watch.heard().received, 2U);
  EXPECT_EQ(watch.heard().late, 1U);
}

TEST(PathWatch, SilenceBeginsAfterItsTime)
{
  auto watch = new_watch();
  watch.hear(1, 1'050);
  EXPECT_FALSE(watch.close_window(1'549).is_silent);
  EXPECT_TRUE(watch.close_window(1'550).is_silent);
  EXPECT_TRUE(watch.close_window(1'650).is_silent);
  watch.hear(1, 1'651);
  EXPECT_FALSE(watch.close_window(1'750).is_silent);
  EXPECT_EQ(watch.heard().silent_windows, 2U);
}

TEST(PathWatch, PathWithoutAnyMessageIsNotSilent)
{
  auto watch = new_watch();
  EXPECT_FALSE(watch.close_window(1'000'000).is_silent);
  watch.hear(std::nullopt, 1'000'001);
  EXPECT_FALSE(watch.close_window(2'000'000).is_silent);
  EXPECT_EQ(watch.heard().silent_windows, 0U);
}

TEST(PathWatch, MessagesWithoutTimeAreCountedAndNeverLate)
{
  auto watch = new_watch();
  watch.hear(1, 1'000);
  watch.close_window(1'100);
  watch.hear(std::nullopt, 1'400);
  const auto window = watch.close_window(1'600);
  EXPECT_EQ(window.received, 0U);
  EXPECT_FALSE(window.is_silent);
  EXPECT_EQ(watch.heard().unstamped, 1U);
}
