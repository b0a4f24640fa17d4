/* platform/threads_win32.c: threads.h for Windows 7 and later: threads, slim locks, and how many processors there are. */
#ifndef _WIN32_WINNT
#define _WIN32_WINNT 0x0601
#endif

#include "platform/threads.h"

#include <stdlib.h>
#include <windows.h>

/* --- threads ------------------------------------------------------------------ */

struct slm2_thread {
  HANDLE handle;
  void (*body)(void *);
  void *argument;
};

static DWORD WINAPI enter(LPVOID argument) {
  slm2_thread *t = argument;
  t->body(t->argument);
  return 0;
}

slm2_thread *slm2_thread_start(void (*body)(void *), void *argument) {
  slm2_thread *t = malloc(sizeof *t);
  if (t == NULL) return NULL;
  *t = (slm2_thread){.body = body, .argument = argument};
  t->handle = CreateThread(NULL, 0, enter, t, 0, NULL);
  if (t->handle != NULL) return t;
  free(t);
  return NULL;
}

void slm2_thread_join(slm2_thread *t) {
  WaitForSingleObject(t->handle, INFINITE);
  CloseHandle(t->handle);
  free(t);
}

struct slm2_gate {
  SRWLOCK lock;
  CONDITION_VARIABLE condition;
};

slm2_gate *slm2_gate_create(void) {
  slm2_gate *g = malloc(sizeof *g);
  if (g == NULL) return NULL;
  InitializeSRWLock(&g->lock);
  InitializeConditionVariable(&g->condition);
  return g;
}
void slm2_gate_destroy(slm2_gate *g) { free(g); }
void slm2_gate_lock(slm2_gate *g) { AcquireSRWLockExclusive(&g->lock); }
void slm2_gate_unlock(slm2_gate *g) { ReleaseSRWLockExclusive(&g->lock); }
void slm2_gate_wait(slm2_gate *g) { SleepConditionVariableSRW(&g->condition, &g->lock, INFINITE, 0); }
void slm2_gate_wake(slm2_gate *g) { WakeAllConditionVariable(&g->condition); }

/* --- processors -------------------------------------------------------------------- */

static uint32_t bits(ULONG_PTR mask) {
  uint32_t n = 0;
  for (; mask != 0; mask &= mask - 1) n++;
  return n;
}

/* Of this process's processor group: threads stay in it unless told otherwise. */
slm2_cpus slm2_count_cpus(void) {
  slm2_cpus cpus = {0, 1};
  DWORD_PTR allowed = 1, system;
  if (GetProcessAffinityMask(GetCurrentProcess(), &allowed, &system) && allowed != 0) cpus.processors = bits(allowed);
  DWORD bytes = 0;
  GetLogicalProcessorInformation(NULL, &bytes);
  SYSTEM_LOGICAL_PROCESSOR_INFORMATION *all = malloc(bytes > 0 ? bytes : 1);
  if (all != NULL && bytes > 0 && GetLogicalProcessorInformation(all, &bytes))
    for (DWORD i = 0; i < bytes / sizeof *all; i++)
      cpus.cores += all[i].Relationship == RelationProcessorCore && (all[i].ProcessorMask & allowed) != 0;
  free(all);
  if (cpus.cores == 0) cpus.cores = cpus.processors;
  return cpus;
}
