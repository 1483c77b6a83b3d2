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

#ifndef LDOS_GOAL_CLIENT__SESSION_HPP_
#define LDOS_GOAL_CLIENT__SESSION_HPP_

#include <optional>

#include "ldos_goal_client/move_command.hpp"
#include "ldos_goal_client/move_report.hpp"

namespace ldos_goal_client
{

/// Exit codes of the program.
enum ExitCode : int
{
  exit_succeeded = 0,
  exit_goal_failed = 1,
  exit_bad_settings = 2,
  exit_no_stack = 3,
  exit_not_home = 4,
  exit_interrupted = 130
};

/// Provides the goals to send, and takes their reports.
class Session
{
public:
  virtual ~Session() = default;

  /// Called when the stack accepts goals.
  virtual void ready() = 0;

  /// The next goal to send; none if there is none yet or no more.
  virtual std::optional<MoveCommand> next() = 0;

  /// Called when a goal has ended.
  virtual void ended(const MoveCommand & command, const MoveReport & report) = 0;

  /// True if there are no more goals.
  virtual bool is_over() const = 0;

  virtual ExitCode exit_code() const = 0;
};

}  // namespace ldos_goal_client

#endif  // LDOS_GOAL_CLIENT__SESSION_HPP_
