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

#include <filesystem>
#include <fstream>
#include <string>

#include "ldos_topology/samples.hpp"

using ldos_topology::Sample;
using ldos_topology::SampleFile;

TEST(Samples, AreFiveIntegersEach)
{
  const auto path = std::filesystem::temp_directory_path() / "ldos_topology_test_samples";
  SampleFile samples(path);
  samples.add({1, 2, 3, 4, 5});
  samples.flush();
  samples.add({6, 7, 8, 9, 10});
  samples.flush();
  std::ifstream file(path, std::ios::binary);
  std::int64_t number = 0;
  for (std::int64_t expected = 1; expected <= 10; ++expected) {
    file.read(reinterpret_cast<char *>(&number), sizeof(number));
    EXPECT_EQ(number, expected);
  }
  EXPECT_EQ(file.peek(), std::ifstream::traits_type::eof());
  std::filesystem::remove(path);
}

TEST(Samples, KnowWhenTheLastArrived)
{
  SampleFile samples("/dev/null");
  EXPECT_TRUE(samples.has_all(1, 2, 0));
  EXPECT_FALSE(samples.has_all(1, 2, 1));
  samples.add({1, 2, 4, 0, 0});
  EXPECT_TRUE(samples.has_all(1, 2, 5));
  EXPECT_FALSE(samples.has_all(1, 2, 6));
  EXPECT_FALSE(samples.has_all(1, 3, 1));
}
