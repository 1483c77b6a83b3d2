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

#include "ldos_tracepoints/tracepoints.hpp"

TEST(Emission, EveryEventCanBeEmittedWithoutASession)
{
  constexpr auto least = std::numeric_limits<std::int64_t>::min();
  constexpr auto most = std::numeric_limits<std::uint64_t>::max();
  ldos_tracepoints::trial_begin("0123456789abcdef0123456789abcdef", "baseline", 7);
  ldos_tracepoints::phase("0123456789abcdef0123456789abcdef", "planning");
  ldos_tracepoints::plan("0123456789abcdef0123456789abcdef", least, 12);
  ldos_tracepoints::trial_end("0123456789abcdef0123456789abcdef", -6);
  ldos_tracepoints::control_cycle(most, least, 2'000'000);
  ldos_tracepoints::sim_step(most, least);
  ldos_tracepoints::cpu_speed(least);
  ldos_tracepoints::planning_stage("search", least);
  ldos_tracepoints::header_stamp(least);
  SUCCEED();
}
