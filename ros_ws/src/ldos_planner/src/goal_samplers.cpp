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


#include "ldos_planner/goal_samplers.hpp"

#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include <moveit/constraint_samplers/default_constraint_samplers.hpp>

namespace ldos_planner
{
namespace
{

using constraint_samplers::ConstraintSampler;
using constraint_samplers::ConstraintSamplerPtr;
using constraint_samplers::IKConstraintSampler;
using constraint_samplers::JointConstraintSampler;
using moveit_msgs::msg::Constraints;

struct Nothing {};
struct Idle {};

/// The samplers that this thread gets.
thread_local std::variant<Nothing, Idle, Seed> service;

/// Finds no state that meets the goal.
class IdleSampler : public ConstraintSampler
{
public:
  using ConstraintSampler::ConstraintSampler;

  bool configure(const Constraints &) override
  {
    return true;
  }

  bool sample(moveit::core::RobotState &, const moveit::core::RobotState &, unsigned int) override
  {
    return false;
  }

  const std::string & getName() const override
  {
    static const std::string name = "IdleSampler";
    return name;
  }
};

/// Restarts a solver itself, from the seed's joints. MoveIt's solvers restart from a generator seeded with the
/// time of day, and for a limited time; KDL's makes a single attempt if it is zero.
class SeededIK : public IKConstraintSampler
{
public:
  SeededIK(
    const planning_scene::PlanningSceneConstPtr & scene, const std::string & group, Seed seed)
  : IKConstraintSampler(scene, group, seed), seed_(seed) {}

  bool sample(
    moveit::core::RobotState & state, const moveit::core::RobotState & reference,
    unsigned int max_attempts) override
  {
    // A solver that finds nothing in a single attempt may need its time.
    const bool restarts_itself = calls_ >= single_attempts;
    setIKTimeout(restarts_itself ? jmg_->getDefaultIKTimeout() : 0.0);
    std::srand(seed_ + calls_++);  // for Eigen's setRandom in KDL; other threads share it
    return IKConstraintSampler::sample(state, reference, max_attempts);
  }

private:
  static constexpr unsigned int single_attempts = 100;
  Seed seed_;
  unsigned int calls_ = 0;
};

bool is_joints(const Constraints & goal)
{
  return !goal.joint_constraints.empty() && goal.position_constraints.empty() &&
         goal.orientation_constraints.empty() && goal.visibility_constraints.empty();
}

bool is_pose(const Constraints & goal)
{
  return goal.joint_constraints.empty() && goal.position_constraints.size() == 1 &&
         goal.orientation_constraints.size() == 1 && goal.visibility_constraints.empty();
}

bool has_solver(const planning_scene::PlanningSceneConstPtr & scene, const std::string & group)
{
  const auto * const joints = scene->getRobotModel()->getJointModelGroup(group);
  return joints != nullptr && joints->getGroupKinematics().first;
}

}  // namespace

bool GoalSamplers::canService(
  const planning_scene::PlanningSceneConstPtr & scene, const std::string & group,
  const Constraints & goal) const
{
  if (std::holds_alternative<Nothing>(service)) {
    return false;
  }
  return is_joints(goal) || (is_pose(goal) && has_solver(scene, group));
}

ConstraintSamplerPtr GoalSamplers::alloc(
  const planning_scene::PlanningSceneConstPtr & scene, const std::string & group,
  const Constraints & goal)
{
  ConstraintSamplerPtr sampler;
  if (const auto * const seed = std::get_if<Seed>(&service); seed == nullptr) {
    sampler = std::make_shared<IdleSampler>(scene, group);
  } else if (is_joints(goal)) {
    sampler = std::make_shared<JointConstraintSampler>(scene, group, *seed);
  } else {
    sampler = std::make_shared<SeededIK>(scene, group, *seed);
  }
  return sampler->configure(goal) ? sampler : nullptr;
}

SeededGoals::SeededGoals(Seed seed)
{
  service = seed;
}

SeededGoals::~SeededGoals()
{
  service = Nothing{};
}

IdleGoals::IdleGoals()
{
  service = Idle{};
}

IdleGoals::~IdleGoals()
{
  service = Nothing{};
}

}  // namespace ldos_planner
