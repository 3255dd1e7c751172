import type { Redis } from 'ioredis';

/** Cost of one kind of command, from `INFO commandstats`. */
export interface CommandCost {
  readonly calls: number;
  readonly micros: number;
}

/** Counters of the server since its start. */
export interface RedisFigures {
  /** CPU time of the main thread, which runs every command. */
  readonly cpuMicros: number;
  /** Number of commands, including those that scripts call. */
  readonly commands: number;
  readonly wireBytes: number;
  readonly costs: Readonly<Record<string, CommandCost>>;
}

export async function redisFigures(probe: Redis): Promise<RedisFigures> {
  const info = parseInfo(await probe.info('everything'));
  const number = (field: string) => Number(info[field] ?? Number.NaN);
  const costs: Record<string, CommandCost> = {};
  let commands = 0;
  for (const [field, text] of Object.entries(info)) {
    if (!field.startsWith('cmdstat_')) continue;
    const [, calls, micros] = /^calls=(\d+),usec=(\d+)/.exec(text) ?? [];
    costs[field.slice('cmdstat_'.length)] = { calls: Number(calls), micros: Number(micros) };
    commands += Number(calls);
  }
  const cpuSeconds = number('used_cpu_user_main_thread') + number('used_cpu_sys_main_thread');
  return {
    cpuMicros: cpuSeconds * 1e6,
    commands,
    wireBytes: number('total_net_input_bytes') + number('total_net_output_bytes'),
    costs,
  };
}

/** The difference between two readings. */
export function difference(before: RedisFigures, after: RedisFigures): RedisFigures {
  const costs: Record<string, CommandCost> = {};
  for (const [name, { calls, micros }] of Object.entries(after.costs)) {
    const then = before.costs[name] ?? { calls: 0, micros: 0 };
    if (calls > then.calls) {
      costs[name] = { calls: calls - then.calls, micros: micros - then.micros };
    }
  }
  return {
    cpuMicros: after.cpuMicros - before.cpuMicros,
    commands: after.commands - before.commands,
    wireBytes: after.wireBytes - before.wireBytes,
    costs,
  };
}

export async function usedMemory(probe: Redis): Promise<number> {
  return Number(parseInfo(await probe.info('memory'))['used_memory']);
}

export async function connectedClients(probe: Redis): Promise<number> {
  return Number(parseInfo(await probe.info('clients'))['connected_clients']);
}

export function parseInfo(text: string): Record<string, string> {
  const lines = text.split('\r\n').filter((line) => line.includes(':') && !line.startsWith('#'));
  return Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1)]),
  );
}
