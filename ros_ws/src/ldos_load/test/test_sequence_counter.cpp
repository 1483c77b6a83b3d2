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
#include <optional>
#include <vector>

#include "ldos_load/sequence_counter.hpp"

using ldos_load::SequenceCounter;

namespace
{

SequenceCounter count(const std::vector<std::uint64_t> & sequences)
{
  SequenceCounter counter;
  for (const auto sequence : sequences) {
    counter.observe(sequence);
  }
  return counter;
}

}  // namespace

TEST(SequenceCounter, ConsecutiveMessagesAreNotLost)
{
  const auto counter = count({0, 1, 2, 3});
  EXPECT_EQ(counter.received(), 4U);
  EXPECT_EQ(counter.lost(), 0U);
}

TEST(SequenceCounter, GapsAreLost)
{
  const auto counter = count({0, 1, 4, 5, 7});
  EXPECT_EQ(counter.received(), 5U);
  EXPECT_EQ(counter.lost(), 3U);
}

TEST(SequenceCounter, EarlierMessagesAreNotMissing)
{
  EXPECT_EQ(count({1000, 1001}).lost(), 0U);
}

TEST(SequenceCounter, LateMessagesAreNotLost)
{
  EXPECT_EQ(count({0, 2, 1, 3}).lost(), 0U);
}

TEST(SequenceCounter, PublisherMayRestart)
{
  const auto counter = count({0, 1, 2, 0, 1, 3});
  EXPECT_EQ(counter.received(), 6U);
  EXPECT_EQ(counter.lost(), 1U);
}

TEST(SequenceCounter, MessagesWithoutASequenceAreCounted)
{
  SequenceCounter counter;
  counter.observe(std::nullopt);
  counter.observe(std::nullopt);
  EXPECT_EQ(counter.received(), 2U);
  EXPECT_EQ(counter.lost(), 0U);
}
