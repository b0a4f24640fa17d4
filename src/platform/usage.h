/* platform/usage.h: what the operating system says this process has used. For measuring only; beside platform.h. */
#ifndef SLM2_PLATFORM_USAGE_H
#define SLM2_PLATFORM_USAGE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct slm2_usage {
  uint64_t peak_rss;     /* bytes of memory at the highest so far, pages of mapped files included; 0: not told */
  uint64_t minor_faults; /* page faults since the start that needed no disk; on Windows all of them */
  uint64_t major_faults; /* that did */
} slm2_usage;
slm2_usage slm2_usage_now(void);

/* Data TLB misses by loads of this program (not of the kernel for it), on the calling thread and on those it makes from
 * now on. Needs the kernel's leave and a processor that counts: NULL without either. */
typedef struct slm2_tlb_counter slm2_tlb_counter;
slm2_tlb_counter *slm2_tlb_open(void);
bool slm2_tlb_read(const slm2_tlb_counter *counter, uint64_t *misses); /* since open; false: never counted so far */
void slm2_tlb_close(slm2_tlb_counter *counter);                        /* NULL is fine */

/* Makes the system drop the pages of a file that it keeps in memory, so that the next reader waits for the disk. false: it
 * did not, since it cannot or others hold them. */
bool slm2_forget_file(const char *path);

#endif
