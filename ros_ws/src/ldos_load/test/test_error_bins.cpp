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

#include "ldos_load/error_bins.hpp"

using ldos_load::CountsByBin;
using ldos_load::ErrorBins;

TEST(ErrorBins, SmallErrorsAreExact)
{
  for (std::int64_t error_ns = 0; error_ns < 32; ++error_ns) {
    EXPECT_EQ(ErrorBins::bin_of(error_ns), static_cast<std::size_t>(error_ns));
    EXPECT_EQ(ErrorBins::bin_of(-error_ns), static_cast<std::size_t>(error_ns));
  }
}

TEST(ErrorBins, AnOctaveHasSixteenBins)
{
  EXPECT_EQ(ErrorBins::bin_of(32), 32U);
  EXPECT_EQ(ErrorBins::bin_of(33), 32U);
  EXPECT_EQ(ErrorBins::bin_of(63), 47U);
  EXPECT_EQ(ErrorBins::bin_of(64), 48U);
  EXPECT_EQ(ErrorBins::bin_of(1'000'000), 270U);
}

TEST(ErrorBins, EveryErrorHasABin)
{
  ErrorBins bins;
  bins.add(std::numeric_limits<std::int64_t>::max());
  bins.add(std::numeric_limits<std::int64_t>::min());
  bins.add(-7);
  bins.add(7);
  EXPECT_EQ(bins.counts(), (CountsByBin{{7, 2}, {959, 1}, {960, 1}}));
}
