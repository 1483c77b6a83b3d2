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


#include "ldos_planner/pipeline.hpp"

#include <string>
#include <vector>

#include "ldos_tracepoints/tracepoints.hpp"

namespace ldos_planner
{

void report_pipeline(rclcpp::Node & node, const std::string & parameter_namespace)
{
  std::string topic;
  node.get_parameter(parameter_namespace + ".progress_topic", topic);
  if (topic.empty()) {
    return;
  }
  std::string stages;
  for (const char * part : {"request_adapters", "planning_plugins", "response_adapters"}) {
    std::vector<std::string> plugins;
    node.get_parameter(parameter_namespace + "." + part, plugins);
    for (const auto & plugin : plugins) {
      stages += plugin.substr(plugin.rfind('/') + 1) + "\n";
    }
  }
  const auto resolved = node.get_node_topics_interface()->resolve_topic_name(topic);
  ldos_tracepoints::planning_pipeline(resolved.c_str(), stages.c_str());
}

}  // namespace ldos_planner
