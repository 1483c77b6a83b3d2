/// Picks a cylinder from a table with MoveIt Task Constructor whenever a line of JSON asks for it.
///
/// The line protocol is documented in pytest-ldos' reference; stamps are CLOCK_MONOTONIC, ns.

#include <Eigen/Geometry>
#include <ament_index_cpp/get_package_share_directory.hpp>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <memory>
#include <moveit/planning_scene_interface/planning_scene_interface.hpp>
#include <moveit/task_constructor/container.h>
#include <moveit/task_constructor/solvers.h>
#include <moveit/task_constructor/stages.h>
#include <moveit/task_constructor/task.h>
#include <moveit_task_constructor_msgs/action/execute_task_solution.hpp>
#include <nlohmann/json.hpp>
#include <rclcpp/rclcpp.hpp>
#include <rclcpp_action/rclcpp_action.hpp>
#include <string>
#include <thread>
#include <unistd.h>

namespace mtc = moveit::task_constructor;
using moveit::planning_interface::PlanningSceneInterface;
using Execute = moveit_task_constructor_msgs::action::ExecuteTaskSolution;
using nlohmann::json;
using namespace std::chrono_literals;

namespace {

const std::string ARM = "panda_arm";
const std::string HAND = "hand";
const std::string HAND_FRAME = "panda_link8";
const std::string BASE = "panda_link0";
const std::string OBJECT = "cylinder";
const std::string TABLE = "table";
constexpr double HEIGHT_M = 0.25;
constexpr double RADIUS_M = 0.02;

std::int64_t now_ns() {
    // On Linux, steady_clock is CLOCK_MONOTONIC.
    return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Standard output, for events alone: what MoveIt prints there goes to standard error.
std::FILE* take_stdout() {
    std::FILE* events = fdopen(dup(STDOUT_FILENO), "w");
    dup2(STDERR_FILENO, STDOUT_FILENO);
    return events;
}

void say(const json& event) {
    static std::FILE* const events = take_stdout();
    std::fprintf(events, "%s\n", event.dump().c_str());
    std::fflush(events);
}

moveit_msgs::msg::CollisionObject body(const std::string& name, std::uint8_t shape, std::vector<double> size, double z) {
    moveit_msgs::msg::CollisionObject object;
    object.id = name;
    object.header.frame_id = BASE;
    object.operation = object.ADD;
    object.primitives.resize(1);
    object.primitives[0].type = shape;
    object.primitives[0].dimensions.assign(size.begin(), size.end());
    object.primitive_poses.resize(1);
    object.primitive_poses[0].position.x = 0.5;
    object.primitive_poses[0].position.y = -0.25;
    object.primitive_poses[0].position.z = z;
    object.primitive_poses[0].orientation.w = 1.0;
    return object;
}

/// The cell: a robot, a table, and a cylinder on it.
class Cell {
public:
    explicit Cell(rclcpp::Node::SharedPtr node)
        : node_(std::move(node)),
          executor_(rclcpp_action::create_client<Execute>(node_, "execute_task_solution")),
          sampling_(std::make_shared<mtc::solvers::PipelinePlanner>(node_, "ompl")),
          cartesian_(std::make_shared<mtc::solvers::CartesianPath>()),
          joints_(std::make_shared<mtc::solvers::JointInterpolationPlanner>()),
          solutions_(static_cast<std::size_t>(node_->get_parameter("solutions").as_int())) {
        cartesian_->setStepSize(node_->get_parameter("cartesian_step_m").as_double());
        using shape_msgs::msg::SolidPrimitive;
        scene_.applyCollisionObject(body(TABLE, SolidPrimitive::BOX, {0.4, 0.5, 0.1}, -0.05));
        put_object_on_table();
    }

    /// Plans and executes a pick; the stamps go into `stamps`.
    bool pick(json& stamps) {
        stamps["goal_sent"] = stamps["planning"] = now_ns();
        mtc::Task task = pick_task();
        const bool planned = static_cast<bool>(task.plan(solutions_));
        stamps["executing"] = now_ns();
        const bool executed = planned && execute(task);
        stamps["result"] = now_ns();
        return executed;
    }

    /// Puts the object back on the table and the arm back home.
    bool reset() {
        moveit_msgs::msg::AttachedCollisionObject attached;
        attached.object.id = OBJECT;
        attached.object.operation = attached.object.REMOVE;
        scene_.applyAttachedCollisionObject(attached);
        scene_.applyCollisionObject(attached.object);  // removeCollisionObjects() would return before it is gone
        mtc::Task task = empty_task("home");
        task.add(move_to("open hand", HAND, "open", joints_));
        task.add(move_to("go home", ARM, "ready", sampling_));
        const bool home = task.plan(1) && execute(task);
        put_object_on_table();
        return home;
    }

private:
    /// Has move_group execute the best solution. `Task::execute` waits for a result without a limit.
    bool execute(const mtc::Task& task) {
        Execute::Goal goal;
        task.solutions().front()->toMsg(goal.solution, nullptr);
        if (!executor_->wait_for_action_server(5s)) {
            return false;
        }
        auto accepted = executor_->async_send_goal(goal);
        if (accepted.wait_for(5s) != std::future_status::ready || !accepted.get()) {
            return false;
        }
        auto ended = executor_->async_get_result(accepted.get());
        return ended.wait_for(30s) == std::future_status::ready &&
               ended.get().code == rclcpp_action::ResultCode::SUCCEEDED;
    }

    void put_object_on_table() {
        scene_.applyCollisionObject(
            body(OBJECT, shape_msgs::msg::SolidPrimitive::CYLINDER, {HEIGHT_M, RADIUS_M}, HEIGHT_M / 2));
    }

    /// A task without introspection. Ended within microseconds, introspection can wait for its own thread for ever:
    /// that thread's `spin()` forgets a `cancel()` that came before it (https://github.com/ros2/rclcpp/issues/1454).
    mtc::Task empty_task(const std::string& name) {
        mtc::Task task("", false);
        task.stages()->setName(name);
        if (!model_) {
            task.loadRobotModel(node_);
            model_ = task.getRobotModel();
        } else {
            task.setRobotModel(model_);
        }
        task.setProperty("group", ARM);
        task.setProperty("eef", HAND);
        task.setProperty("ik_frame", HAND_FRAME);
        task.add(std::make_unique<mtc::stages::CurrentState>("current state"));
        return task;
    }

    static std::unique_ptr<mtc::Stage> move_to(const std::string& name, const std::string& group,
                                               const std::string& state,
                                               const mtc::solvers::PlannerInterfacePtr& planner) {
        auto stage = std::make_unique<mtc::stages::MoveTo>(name, planner);
        stage->setGroup(group);
        stage->setGoal(state);
        return stage;
    }

    std::unique_ptr<mtc::Stage> move_along_z(const std::string& name, const std::string& frame, double least_m,
                                             double most_m) const {
        auto stage = std::make_unique<mtc::stages::MoveRelative>(name, cartesian_);
        stage->properties().configureInitFrom(mtc::Stage::PARENT, {"group"});
        stage->setMinMaxDistance(least_m, most_m);
        stage->setIKFrame(HAND_FRAME);
        geometry_msgs::msg::Vector3Stamped direction;
        direction.header.frame_id = frame;
        direction.vector.z = 1.0;
        stage->setDirection(direction);
        return stage;
    }

    std::unique_ptr<mtc::Stage> grasp_pose(mtc::Stage* monitored) const {
        auto poses = std::make_unique<mtc::stages::GenerateGraspPose>("grasp pose");
        poses->properties().configureInitFrom(mtc::Stage::PARENT);
        poses->setPreGraspPose("open");
        poses->setObject(OBJECT);
        poses->setAngleDelta(M_PI / 12);
        poses->setMonitoredStage(monitored);
        auto inverse = std::make_unique<mtc::stages::ComputeIK>("grasp IK", std::move(poses));
        inverse->setMaxIKSolutions(8);
        inverse->setMinSolutionDistance(1.0);
        using Eigen::AngleAxisd, Eigen::Vector3d;
        inverse->setIKFrame(Eigen::Isometry3d(Eigen::Translation3d(0, 0, 0.1) * AngleAxisd(M_PI_2, Vector3d::UnitX()) *
                                              AngleAxisd(M_PI_4, Vector3d::UnitY()) *
                                              AngleAxisd(M_PI_2, Vector3d::UnitZ())),
                            HAND_FRAME);
        inverse->properties().configureInitFrom(mtc::Stage::PARENT, {"eef", "group"});
        inverse->properties().configureInitFrom(mtc::Stage::INTERFACE, {"target_pose"});
        return inverse;
    }

    std::unique_ptr<mtc::Stage> allow_touching(const std::string& name, const std::vector<std::string>& others) const {
        auto stage = std::make_unique<mtc::stages::ModifyPlanningScene>(name);
        stage->allowCollisions(OBJECT, others, true);
        return stage;
    }

    mtc::Task pick_task() {
        mtc::Task task = empty_task("pick");
        auto opened = move_to("open hand", HAND, "open", joints_);
        mtc::Stage* monitored = opened.get();
        task.add(std::move(opened));
        auto connect = std::make_unique<mtc::stages::Connect>(
            "move to the object", mtc::stages::Connect::GroupPlannerVector{{ARM, sampling_}});
        connect->setTimeout(5.0);
        connect->properties().configureInitFrom(mtc::Stage::PARENT);
        task.add(std::move(connect));

        auto pick = std::make_unique<mtc::SerialContainer>("pick");
        task.properties().exposeTo(pick->properties(), {"eef", "group", "ik_frame"});
        pick->properties().configureInitFrom(mtc::Stage::PARENT, {"eef", "group", "ik_frame"});
        pick->insert(move_along_z("approach", HAND_FRAME, 0.1, 0.15));
        pick->insert(grasp_pose(monitored));
        const auto* hand = model_->getJointModelGroup(HAND);
        pick->insert(allow_touching("hand touches", hand->getLinkModelNamesWithCollisionGeometry()));
        pick->insert(move_to("close hand", HAND, "close", joints_));
        auto attach = std::make_unique<mtc::stages::ModifyPlanningScene>("attach");
        attach->attachObject(OBJECT, HAND_FRAME);
        pick->insert(std::move(attach));
        pick->insert(allow_touching("table touches", {TABLE}));
        pick->insert(move_along_z("lift", BASE, 0.01, 0.1));
        task.add(std::move(pick));
        return task;
    }

    rclcpp::Node::SharedPtr node_;
    rclcpp_action::Client<Execute>::SharedPtr executor_;
    PlanningSceneInterface scene_;
    std::shared_ptr<mtc::solvers::PipelinePlanner> sampling_;
    std::shared_ptr<mtc::solvers::CartesianPath> cartesian_;
    std::shared_ptr<mtc::solvers::JointInterpolationPlanner> joints_;
    std::size_t solutions_;
    moveit::core::RobotModelConstPtr model_;
};

json answer(Cell& cell, const json& command) {
    json stamps = json::object();
    bool succeeded = false;
    std::string message;
    try {
        succeeded = command.at("command") == "reset" ? cell.reset() : cell.pick(stamps);
    } catch (const std::exception& error) {
        message = error.what();
    }
    return {{"event", "ended"},
            {"id", command.at("id")},
            {"outcome", succeeded ? "success" : "aborted"},
            {"message", message},
            {"stamps_ns", stamps}};
}

}  // namespace

int main(int argc, char** argv) {
    rclcpp::init(argc, argv);
    rclcpp::NodeOptions options;
    options.automatically_declare_parameters_from_overrides(true);
    options.arguments({"--ros-args", "--params-file",
                       ament_index_cpp::get_package_share_directory("pick_cell") + "/config/pick.yaml"});
    auto node = std::make_shared<rclcpp::Node>("pick", options);
    rclcpp::executors::MultiThreadedExecutor executor;
    executor.add_node(node);
    std::thread spinning([&executor] { executor.spin(); });
    {
        Cell cell(node);
        say({{"event", "ready"}, {"resets", true}});
        for (std::string line; std::getline(std::cin, line);) {
            say(answer(cell, json::parse(line)));
        }
    }
    executor.cancel();
    spinning.join();
    rclcpp::shutdown();
    return 0;
}
