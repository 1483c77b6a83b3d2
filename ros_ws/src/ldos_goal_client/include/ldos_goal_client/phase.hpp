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

#ifndef LDOS_GOAL_CLIENT__PHASE_HPP_
#define LDOS_GOAL_CLIENT__PHASE_HPP_

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace ldos_goal_client
{

/// The phases of a goal, in the order of a successful one.
enum class Phase
{
  goal_sent,
  goal_accepted,
  planning,
  executing,
  result
};

inline constexpr std::array phases{
  Phase::goal_sent, Phase::goal_accepted, Phase::planning, Phase::executing, Phase::result};

/// Its name in `ldos:phase` and in reports.
const char * name_of(Phase phase);

/// The phase that a state in MoveGroup's feedback begins; none for IDLE and LOOK.
std::optional<Phase> phase_of(const std::string & feedback_state);

/// Returns nanoseconds of CLOCK_MONOTONIC; injected so that tests control it.
using Clock = std::function<std::int64_t()>;

/// Reads CLOCK_MONOTONIC.
std::int64_t monotonic_ns();

/// Times at which each phase was first entered.
class PhaseStamps
{
public:
  /// @return true the first time.
  bool enter(Phase phase, std::int64_t now_ns);

  /// None for a phase that was not entered.
  std::optional<std::int64_t> at(Phase phase) const;

private:
  std::array<std::optional<std::int64_t>, phases.size()> stamps_{};
};

}  // namespace ldos_goal_client

#endif  // LDOS_GOAL_CLIENT__PHASE_HPP_
