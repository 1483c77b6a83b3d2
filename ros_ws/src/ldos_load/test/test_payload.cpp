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
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>

#include "ldos_load/payload.hpp"

using ldos_load::make_payload;
using ldos_load::read_sequence;
using ldos_load::sequence_length;
using ldos_load::write_sequence;

TEST(Payload, HasTheSizeAndTheSequence)
{
  auto payload = make_payload(1024);
  EXPECT_EQ(payload.size(), 1024U);
  EXPECT_EQ(read_sequence(payload), 0U);
  for (const std::uint64_t sequence : {std::uint64_t{1}, std::uint64_t{0x0123456789abcdef},
      std::numeric_limits<std::uint64_t>::max()})
  {
    write_sequence(payload, sequence);
    EXPECT_EQ(read_sequence(payload), sequence);
    EXPECT_EQ(payload.size(), 1024U);
    EXPECT_EQ(payload.substr(sequence_length), std::string(1024 - sequence_length, 'X'));
  }
}

TEST(Payload, MayBeTheSequenceAlone)
{
  EXPECT_EQ(make_payload(16), "0000000000000000");
  EXPECT_THROW(make_payload(15), std::invalid_argument);
}

TEST(Payload, OtherTextsHaveNoSequence)
{
  for (const std::string text : {"", "000000000000000", "XXXXXXXXXXXXXXXXXXXX", "00000000000000 1",
      "-000000000000001", "0x00000000000001"})
  {
    EXPECT_EQ(read_sequence(text), std::nullopt) << text;
  }
}
