import { execFile } from 'node:child_process';
import { closeSync, openSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { ServerProgram } from '@piecework/embedded';

/*
 * A server clock that can be stepped. The server is started with a preloaded library, which answers the calls for the
 * time of day and adds an offset from a small file. Leases, agendas and the TTLs of keys are then all wrong by that
 * offset, as on a machine whose clock is wrong. Durations are not affected.
 */

const SOURCE = `
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile const int64_t *offset_ms;

__attribute__((constructor)) static void open_offset(void) {
  const char *name = getenv("PIECEWORK_CHAOS_CLOCK");
  int file = name ? open(name, O_RDONLY) : -1;
  if (file < 0) return;
  void *page = mmap(0, sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
  close(file);
  if (page != MAP_FAILED) offset_ms = page;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
  int failed = syscall(SYS_clock_gettime, clock, now);
  if (failed || !offset_ms || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE)) return failed;
  int64_t ns = now->tv_nsec + (*offset_ms % 1000) * 1000000;
  now->tv_sec += *offset_ms / 1000 + (ns < 0 ? -1 : ns / 1000000000);
  now->tv_nsec = ns < 0 ? ns + 1000000000 : ns % 1000000000;
  return 0;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
  struct timespec precise;
  (void)zone;
  if (clock_gettime(CLOCK_REALTIME, &precise)) return -1;
  now->tv_sec = precise.tv_sec;
  now->tv_usec = precise.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *now) {
  struct timespec precise;
  if (clock_gettime(CLOCK_REALTIME, &precise)) return -1;
  if (now) *now = precise.tv_sec;
  return precise.tv_sec;
}
`;

/** The clock of one server process; a server that is restarted on it keeps it. */
export interface ServerClock {
  /** How far it is ahead of the right time, in ms; less than 0: behind. */
  readonly offsetMs: number;
  set(offsetMs: number): void;
  /** The same program, on this clock. */
  program(program: ServerProgram): ServerProgram;
}

/** A function that makes clocks; undefined without a C compiler, or where libraries cannot be preloaded. */
export async function clockMaker(folder: string): Promise<(() => ServerClock) | undefined> {
  if (process.platform !== 'linux') return undefined;
  const [source, library] = [join(folder, 'clock.c'), join(folder, 'clock.so')];
  writeFileSync(source, SOURCE);
  const args = ['-shared', '-fPIC', '-O2', '-o', library, source];
  const compile = async (compiler: string) =>
    promisify(execFile)(compiler, args).then(
      () => true,
      () => false,
    );
  if (!((await compile('gcc')) || (await compile('cc')) || (await compile('clang'))))
    return undefined;
  let made = 0;
  return () => {
    made += 1;
    return clockIn(join(folder, `clock-${made}`), library);
  };
}

function clockIn(name: string, library: string): ServerClock {
  let offsetMs = 0;
  const bytes = Buffer.alloc(8);
  writeFileSync(name, bytes);
  const env = { LD_PRELOAD: library, PIECEWORK_CHAOS_CLOCK: name };
  return {
    get offsetMs() {
      return offsetMs;
    },
    set(next) {
      offsetMs = next;
      bytes.writeBigInt64LE(BigInt(next));
      // In place: the server has this very file in its memory.
      const file = openSync(name, 'r+');
      writeSync(file, bytes, 0, 8, 0);
      closeSync(file);
    },
    program: (program) => ({
      ...program,
      command: (place) => {
        const command = program.command(place);
        return { ...command, env: { ...command.env, ...env } };
      },
    }),
  };
}
