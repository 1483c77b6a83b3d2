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

#include "ldos_latency/exchange.hpp"

using ldos_latency::Exchange;
using ldos_latency::ExchangeSettings;

constexpr ExchangeSettings kSettings{100, 1000, 50, 0};

TEST(Exchange, next_follows_the_answer)
{
  Exchange exchange(kSettings, 1000);
  EXPECT_EQ(exchange.next(1000), 1U);
  EXPECT_EQ(exchange.next(1010), std::nullopt);
  exchange.close(1, 1015, 1020);
  EXPECT_EQ(exchange.next(1020), 2U);
}

TEST(Exchange, the_warm_up_does_not_count)
{
  Exchange exchange(kSettings, 1000);
  exchange.next(1000);
  exchange.close(1, 1005, 1010);
  EXPECT_TRUE(exchange.round_trips().empty());
  exchange.next(1100);
  exchange.close(2, 1104, 1110);
  ASSERT_EQ(exchange.round_trips().size(), 1U);
  EXPECT_EQ(exchange.round_trips()[0], 10);
  EXPECT_EQ(exchange.ways_there()[0], 4);
  EXPECT_EQ(exchange.sent(), 1U);
  EXPECT_EQ(exchange.elapsed_ns(), 10);
}

TEST(Exchange, an_answer_after_the_limit_is_lost_and_late)
{
  Exchange exchange(kSettings, 1000);
  exchange.next(1100);
  EXPECT_EQ(exchange.next_moment(), 1150);
  EXPECT_EQ(exchange.next(1150), 2U);
  EXPECT_EQ(exchange.lost(), 1U);
  EXPECT_EQ(exchange.elapsed_ns(), 50);
  exchange.close(1, 1151, 1152);
  EXPECT_EQ(exchange.late(), 1U);
  EXPECT_EQ(exchange.next(1153), std::nullopt);
}

TEST(Exchange, a_rate_is_kept_and_missed_messages_are_dropped)
{
  Exchange exchange({0, 1000, 50, 100}, 1000);
  EXPECT_EQ(exchange.next(1000), 1U);
  exchange.close(1, 1005, 1010);
  EXPECT_EQ(exchange.next(1050), std::nullopt);
  EXPECT_EQ(exchange.next_moment(), 1100);
  EXPECT_EQ(exchange.next(1320), 2U);
  exchange.close(2, 1321, 1322);
  EXPECT_EQ(exchange.next(1322), std::nullopt);
  EXPECT_EQ(exchange.next_moment(), 1420);
}

TEST(Exchange, the_last_answer_is_awaited)
{
  Exchange exchange(kSettings, 1000);
  exchange.next(2090);
  EXPECT_FALSE(exchange.is_over(2101));
  exchange.close(1, 2100, 2105);
  EXPECT_TRUE(exchange.is_over(2105));
  EXPECT_EQ(exchange.round_trips().size(), 1U);
}
