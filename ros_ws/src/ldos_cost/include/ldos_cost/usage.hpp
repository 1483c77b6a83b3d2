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

#ifndef LDOS_COST__USAGE_HPP_
#define LDOS_COST__USAGE_HPP_

#include <cstdint>
#include <string>

namespace ldos_cost
{

/// Resources that this process has used so far.
struct Usage
{
  std::int64_t user_ns{};
  std::int64_t system_ns{};
  std::int64_t voluntary{};
  std::int64_t involuntary{};
};

/// getrusage(2) of all threads, including ended ones.
Usage read_usage();

/// Of one exchange.
struct Exchanged
{
  std::int64_t ticks{};
  std::int64_t published{};
  std::int64_t received{};
  std::int64_t wall_ns{};
  Usage used{};
};

/// One line of JSON: the exchanged messages and the used resources.
std::string exchanged_line(const Exchanged & exchanged);

Usage operator-(const Usage & after, const Usage & before);

}  // namespace ldos_cost

#endif  // LDOS_COST__USAGE_HPP_
