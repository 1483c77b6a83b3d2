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

#include <string>
#include <vector>

#include "ldos_load/counts.hpp"

using ldos_load::published_line;
using ldos_load::received_line;
using ldos_load::topic_names;

TEST(Counts, TopicsAreNumbered)
{
  EXPECT_EQ(
    topic_names("/flood_topic_", 3, 2),
    (std::vector<std::string>{"/flood_topic_3", "/flood_topic_4"}));
}

TEST(Counts, ReceivedIsALineOfJson)
{
  EXPECT_EQ(
    received_line(17, {{"/a", 5}, {"/b", 0}}, {{"/a", 1}, {"/b", 0}}, true),
    "{\"mono_ns\":17,\"received\":{\"/a\":5,\"/b\":0},\"lost\":{\"/a\":1,\"/b\":0},"
    "\"final\":true}\n");
}

TEST(Counts, PublishedIsALineOfJson)
{
  EXPECT_EQ(
    published_line(17, {{{"/a", 5}}, 8, 7, 2, {{3, 4}}}, false),
    "{\"mono_ns\":17,\"published\":{\"/a\":5},\"requested\":8,\"allowed\":7,\"given_up\":2,"
    "\"error_bins\":{\"3\":4},\"final\":false}\n");
}
