/* Emits `argv[1]` events of each kind. */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "shapes_provider.h"

#include <stdlib.h>

int main(int count, char **arguments) {
  static const char *const words[] = {"one", "caf\xc3\xa9", "a longer text"};
  static const uint8_t bytes[16] = {'n', 'o', 'd', 'e', 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 255};
  static const int16_t numbers[4] = {-1, 2, -300, 4000};
  const int steps = count > 1 ? atoi(arguments[1]) : 1;
  for (int step = 0; step < steps; ++step) {
    lttng_ust_tracepoint(shapes, all, step, words[step % 3], bytes, numbers, (size_t) (step % 3));
    lttng_ust_tracepoint(shapes, nothing, step);
  }
  return 0;
}
