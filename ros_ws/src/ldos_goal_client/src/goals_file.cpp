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

#include "ldos_goal_client/goals_file.hpp"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <initializer_list>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace ldos_goal_client
{
namespace
{

std::string line_of(const YAML::Mark & mark)
{
  return mark.is_null() ? "" : std::string(":").append(std::to_string(mark.line + 1));
}

/// Reads one document; knows its name for messages.
class GoalsParser
{
public:
  explicit GoalsParser(std::string name)
  : name_(std::move(name)) {}

  GoalsFile parse(const YAML::Node & root) const
  {
    require_keys(root, "the file", {"home", "goal_sets"});
    GoalsFile goals;
    if (is_given(root["home"])) {
      goals.home = parse_goal(root["home"], "home", "home");
    }
    const YAML::Node sets = root["goal_sets"];
    if (!is_given(sets) || !sets.IsMap()) {
      fail(root, "'goal_sets' must map names to lists of goals");
    }
    for (const auto & entry : sets) {
      const auto name = text_of(entry.first, "the name of a goal set");
      goals.goal_sets[name] = parse_set(entry.second, "goal_sets." + name);
    }
    return goals;
  }

private:
  [[noreturn]] void fail(const YAML::Node & node, const std::string & reason) const
  {
    throw UnreadableGoals(name_ + line_of(node.Mark()) + ": " + reason);
  }

  static bool is_given(const YAML::Node & node)
  {
    return node.IsDefined() && !node.IsNull();
  }

  void require_keys(
    const YAML::Node & node, const std::string & where,
    std::initializer_list<std::string_view> known) const
  {
    if (!node.IsMap()) {
      fail(node, where + " must be a mapping");
    }
    for (const auto & entry : node) {
      const auto key = text_of(entry.first, "a key of " + where);
      if (std::ranges::find(known, key) == known.end()) {
        fail(entry.first, where + " has an unknown key '" + key + "'");
      }
    }
  }

  std::vector<Goal> parse_set(const YAML::Node & list, const std::string & where) const
  {
    if (!list.IsSequence() || list.size() == 0) {
      fail(list, where + " must be a list of at least one goal");
    }
    std::vector<Goal> goals;
    for (const auto & node : list) {
      const auto here = where + "[" + std::to_string(goals.size()) + "]";
      goals.push_back(parse_goal(node, here, ""));
    }
    return goals;
  }

  Goal parse_goal(
    const YAML::Node & node, const std::string & where, const std::string & default_name) const
  {
    require_keys(node, where, {"name", "link", "pose", "joints"});
    Goal goal;
    goal.name = text_at(node, "name", where, default_name);
    goal.link = text_at(node, "link", where, default_link);
    if (is_given(node["pose"]) == is_given(node["joints"])) {
      fail(node, where + " must have either a pose or joints");
    }
    if (is_given(node["pose"])) {
      goal.target = parse_pose(node["pose"], where + ".pose");
    } else {
      goal.target = parse_joints(node["joints"], where + ".joints");
    }
    return goal;
  }

  Pose parse_pose(const YAML::Node & node, const std::string & where) const
  {
    require_keys(node, where, {"position", "orientation"});
    const auto position = numbers_at<3>(node, "position", where);
    const auto orientation = numbers_at<4>(node, "orientation", where);
    try {
      return make_pose(position, orientation);
    } catch (const InvalidGoal & invalid) {
      fail(node, where + ": " + invalid.what());
    }
  }

  Joints parse_joints(const YAML::Node & node, const std::string & where) const
  {
    if (!node.IsMap()) {
      fail(node, where + " must map joint names to positions");
    }
    Joints joints;
    for (const auto & entry : node) {
      const auto name = text_of(entry.first, "a joint of " + where);
      joints[name] = number_of(entry.second, where + "." + name);
    }
    try {
      require_valid(joints);
    } catch (const InvalidGoal & invalid) {
      fail(node, where + ": " + invalid.what());
    }
    return joints;
  }

  template<std::size_t size>
  std::array<double, size> numbers_at(
    const YAML::Node & parent, const std::string & key, const std::string & where) const
  {
    const YAML::Node node = parent[key];
    const auto here = where + "." + key;
    if (!is_given(node)) {
      fail(parent, here + " is missing");
    }
    if (!node.IsSequence() || node.size() != size) {
      fail(node, here + " must be a list of " + std::to_string(size) + " numbers");
    }
    std::array<double, size> numbers{};
    for (std::size_t at = 0; at < size; ++at) {
      numbers[at] = number_of(node[at], here);
    }
    return numbers;
  }

  double number_of(const YAML::Node & node, const std::string & where) const
  {
    double number{};
    if (!node.IsScalar() || !YAML::convert<double>::decode(node, number)) {
      fail(node, where + " must be a number");
    }
    return number;
  }

  std::string text_of(const YAML::Node & node, const std::string & where) const
  {
    if (!node.IsScalar() || node.Scalar().empty()) {
      fail(node, where + " must be a text");
    }
    return node.Scalar();
  }

  std::string text_at(
    const YAML::Node & parent, const std::string & key, const std::string & where,
    const std::string & fallback) const
  {
    const YAML::Node node = parent[key];
    if (is_given(node)) {
      return text_of(node, where + "." + key);
    }
    if (fallback.empty()) {
      fail(parent, where + "." + key + " is missing");
    }
    return fallback;
  }

  std::string name_;
};

}  // namespace

GoalsFile parse_goals(const std::string & text, const std::string & name)
{
  try {
    return GoalsParser(name).parse(YAML::Load(text));
  } catch (const YAML::Exception & exception) {
    throw UnreadableGoals(name + line_of(exception.mark) + ": " + exception.msg);
  }
}

GoalsFile read_goals_file(const std::string & path)
{
  std::ifstream file(path);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf())) {
    throw UnreadableGoals(path + ": cannot be read; set the parameter goals_file");
  }
  return parse_goals(text.str(), path);
}

const std::vector<Goal> & find_goal_set(const GoalsFile & goals, const std::string & name)
{
  const auto found = goals.goal_sets.find(name);
  if (found != goals.goal_sets.end()) {
    return found->second;
  }
  std::string known;
  for (const auto & [set, unused] : goals.goal_sets) {
    known += (known.empty() ? "" : ", ") + set;
  }
  throw UnreadableGoals("there is no goal set '" + name + "'; known: " + known);
}

}  // namespace ldos_goal_client
