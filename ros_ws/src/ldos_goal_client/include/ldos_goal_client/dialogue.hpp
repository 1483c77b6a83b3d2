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

#ifndef LDOS_GOAL_CLIENT__DIALOGUE_HPP_
#define LDOS_GOAL_CLIENT__DIALOGUE_HPP_

#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <ostream>
#include <string>

#include "ldos_goal_client/move_command.hpp"
#include "ldos_goal_client/move_report.hpp"

namespace ldos_goal_client
{

/// Commands from another program, one per line, and a report of each.
///
/// `hear` and `close` may be called from another thread than the rest.
class Dialogue
{
public:
  /// @param complain gets the reason if a line is no command.
  Dialogue(std::ostream & lines, std::function<void(const std::string &)> complain);

  /// Takes a line that was read; empty ones are ignored.
  void hear(std::string line);

  /// Notes the end of input; commands that were read are still carried out.
  void close();

  /// The stack takes goals.
  void ready();

  /// The next goal to send; none while there is none yet, or none any more.
  std::optional<MoveCommand> next();

  /// A goal has ended.
  void ended(const MoveReport & report);

  /// No goal will come any more.
  bool is_over() const;

private:
  std::optional<std::string> next_line();
  void refuse(const BadCommand & bad);

  std::ostream & lines_;
  std::function<void(const std::string &)> complain_;
  mutable std::mutex mutex_;
  std::deque<std::string> heard_;
  bool is_closed_{false};
};

}  // namespace ldos_goal_client

#endif  // LDOS_GOAL_CLIENT__DIALOGUE_HPP_
