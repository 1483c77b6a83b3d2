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
#include <unistd.h>

#include <array>
#include <chrono>
#include <future>
#include <mutex>
#include <string>
#include <vector>

#include "ldos_goal_client/line_reader.hpp"

using ldos_goal_client::LineReader;

namespace
{

class LineReaderTest : public testing::Test
{
protected:
  LineReaderTest() {EXPECT_EQ(pipe(ends.data()), 0);}
  ~LineReaderTest() override
  {
    close(ends[0]);
    close_input();
  }

  void say(const std::string & text)
  {
    EXPECT_EQ(write(ends[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }

  void close_input()
  {
    if (ends[1] >= 0) {
      close(ends[1]);
    }
    ends[1] = -1;
  }

  LineReader reader()
  {
    return LineReader(
      ends[0], [this](std::string line) {lines.push_back(std::move(line));},
      [this]() {ended.set_value();});
  }

  void await_end()
  {
    const auto status = ended.get_future().wait_for(std::chrono::seconds(10));
    EXPECT_EQ(status, std::future_status::ready);
  }

  std::array<int, 2> ends{};
  std::vector<std::string> lines;
  std::promise<void> ended;
};

}  // namespace

TEST_F(LineReaderTest, PassesOnWholeLines)
{
  const auto reading = reader();
  say("one\ntw");
  say("o\n\nthree");
  close_input();
  await_end();
  EXPECT_EQ(lines, (std::vector<std::string>{"one", "two", "", "three"}));
}

TEST_F(LineReaderTest, LinesMayBeLong)
{
  const std::string line(10'000, 'x');
  const auto reading = reader();
  say(line + "\n");
  close_input();
  await_end();
  EXPECT_EQ(lines, std::vector<std::string>{line});
}

TEST_F(LineReaderTest, EndsWhileItWaitsForInput)
{
  {
    const auto reading = reader();
  }
  await_end();
  EXPECT_TRUE(lines.empty());
}
