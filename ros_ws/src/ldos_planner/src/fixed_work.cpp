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


#include "ldos_planner/fixed_work.hpp"

#include <ctime>

namespace ldos_planner
{
namespace
{

constexpr int rounds = 50'000;
constexpr std::int64_t ns_per_s = 1'000'000'000;

std::int64_t thread_time_ns()
{
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec * ns_per_s + now.tv_nsec;
}

/// A chain of dependent steps, which neither the compiler nor the processor can shorten.
std::uint64_t chain()
{
  std::uint64_t number = 1;
  for (int round = 0; round < rounds; ++round) {
    number ^= number << 13;
    number ^= number >> 7;
    number ^= number << 17;
  }
  return number;
}

}  // namespace

std::int64_t time_fixed_work()
{
  const std::int64_t began_ns = thread_time_ns();
  [[maybe_unused]] const volatile std::uint64_t kept = chain();
  return thread_time_ns() - began_ns;
}

}  // namespace ldos_planner
