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

#include "ldos_cost/stamps.hpp"

#include <time.h>

#include <charconv>
#include <chrono>
#include <string>
#include <string_view>
#include <system_error>

namespace ldos_cost
{
namespace
{

constexpr std::int64_t ns_per_s = 1'000'000'000;

}  // namespace

std::int64_t monotonic_ns()
{
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

void sleep_until(std::int64_t mono_ns)
{
  timespec moment{};
  moment.tv_sec = mono_ns / ns_per_s;
  moment.tv_nsec = mono_ns % ns_per_s;
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &moment, nullptr);
}

void write_stamp(std::string & text, std::int64_t stamp_ns)
{
  constexpr std::string_view digits = "0123456789abcdef";
  auto left = static_cast<std::uint64_t>(stamp_ns);
  for (std::size_t place = stamp_digits; place > 0; --place) {
    text[place - 1] = digits[left & 0xFU];
    left >>= 4U;
  }
}

std::int64_t read_stamp(std::string_view text)
{
  if (text.size() < stamp_digits) {
    return -1;
  }
  std::uint64_t stamp = 0;
  const auto * end = text.data() + stamp_digits;
  const auto read = std::from_chars(text.data(), end, stamp, 16);
  return read.ec == std::errc{} && read.ptr == end ? static_cast<std::int64_t>(stamp) : -1;
}

}  // namespace ldos_cost
