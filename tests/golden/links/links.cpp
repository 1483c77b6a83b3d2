// Sources and nodes of the recordings `links_*`: message_filters' synchronizers, tf2_ros' listeners and message filter.
//
//   links sources SECONDS LOG      publishes on /a /b /c (equal stamps), /p /q (own stamps) and /tf
//   links nodes THREADS LOG        nodes that combine them, on an executor with so many threads
//
// With STAMPS in the environment, each subscription emits the stamps of its headers. The log has a line for each
// publication: topic, number, stamp, and the inputs by topic and number; of a transform, the time that it is of.

#include <ldos_tracepoints/tracepoints.hpp>
#include <message_filters/subscriber.h>
#include <message_filters/sync_policies/approximate_time.h>
#include <message_filters/synchronizer.h>
#include <message_filters/time_synchronizer.h>
#include <tf2_ros/buffer.h>
#include <tf2_ros/create_timer_ros.h>
#include <tf2_ros/message_filter.h>
#include <tf2_ros/transform_listener.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <geometry_msgs/msg/point_stamped.hpp>
#include <map>
#include <mutex>
#include <random>
#include <rclcpp/rclcpp.hpp>
#include <sstream>
#include <tf2_msgs/msg/tf_message.hpp>
#include <thread>

using Point = geometry_msgs::msg::PointStamped;
using PointPtr = Point::ConstSharedPtr;
using namespace std::chrono_literals;

int64_t ns_of(const builtin_interfaces::msg::Time & stamp) { return rclcpp::Time(stamp).nanoseconds(); }

class Log {
public:
  explicit Log(const std::string & path) : out_(path) {}
  void published(const std::string & node, const std::string & topic, int seq, int64_t stamp, const std::string & inputs)
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    out_ << "{\"mono_ns\": " << std::chrono::nanoseconds(now).count() << ", \"pid\": " << getpid() << ", \"node\": \""
         << node << "\", \"kind\": \"pub\", \"topic\": \"" << topic << "\", \"seq\": " << seq << ", \"stamp\": " << stamp
         << ", \"inputs\": [" << inputs << "]}\n"
         << std::flush;
  }

private:
  std::mutex mutex_;
  std::ofstream out_;
};

std::string input(const std::string & topic, int64_t seq)
{
  std::ostringstream text;
  text << "[\"" << topic << "\", " << seq << "]";
  return text.str();
}

class Output {
public:
  Output(rclcpp::Node & node, std::string topic, Log & log)
  : node_(node.get_name()), topic_(std::move(topic)), log_(log), publisher_(node.create_publisher<Point>(topic_, 50))
  {
  }
  void publish(const std::vector<std::pair<std::string, PointPtr>> & from, const std::string & more = "")
  {
    std::lock_guard<std::mutex> lock(mutex_);
    Point message;
    message.point.x = seq_;
    std::string inputs = more;
    for (const auto & [topic, point] : from) {
      message.header = point->header;
      inputs += (inputs.empty() ? "" : ", ") + input(topic, static_cast<int64_t>(point->point.x));
    }
    log_.published(node_, topic_, seq_++, ns_of(message.header.stamp), inputs);
    publisher_->publish(message);
  }

private:
  std::string node_, topic_;
  Log & log_;
  rclcpp::Publisher<Point>::SharedPtr publisher_;
  std::mutex mutex_;
  int seq_ = 0;
};

// A subscription that emits the stamp of each header before the synchronizer gets the message, if STAMPS is set.
struct Subscriber : message_filters::Subscriber<Point> {
  Subscriber(rclcpp::Node * node, const std::string & topic, const rmw_qos_profile_t & qos)
  {
    if (std::getenv("STAMPS") != nullptr) registerCallback(&Subscriber::emit, this);
    subscribe(node, topic, qos);
  }
  void emit(const PointPtr & point) { ldos_tracepoints::header_stamp(ns_of(point->header.stamp)); }
};

struct Pair : rclcpp::Node {  // exact time of two topics, with a queue that may overflow
  Pair(const std::string & name, const std::string & one, const std::string & other, uint32_t queue, Log & log)
  : Node(name), out(*this, "/" + name + "_out", log), first(this, one, qos()), second(this, other, qos()),
    sync(first, second, queue)
  {
    topics = {one, other};
    sync.registerCallback(&Pair::combine, this);
  }
  void combine(const PointPtr & a, const PointPtr & b) { out.publish({{topics.first, a}, {topics.second, b}}); }
  static rmw_qos_profile_t qos() { return rclcpp::QoS(50).get_rmw_qos_profile(); }
  std::pair<std::string, std::string> topics;
  Output out;
  Subscriber first, second;
  message_filters::TimeSynchronizer<Point, Point> sync;
};

struct Triple : rclcpp::Node {
  explicit Triple(Log & log)
  : Node("triple"), out(*this, "/triple_out", log), a(this, "/a", Pair::qos()), b(this, "/b", Pair::qos()),
    c(this, "/c", Pair::qos()), sync(a, b, c, 10)
  {
    sync.registerCallback(&Triple::combine, this);
  }
  void combine(const PointPtr & x, const PointPtr & y, const PointPtr & z)
  {
    out.publish({{"/a", x}, {"/b", y}, {"/c", z}});
  }
  Output out;
  Subscriber a, b, c;
  message_filters::TimeSynchronizer<Point, Point, Point> sync;
};

struct Approximate : rclcpp::Node {
  explicit Approximate(Log & log)
  : Node("approx"), out(*this, "/approx_out", log), p(this, "/p", Pair::qos()), q(this, "/q", Pair::qos()),
    sync(Policy(10), p, q)
  {
    sync.registerCallback(&Approximate::combine, this);
  }
  void combine(const PointPtr & x, const PointPtr & y) { out.publish({{"/p", x}, {"/q", y}}); }
  using Policy = message_filters::sync_policies::ApproximateTime<Point, Point>;
  Output out;
  Subscriber p, q;
  message_filters::Synchronizer<Policy> sync;
};

struct Two : rclcpp::Node {  // two synchronizers in one node share an input
  explicit Two(Log & log)
  : Node("two"), ab(*this, "/two_ab", log), ac(*this, "/two_ac", log), a(this, "/a", Pair::qos()),
    b(this, "/b", Pair::qos()), c(this, "/c", Pair::qos()), one(a, b, 10), other(a, c, 10)
  {
    one.registerCallback(&Two::combine_ab, this);
    other.registerCallback(&Two::combine_ac, this);
  }
  void combine_ab(const PointPtr & x, const PointPtr & y) { ab.publish({{"/a", x}, {"/b", y}}); }
  void combine_ac(const PointPtr & x, const PointPtr & y) { ac.publish({{"/a", x}, {"/c", y}}); }
  Output ab, ac;
  Subscriber a, b, c;
  message_filters::TimeSynchronizer<Point, Point> one, other;
};

struct Lookup : rclcpp::Node {  // a timer that asks for the newest transform
  explicit Lookup(Log & log)
  : Node("lookup"), out(*this, "/lookup_out", log), buffer(get_clock()), listener(buffer),
    timer(create_wall_timer(70ms, [this] { look_up(); }))
  {
  }
  void look_up()
  {
    if (!buffer.canTransform("map", "base", tf2::TimePointZero)) return;
    const auto found = buffer.lookupTransform("map", "base", tf2::TimePointZero);
    out.publish({}, input("tf:map>base", ns_of(found.header.stamp)));
  }
  Output out;
  tf2_ros::Buffer buffer;
  tf2_ros::TransformListener listener;
  rclcpp::TimerBase::SharedPtr timer;
};

struct Filter : rclcpp::Node {  // messages wait for their transform
  explicit Filter(Log & log)
  : Node("filter"), out(*this, "/filter_out", log), buffer(get_clock()), source(this, "/a", Pair::qos())
  {
    buffer.setCreateTimerInterface(
      std::make_shared<tf2_ros::CreateTimerROS>(get_node_base_interface(), get_node_timers_interface()));
  }
  void start()
  {
    listener = std::make_unique<tf2_ros::TransformListener>(buffer, shared_from_this());
    filter = std::make_unique<tf2_ros::MessageFilter<Point>>(source, buffer, "map", 10, shared_from_this());
    filter->registerCallback(std::function<void(const PointPtr &)>(
      [this](const PointPtr & x) { out.publish({{"/a", x}}, input("tf:map>base", ns_of(x->header.stamp))); }));
  }
  Output out;
  tf2_ros::Buffer buffer;
  Subscriber source;
  std::unique_ptr<tf2_ros::TransformListener> listener;
  std::unique_ptr<tf2_ros::MessageFilter<Point>> filter;
};

void publish_sources(double seconds, Log & log)
{
  auto node = std::make_shared<rclcpp::Node>("source");
  auto base = std::make_shared<rclcpp::Node>("base_broadcaster");
  auto tool = std::make_shared<rclcpp::Node>("tool_broadcaster");
  std::map<std::string, rclcpp::Publisher<Point>::SharedPtr> points;
  for (const auto * topic : {"/a", "/b", "/c", "/p", "/q"}) points[topic] = node->create_publisher<Point>(topic, 50);
  const std::map<std::string, rclcpp::Publisher<tf2_msgs::msg::TFMessage>::SharedPtr> transforms{
    {"base", base->create_publisher<tf2_msgs::msg::TFMessage>("/tf", 100)},
    {"tool", tool->create_publisher<tf2_msgs::msg::TFMessage>("/tf", 100)}};
  std::mt19937 random(7);
  auto uniform = [&random](double most_ms) { return static_cast<int64_t>(most_ms * 1e6 * (random() / 4294967296.0)); };
  struct Event { std::string topic; int64_t stamp; };
  std::multimap<int64_t, Event> events;  // by time of publication
  constexpr int64_t ms = 1000000;
  for (int n = 0; n * 50 < seconds * 1000; ++n) {
    const int64_t stamp = n * 50 * ms;
    events.insert({stamp + uniform(12), {"/a", stamp}});
    if (n % 11 != 5) events.insert({stamp + uniform(16), {"/b", stamp}});  // an input that is missing
    events.insert({stamp + 30 * ms + uniform(60), {"/c", stamp}});         // may come after the next of the others
    const int64_t own = stamp + uniform(10);
    events.insert({own, {"/p", own}});
  }
  for (int n = 0; n * 30 < seconds * 1000; ++n) {
    const int64_t at = n * 30 * ms + uniform(6);
    events.insert({at, {"/q", at}});
  }
  for (int n = 0; n * 20 < seconds * 1000; ++n) {
    const int64_t at = n * 20 * ms + uniform(4);
    events.insert({at, {"base", at}});
    if (n % 3 == 0) events.insert({at + 9 * ms, {"tool", at + 9 * ms}});
  }
  std::this_thread::sleep_for(3s);  // until all have found each other
  const int64_t begin = node->now().nanoseconds();
  std::map<std::string, int> counts;
  for (const auto & [at, event] : events) {
    while (node->now().nanoseconds() < begin + at) std::this_thread::sleep_for(200us);
    const int64_t stamp = begin + event.stamp;
    if (event.topic[0] == '/') {
      Point message;
      message.header.stamp = rclcpp::Time(stamp);
      message.header.frame_id = "base";
      message.point.x = counts[event.topic];
      log.published("source", event.topic, counts[event.topic]++, stamp, "");
      points[event.topic]->publish(message);
    } else {
      tf2_msgs::msg::TFMessage message;
      message.transforms.resize(1);
      message.transforms[0].header.stamp = rclcpp::Time(stamp);
      message.transforms[0].header.frame_id = event.topic == "base" ? "map" : "base";
      message.transforms[0].child_frame_id = event.topic;
      message.transforms[0].transform.rotation.w = 1;
      log.published(event.topic, "/tf", counts["tf"]++, stamp, "");
      transforms.at(event.topic)->publish(message);
    }
  }
  std::this_thread::sleep_for(500ms);
}

int main(int argc, char ** argv)
{
  if (argc != 4) return 2;
  rclcpp::init(argc, argv);
  Log log(argv[3]);
  if (std::string(argv[1]) == "sources") {
    publish_sources(std::stod(argv[2]), log);
  } else {
    const auto filter = std::make_shared<Filter>(log);
    filter->start();
    const std::vector<rclcpp::Node::SharedPtr> nodes{
      std::make_shared<Pair>("pair", "/a", "/b", 10, log), std::make_shared<Pair>("overflow", "/a", "/c", 1, log),
      std::make_shared<Triple>(log), std::make_shared<Approximate>(log), std::make_shared<Two>(log),
      std::make_shared<Lookup>(log), filter};
    const int threads = std::stoi(argv[2]);
    std::shared_ptr<rclcpp::Executor> executor;
    if (threads > 1) {
      executor = std::make_shared<rclcpp::executors::MultiThreadedExecutor>(rclcpp::ExecutorOptions(), threads);
    } else {
      executor = std::make_shared<rclcpp::executors::SingleThreadedExecutor>();
    }
    for (const auto & node : nodes) executor->add_node(node);
    executor->spin();
  }
  rclcpp::shutdown();
}
