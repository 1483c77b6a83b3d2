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

#ifndef LDOS_COST__SETTINGS_HPP_
#define LDOS_COST__SETTINGS_HPP_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace ldos_cost
{

/// Settings of the exchange of one program, given as `name=value` on its command line.
struct Settings
{
  std::string rung{"one_node"};
  std::int64_t topics{20};
  std::int64_t subscribers{10};
  std::int64_t nodes{10};
  double rate_hz{10.0};
  std::int64_t size_bytes{64};
  std::int64_t ticks{10};
  double match_s{20.0};

  std::int64_t period_ns() const;
  /// Messages of one exchange: each topic publishes once per tick to each of its subscribers.
  std::int64_t deliveries() const;
};

/// Throws std::invalid_argument, which names the invalid argument.
Settings read_settings(int count, const char * const * words);

}  // namespace ldos_cost

#endif  // LDOS_COST__SETTINGS_HPP_
