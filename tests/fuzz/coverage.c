/*
 * Reports to libFuzzer which places of a module were reached: fuzz.sh links this into each of them.
 *
 * gcc calls __sanitizer_cov_trace_pc at every place, but libFuzzer takes only counters, such as clang makes. So each
 * place increments one of PLACES counters, by its distance from announce(), which is the same in every run. Places
 * whose distances differ by a multiple of PLACES share a counter; the modules are smaller than that.
 */
#include <stddef.h>
#include <stdint.h>

#define PLACES 65536
#define OF_THE_MODULE __attribute__((visibility("hidden")))

void __sanitizer_cov_8bit_counters_init(uint8_t *start, uint8_t *stop);
void __sanitizer_cov_pcs_init(const uintptr_t *start, const uintptr_t *stop);

static uint8_t counters[PLACES];
/* libFuzzer wants an address and flags for every counter; it only prints those. */
static uintptr_t places[PLACES][2];

__attribute__((constructor)) static void announce(void)
{
    for (size_t place = 0; place < PLACES; place++)
        places[place][0] = (uintptr_t)announce + place;
    __sanitizer_cov_8bit_counters_init(counters, counters + PLACES);
    __sanitizer_cov_pcs_init(places[0], places[0] + 2 * PLACES);
}

OF_THE_MODULE void __sanitizer_cov_trace_pc(void)
{
    counters[((uintptr_t)__builtin_return_address(0) - (uintptr_t)announce) % PLACES]++;
}

/* gcc also reports comparisons of floating-point numbers, for which libFuzzer has no function. */
OF_THE_MODULE void __sanitizer_cov_trace_cmpf(float left, float right)
{
    (void)left;
    (void)right;
}

OF_THE_MODULE void __sanitizer_cov_trace_cmpd(double left, double right)
{
    (void)left;
    (void)right;
}
