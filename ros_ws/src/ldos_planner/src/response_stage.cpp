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


#include <string>

#include <moveit/planning_interface/planning_response_adapter.hpp>
#include <pluginlib/class_list_macros.hpp>

#include "ldos_tracepoints/tracepoints.hpp"

namespace ldos_planner
{

/// Changes nothing: emits `ldos:planning_stage` for the response adapters before it.
class ResponseStage : public planning_interface::PlanningResponseAdapter
{
public:
  std::string getDescription() const override
  {
    return "ResponseStage";
  }

  void adapt(
    const planning_scene::PlanningSceneConstPtr &, const planning_interface::MotionPlanRequest &,
    planning_interface::MotionPlanResponse &) const override
  {
    ldos_tracepoints::planning_stage("response adapters", 0);
  }
};

}  // namespace ldos_planner

PLUGINLIB_EXPORT_CLASS(ldos_planner::ResponseStage, planning_interface::PlanningResponseAdapter)
