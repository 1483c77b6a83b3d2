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

#ifndef LDOS_COST__STAMPS_HPP_
#define LDOS_COST__STAMPS_HPP_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace ldos_cost
{

/// CLOCK_MONOTONIC.
std::int64_t monotonic_ns();

/// Returns at that time, or as soon after it as the kernel permits.
void sleep_until(std::int64_t mono_ns);

/// Digits of a stamp; a text begins with one.
constexpr std::size_t stamp_digits = 16;

/// Writes a number of nanoseconds to the first 16 characters, in hexadecimal.
void write_stamp(std::string & text, std::int64_t stamp_ns);

/// Reads a number that `write_stamp` wrote; -1 if there is none.
std::int64_t read_stamp(std::string_view text);

}  // namespace ldos_cost

#endif  // LDOS_COST__STAMPS_HPP_
