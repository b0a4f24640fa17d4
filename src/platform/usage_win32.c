/* platform/usage_win32.c: usage.h by GetProcessMemoryInfo. Windows tells no kinds of page faults, and gives user programs no
 * processor counters. */
#define PSAPI_VERSION 2 /* the function is kernel32's: nothing more to link */
#ifndef _WIN32_WINNT
#define _WIN32_WINNT 0x0601
#endif

#include <windows.h>
#include <psapi.h>

#include "platform/usage.h"

slm2_usage slm2_usage_now(void) {
  PROCESS_MEMORY_COUNTERS counters;
  if (!GetProcessMemoryInfo(GetCurrentProcess(), &counters, sizeof counters)) return (slm2_usage){0};
  return (slm2_usage){.peak_rss = counters.PeakWorkingSetSize, .minor_faults = counters.PageFaultCount};
}

slm2_tlb_counter *slm2_tlb_open(void) { return NULL; }

bool slm2_tlb_read(const slm2_tlb_counter *counter, uint64_t *misses) {
  (void)counter;
  (void)misses;
  return false;
}

void slm2_tlb_close(slm2_tlb_counter *counter) { (void)counter; }

bool slm2_forget_file(const char *path) {
  (void)path;
  return false;
}
