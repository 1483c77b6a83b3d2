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

#ifndef LDOS_COST__RUNG_HPP_
#define LDOS_COST__RUNG_HPP_

#include <cstdint>
#include <memory>
#include <string>

#include "ldos_cost/settings.hpp"

namespace ldos_cost
{

/// Numbers of sent and received messages.
struct Counts
{
  std::int64_t published{};
  std::int64_t received{};
};

/// One way to exchange the same traffic.
class Rung
{
public:
  /// Time limit for messages after the last tick.
  static constexpr std::int64_t patience_ns = 1'000'000'000;

  Rung() = default;
  Rung(const Rung &) = delete;
  Rung & operator=(const Rung &) = delete;
  virtual ~Rung() = default;

  /// True if every publisher has all its subscribers.
  virtual bool is_matched() = 0;

  /// Publishes on all topics at every tick; returns when all messages arrived, or after the limit.
  virtual Counts exchange() = 0;
};

std::unique_ptr<Rung> make_in_process(const Settings & settings);
std::unique_ptr<Rung> make_middleware_only(const Settings & settings);

/// Nodes of rclcpp: the number of their participants, and if they publish.
struct NodesKind
{
  std::int64_t nodes{1};
  bool own_participants{false};
  bool publishes{true};
};
std::unique_ptr<Rung> make_nodes(const Settings & settings, const NodesKind & kind);

std::string topic_name(std::int64_t number);

}  // namespace ldos_cost

#endif  // LDOS_COST__RUNG_HPP_
