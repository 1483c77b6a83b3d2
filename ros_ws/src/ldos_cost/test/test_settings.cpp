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

#include <stdexcept>
#include <vector>

#include "ldos_cost/settings.hpp"

using ldos_cost::read_settings;
using ldos_cost::Settings;

namespace
{

Settings read(std::vector<const char *> words)
{
  words.insert(words.begin(), "program");
  return read_settings(static_cast<int>(words.size()), words.data());
}

}  // namespace

TEST(Settings, AreReadByName)
{
  const auto settings = read({"rung=dds", "topics=3", "rate_hz=12.5", "ticks=4"});
  EXPECT_EQ(settings.rung, "dds");
  EXPECT_EQ(settings.topics, 3);
  EXPECT_EQ(settings.period_ns(), 80'000'000);
  EXPECT_EQ(settings.deliveries(), 4 * 3 * 10);
}

TEST(Settings, InvalidValuesAreRefused)
{
  for (const auto * word : {"topics", "topics=", "topics=0", "topics=-1", "topics=2x", "rate_hz=0",
      "rate_hz=nan", "unknown=1", "", "ticks=99999999999999999999"})
  {
    EXPECT_THROW(read({word}), std::invalid_argument) << word;
  }
}
