/* Emits the largest numbers, infinity and none at all; its provider is made by lttng-gen-tp. */
#include <float.h>
#include <math.h>
#include <stdint.h>

#include "numbers_tp.h"

int main(void) {
  const double values[] = {NAN, INFINITY, -INFINITY, 0, 2, DBL_MAX};
  for (uint64_t index = 0; index < sizeof values / sizeof *values; ++index)
    lttng_ust_tracepoint(numbers, one, values[index], UINT64_MAX - index);
  lttng_ust_tracepoint(numbers, other, -1); /* as UINT64_MAX in the first event */
  return 0;
}
