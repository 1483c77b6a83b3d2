// A controller that allocates in one update of PLANTED_EVERY (0: never), and logs each in memory shared with PLANTED_LOG:
// the number of updates, the number of allocations, and the time of each by CLOCK_MONOTONIC, nanoseconds.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <vector>

#include "controller_interface/controller_interface.hpp"
#include "pluginlib/class_list_macros.hpp"

namespace planted_controller
{

using controller_interface::CallbackReturn;
using controller_interface::InterfaceConfiguration;
using controller_interface::interface_configuration_type;

constexpr std::int64_t kLargestLog = 1 << 16;

class PlantedController : public controller_interface::ControllerInterface
{
public:
  CallbackReturn on_init() override
  {
    const char * every = std::getenv("PLANTED_EVERY");
    const char * path = std::getenv("PLANTED_LOG");
    if (every == nullptr || path == nullptr) return CallbackReturn::ERROR;
    every_ = std::atoll(every);
    const int file = open(path, O_RDWR | O_CREAT, 0600);
    constexpr std::size_t size = kLargestLog * sizeof(std::int64_t);
    if (file < 0 || ftruncate(file, size) != 0) return CallbackReturn::ERROR;
    void * const memory =
      mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, 0);
    close(file);
    if (memory == MAP_FAILED) return CallbackReturn::ERROR;
    log_ = static_cast<std::int64_t *>(memory);
    return CallbackReturn::SUCCESS;
  }

  InterfaceConfiguration command_interface_configuration() const override
  {
    return {interface_configuration_type::NONE, {}};
  }

  InterfaceConfiguration state_interface_configuration() const override
  {
    return {interface_configuration_type::NONE, {}};
  }

  controller_interface::return_type update(const rclcpp::Time &, const rclcpp::Duration &) override
  {
    const std::int64_t number = log_[0]++;
    if (every_ > 0 && number % every_ == 0) allocate();
    return controller_interface::return_type::OK;
  }

private:
  __attribute__((noinline)) void allocate()
  {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (log_[1] + 2 < kLargestLog) {
      log_[2 + log_[1]++] = static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
    }
    kept_ = std::vector<double>(64, 1.0);
  }

  std::int64_t every_{0};
  std::int64_t * log_{nullptr};
  std::vector<double> kept_;
};

}  // namespace planted_controller

PLUGINLIB_EXPORT_CLASS(
  planted_controller::PlantedController, controller_interface::ControllerInterface)
