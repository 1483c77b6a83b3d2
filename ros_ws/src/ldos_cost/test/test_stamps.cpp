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
#include <limits>
#include <string>

#include "ldos_cost/stamps.hpp"

using ldos_cost::monotonic_ns;
using ldos_cost::read_stamp;
using ldos_cost::sleep_until;
using ldos_cost::write_stamp;

TEST(Stamps, AreReadBack)
{
  std::string text(20, 'X');
  for (const std::int64_t stamp : {std::int64_t{0}, std::int64_t{0x0123456789abcdef},
      std::numeric_limits<std::int64_t>::max()})
  {
    write_stamp(text, stamp);
    EXPECT_EQ(read_stamp(text), stamp);
    EXPECT_EQ(text.substr(16), "XXXX");
  }
}

TEST(Stamps, OtherTextsHaveNone)
{
  for (const std::string text : {"", "000000000000000", "XXXXXXXXXXXXXXXX", "00000000000000 1"}) {
    EXPECT_EQ(read_stamp(text), -1) << text;
  }
}

TEST(Stamps, SleepEndsAtItsTime)
{
  const auto until_ns = monotonic_ns() + 5'000'000;
  sleep_until(until_ns);
  EXPECT_GE(monotonic_ns(), until_ns);
}
