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

#ifndef LDOS_GOAL_CLIENT__MOVE_REPORT_HPP_
#define LDOS_GOAL_CLIENT__MOVE_REPORT_HPP_

#include <cstdint>
#include <optional>
#include <string>

#include "ldos_goal_client/motion.hpp"
#include "ldos_goal_client/phase.hpp"
#include "ldos_goal_client/pose_error.hpp"

namespace ldos_goal_client
{

/// The outcome of a goal.
struct MoveReport
{
  std::string goal_id;
  /// MoveIt's.
  std::int32_t error_code{};
  std::string message;
  PhaseStamps stamps;
  std::optional<Plan> plan;
  /// Planning time in the result; 0 from MoveIt versions that do not set it.
  double planning_time_s{};
  /// Difference of the link's final pose and the goal, if known.
  std::optional<PoseError> pose_error;
};

/// The line that announces that goals are accepted; ends with a newline.
std::string ready_line();

/// The report as one line of JSON, ends with a newline. Phases that were not entered have
/// no stamp; other unknown values are null.
std::string to_line(const MoveReport & report);

}  // namespace ldos_goal_client

#endif  // LDOS_GOAL_CLIENT__MOVE_REPORT_HPP_
