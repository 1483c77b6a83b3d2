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

#include "ldos_cost/usage.hpp"

#include <sys/resource.h>

#include <sstream>
#include <string>

namespace ldos_cost
{
namespace
{

std::int64_t in_ns(const timeval & time)
{
  return time.tv_sec * 1'000'000'000L + time.tv_usec * 1'000L;
}

}  // namespace

Usage read_usage()
{
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return {in_ns(used.ru_utime), in_ns(used.ru_stime), used.ru_nvcsw, used.ru_nivcsw};
}

Usage operator-(const Usage & after, const Usage & before)
{
  return {
    after.user_ns - before.user_ns, after.system_ns - before.system_ns,
    after.voluntary - before.voluntary, after.involuntary - before.involuntary};
}

std::string exchanged_line(const Exchanged & exchanged)
{
  std::ostringstream line;
  line << "{\"ticks\": " << exchanged.ticks << ", \"published\": " << exchanged.published <<
    ", \"received\": " << exchanged.received << ", \"wall_ns\": " << exchanged.wall_ns <<
    ", \"user_ns\": " << exchanged.used.user_ns << ", \"system_ns\": " <<
    exchanged.used.system_ns << ", \"voluntary\": " << exchanged.used.voluntary <<
    ", \"involuntary\": " << exchanged.used.involuntary << "}\n";
  return line.str();
}

}  // namespace ldos_cost
