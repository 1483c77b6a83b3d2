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


#ifndef LDOS_PLANNER__STATE_SAMPLER_HPP_
#define LDOS_PLANNER__STATE_SAMPLER_HPP_

#include <moveit/ompl_interface/parameterization/model_based_state_space.hpp>
#include <ompl/base/StateSampler.h>
#include <random_numbers/random_numbers.h>

#include "ldos_planner/seed.hpp"

namespace ldos_planner
{

/// Draws states as MoveIt's own sampler does, which seeds itself with the time of day and cannot
/// be given a seed.
class StateSampler : public ompl::base::StateSampler
{
public:
  StateSampler(const ompl_interface::ModelBasedStateSpace & space, Seed seed);

  void sampleUniform(ompl::base::State * state) override;
  void sampleUniformNear(
    ompl::base::State * state, const ompl::base::State * near, double distance) override;
  void sampleGaussian(
    ompl::base::State * state, const ompl::base::State * mean, double deviation) override;

private:
  random_numbers::RandomNumberGenerator numbers_;
  const moveit::core::JointModelGroup & group_;
  const moveit::core::JointBoundsVector & bounds_;
};

/// Makes a space draw from samplers of this seed.
void seed_samplers(ompl_interface::ModelBasedStateSpace & space, Seed seed);

}  // namespace ldos_planner

#endif  // LDOS_PLANNER__STATE_SAMPLER_HPP_
