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

#include "ldos_cost/stamps.hpp"
#include "ldos_cost/usage.hpp"

using ldos_cost::Exchanged;
using ldos_cost::exchanged_line;
using ldos_cost::monotonic_ns;
using ldos_cost::read_usage;
using ldos_cost::sleep_until;

TEST(Usage, CountsUsedCpuTime)
{
  const auto before = read_usage();
  while ((read_usage() - before).user_ns + (read_usage() - before).system_ns < 50'000'000) {
  }
  sleep_until(monotonic_ns() + 1'000'000);
  const auto used = read_usage() - before;
  EXPECT_LT(used.user_ns + used.system_ns, 200'000'000);
  EXPECT_GE(used.voluntary, 1);
}

TEST(Usage, IsOneLineOfJson)
{
  const Exchanged exchanged{1, 2, 3, 4, {5, 6, 7, 8}};
  EXPECT_EQ(
    exchanged_line(exchanged),
    "{\"ticks\": 1, \"published\": 2, \"received\": 3, \"wall_ns\": 4, \"user_ns\": 5, "
    "\"system_ns\": 6, \"voluntary\": 7, \"involuntary\": 8}\n");
}
