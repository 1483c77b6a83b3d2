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

#include "ldos_guard/report.hpp"

using ldos_guard::Progress;
using ldos_guard::report_line;

TEST(Report, IsALineOfJson)
{
  const Progress progress{0.5, {7, 3, 2, 1}, 4, 5, {"/flood: no such node"}};
  EXPECT_EQ(
    report_line(17, progress, true),
    "{\"mono_ns\":17,\"share\":0.5,\"received\":7,\"late\":3,\"unstamped\":2,\"silent_windows\":1,"
    "\"decreases\":4,\"increases\":5,\"missing\":[\"/flood: no such node\"],\"final\":true}\n");
}

TEST(Report, MissingMayBeEmpty)
{
  EXPECT_NE(report_line(17, Progress{}, false).find("\"missing\":[],\"final\":false}"),
    std::string::npos);
}

TEST(Report, ReasonsMayBeAnyBytes)
{
  Progress progress;
  progress.missing = {"/flood: refused: \xff\n\"quoted\""};
  const auto line = report_line(17, progress, false);
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  EXPECT_NE(line.find("\\n\\\"quoted\\\""), std::string::npos);
}
