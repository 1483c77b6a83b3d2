// The limit: a loop written by hand for the trace that `generator/ros2_stack.c` makes, and for no
// other. It knows every offset and every id, does not check a byte, and reads no metadata. Like the
// decoder it writes a column for each field of each event, all streams merged by time.
//
//     specialised REPEATS CLOCK_OFFSET_NS STREAM…
//
// Prints events, a sum over all columns, and the least wall and CPU seconds of all repeats, the
// latter in the kernel too.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

namespace {

constexpr std::size_t kPacketHeader = 84;
constexpr std::size_t kHeader = 6;
constexpr std::size_t kExtendedHeader = 14;
constexpr std::size_t kContexts = 4 + 4 + 17;
constexpr std::int64_t kEnd = INT64_MAX;

template <typename T>
T load(const std::uint8_t* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// The largest size possible; pages that are never written cost nothing.
template <typename T>
struct Column {
  explicit Column(std::size_t most) : bytes(most * sizeof(T)) {
    void* address = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (address == MAP_FAILED) std::abort();
    ::madvise(address, bytes, MADV_HUGEPAGE);
    begin = next = static_cast<T*>(address);
  }
  ~Column() { ::munmap(begin, bytes); }
  Column(const Column&) = delete;
  Column& operator=(const Column&) = delete;

  void add(T value) { *next++ = value; }
  [[nodiscard]] std::uint64_t sum() const {
    std::uint64_t total = 0;
    for (const T* at = begin; at != next; ++at) total += static_cast<std::uint64_t>(*at);
    return total;
  }

  std::size_t bytes;
  T* begin;
  T* next;
};

struct Names {
  std::uint32_t code(const std::uint8_t* at) {
    if (!names.empty() && std::memcmp(names[last].data(), at, 17) == 0) return last;
    const std::string name(reinterpret_cast<const char*>(at), 17);
    last = static_cast<std::uint32_t>(std::find(names.begin(), names.end(), name) - names.begin());
    if (last == names.size()) names.push_back(name);
    return last;
  }
  std::vector<std::string> names;
  std::uint32_t last = 0;
};

// The columns of one event: contexts, then up to three 64-bit fields and one of 32 bits.
struct Table {
  explicit Table(std::size_t most) : time(most), cpu(most), vpid(most), vtid(most), procname(most), a(most), b(most), c(most), d(most) {}

  void add(std::int64_t time_ns, std::int32_t cpu_id, const std::uint8_t* at) {
    time.add(time_ns);
    cpu.add(cpu_id);
    vpid.add(load<std::int32_t>(at));
    vtid.add(load<std::int32_t>(at + 4));
    procname.add(names.code(at + 8));
  }
  [[nodiscard]] std::uint64_t sum() const {
    return time.sum() + cpu.sum() + vpid.sum() + vtid.sum() + a.sum() + b.sum() + c.sum() + d.sum();
  }

  Column<std::int64_t> time;
  Column<std::int32_t> cpu, vpid, vtid;
  Column<std::uint32_t> procname;
  Column<std::uint64_t> a, b, c;
  Column<std::int32_t> d;
  Names names;
};

struct Stream {
  explicit Stream(const char* path) {
    const int file = ::open(path, O_RDONLY);
    struct stat status {};
    if (file < 0 || ::fstat(file, &status) != 0) std::abort();
    size = static_cast<std::size_t>(status.st_size);
    void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, file, 0);
    ::close(file);
    if (address == MAP_FAILED) std::abort();
    packet = static_cast<const std::uint8_t*>(address);
    mapped = packet;
    file_end = packet + size;
    enter();
  }
  ~Stream() { ::munmap(const_cast<std::uint8_t*>(mapped), size); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  void enter() {
    at = packet + kPacketHeader;
    end = packet + load<std::uint64_t>(packet + 48) / 8;
    clock = load<std::uint64_t>(packet + 32);
    cpu = load<std::int32_t>(packet + 80);
    peek();
  }
  // Reads the header of the next event.
  void peek() {
    while (at >= end) {
      packet += load<std::uint64_t>(packet + 56) / 8;
      if (packet >= file_end) {
        time = kEnd;
        return;
      }
      return enter();
    }
    id = load<std::uint16_t>(at);
    if (id != 65535) {
      clock += static_cast<std::uint32_t>(load<std::uint32_t>(at + 2) - static_cast<std::uint32_t>(clock));
      at += kHeader;
    } else {
      id = load<std::uint16_t>(at + 2);
      clock = load<std::uint64_t>(at + 6);
      at += kExtendedHeader;
    }
    time = static_cast<std::int64_t>(clock);
  }

  std::size_t size = 0;
  const std::uint8_t* mapped = nullptr;
  const std::uint8_t* packet = nullptr;
  const std::uint8_t* file_end = nullptr;
  const std::uint8_t* at = nullptr;  // after the header of the next event
  const std::uint8_t* end = nullptr;
  std::uint16_t id = 0;
  std::uint64_t clock = 0;
  std::int64_t time = 0;
  std::int32_t cpu = 0;
};

// Ids of the provider's events, in the order of their definition.
enum Id : std::uint16_t {
  kNodeInit = 1, kRmwPublisherInit, kPublisherInit, kRclcppPublish, kRclPublish, kRmwPublish, kRmwSubscriptionInit,
  kSubscriptionInit, kRclcppSubscriptionInit, kCallbackAdded, kRmwTake, kRclTake, kRclcppTake,
  kCallbackRegister = 20, kCallbackStart, kCallbackEnd, kGetNextReady, kWaitForWork, kExecute, kIds
};

std::size_t text(const std::uint8_t* at) { return std::strlen(reinterpret_cast<const char*>(at)) + 1; }

// Payload bytes of the few dozen events of the start, which are only skipped.
std::size_t skip_declaration(std::uint16_t id, const std::uint8_t* at) {
  switch (id) {
    case kNodeInit: { const std::size_t name = text(at + 16); return 16 + name + text(at + 16 + name); }
    case kRmwPublisherInit:
    case kRmwSubscriptionInit: return 8 + 24;
    case kPublisherInit:
    case kSubscriptionInit: return 24 + text(at + 24) + 8;
    case kRclcppSubscriptionInit:
    case kCallbackAdded: return 16;
    case kCallbackRegister: return 8 + text(at + 8);
    default: std::fprintf(stderr, "event id %u is not one of the generator's\n", id); std::exit(1);
  }
}

// Writes one event and returns the bytes of its payload.
std::size_t write(std::vector<Table*>& tables, const Stream& stream, std::int64_t offset_ns) {
  const std::uint16_t id = stream.id;
  const std::uint8_t* at = stream.at + kContexts;
  if (id >= kIds || tables[id] == nullptr) return skip_declaration(id, at);
  Table& table = *tables[id];
  table.add(stream.time + offset_ns, stream.cpu, stream.at);
  switch (id) {
    case kGetNextReady: return 0;
    case kRclPublish:
      table.a.add(load<std::uint64_t>(at));
      table.b.add(load<std::uint64_t>(at + 8));
      return 16;
    case kRmwPublish:
      table.a.add(load<std::uint64_t>(at));
      table.b.add(load<std::uint64_t>(at + 8));
      table.c.add(load<std::uint64_t>(at + 16));
      return 24;
    case kRmwTake:
      table.a.add(load<std::uint64_t>(at));
      table.b.add(load<std::uint64_t>(at + 8));
      table.c.add(load<std::uint64_t>(at + 16));
      table.d.add(load<std::int32_t>(at + 24));
      return 28;
    case kCallbackStart:
      table.a.add(load<std::uint64_t>(at));
      table.d.add(load<std::int32_t>(at + 8));
      return 12;
    default:
      table.a.add(load<std::uint64_t>(at));
      return 8;
  }
}

struct Result {
  std::uint64_t events = 0;
  std::uint64_t sum = 0;
};

struct Seconds {
  double wall = 1e9;
  double cpu = 1e9;
  double kernel = 0;
};

double seconds_of(const timeval& time) { return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6; }

Seconds now() {
  timespec wall{};
  ::clock_gettime(CLOCK_MONOTONIC, &wall);
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const double kernel = seconds_of(used.ru_stime);
  return {static_cast<double>(wall.tv_sec) + static_cast<double>(wall.tv_nsec) * 1e-9, seconds_of(used.ru_utime) + kernel, kernel};
}

void keep_least(Seconds& least, const Seconds& before, const Seconds& after) {
  least.wall = std::min(least.wall, after.wall - before.wall);
  if (after.cpu - before.cpu >= least.cpu) return;
  least.cpu = after.cpu - before.cpu;
  least.kernel = after.kernel - before.kernel;
}

Result decode(int count, char** paths, std::int64_t offset_ns, Seconds& least) {
  const Seconds before = now();
  std::vector<Stream*> streams;
  std::size_t bytes = 0;
  for (int i = 0; i < count; ++i) {
    streams.push_back(new Stream(paths[i]));
    bytes += streams.back()->size;
  }
  std::vector<Table*> tables(kIds, nullptr);
  for (const Id id : {kRclcppPublish, kRclPublish, kRmwPublish, kRmwTake, kRclTake, kRclcppTake, kCallbackStart, kCallbackEnd,
                      kGetNextReady, kWaitForWork, kExecute}) {
    tables[id] = new Table(bytes / (kHeader + kContexts));
  }
  Result result;
  for (;;) {
    Stream* first = streams[0];
    for (Stream* stream : streams) first = stream->time < first->time ? stream : first;
    if (first->time == kEnd) break;
    const std::size_t payload = write(tables, *first, offset_ns);
    first->at += kContexts + payload;
    first->peek();
    ++result.events;
  }
  keep_least(least, before, now());
  for (Table* table : tables) {
    if (table != nullptr) result.sum += table->sum();
    delete table;
  }
  for (Stream* stream : streams) delete stream;
  return result;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 4) {
    std::fprintf(stderr, "usage: %s REPEATS CLOCK_OFFSET_NS STREAM…\n", arguments[0]);
    return 2;
  }
  const std::int64_t offset_ns = std::atoll(arguments[2]);
  Seconds least;
  Result result;
  for (int i = std::atoi(arguments[1]); i > 0; --i) result = decode(count - 3, arguments + 3, offset_ns, least);
  std::printf("%llu %llu %.6f %.6f %.6f\n", static_cast<unsigned long long>(result.events),
              static_cast<unsigned long long>(result.sum), least.wall, least.cpu, least.kernel);
  return 0;
}
