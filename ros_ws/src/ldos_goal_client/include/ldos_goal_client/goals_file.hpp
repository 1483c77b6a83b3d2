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

#ifndef LDOS_GOAL_CLIENT__GOALS_FILE_HPP_
#define LDOS_GOAL_CLIENT__GOALS_FILE_HPP_

#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "ldos_goal_client/goal.hpp"

namespace ldos_goal_client
{

/// The content of a goals file: the arm's home position, and sets of goals by name.
struct GoalsFile
{
  std::optional<Goal> home;
  std::map<std::string, std::vector<Goal>> goal_sets;
};

/// An invalid goals file; the message names file, line and key.
class UnreadableGoals : public std::runtime_error
{
public:
  using std::runtime_error::runtime_error;
};

/// @param name name of the text in messages.
/// @throws UnreadableGoals
GoalsFile parse_goals(const std::string & text, const std::string & name);

/// @throws UnreadableGoals
GoalsFile read_goals_file(const std::string & path);

/// @throws UnreadableGoals there is no such set, or it is empty.
const std::vector<Goal> & find_goal_set(const GoalsFile & goals, const std::string & name);

}  // namespace ldos_goal_client

#endif  // LDOS_GOAL_CLIENT__GOALS_FILE_HPP_
