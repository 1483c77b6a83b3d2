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

#include "ldos_goal_client/phase.hpp"

#include <chrono>
#include <optional>
#include <string>

namespace ldos_goal_client
{

const char * name_of(Phase phase)
{
  switch (phase) {
    case Phase::goal_sent: return "goal_sent";
    case Phase::goal_accepted: return "goal_accepted";
    case Phase::planning: return "planning";
    case Phase::executing: return "executing";
    case Phase::result: return "result";
  }
  return "";
}

std::optional<Phase> phase_of(const std::string & feedback_state)
{
  if (feedback_state == "PLANNING") {
    return Phase::planning;
  }
  if (feedback_state == "MONITOR") {
    return Phase::executing;
  }
  return std::nullopt;
}

std::int64_t monotonic_ns()
{
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

bool PhaseStamps::enter(Phase phase, std::int64_t now_ns)
{
  auto & stamp = stamps_.at(static_cast<std::size_t>(phase));
  if (stamp) {
    return false;
  }
  stamp = now_ns;
  return true;
}

std::optional<std::int64_t> PhaseStamps::at(Phase phase) const
{
  return stamps_.at(static_cast<std::size_t>(phase));
}

}  // namespace ldos_goal_client
