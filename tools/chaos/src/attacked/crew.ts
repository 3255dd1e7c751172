import { type ChildProcess, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Report, RoleArgument, Task } from '../contract/messages.js';

export type RoleName = 'worker' | 'producer' | 'waiter' | 'taker';

/** A place that is always filled: a process that dies is replaced at once, under another name. */
export interface Place {
  readonly role: RoleName;
  readonly number: number;
  readonly argument: Omit<RoleArgument, 'name'>;
  /** Never killed or frozen. */
  readonly spared: boolean;
}

export interface Member {
  readonly name: string;
  readonly place: Place;
  readonly child: ChildProcess;
  readonly ended: Promise<unknown>;
  ready: boolean;
  /** Whether it is the target of a fault that is under way. */
  struck: boolean;
}

export interface CrewEvents {
  readonly onReport: (member: Member, report: Report) => void;
  /** It ended without having been killed. */
  readonly onUnexpectedEnd: (member: Member, how: string) => void;
}

/** The processes of the attack. They end when this process ends, as each has an IPC channel to it. */
export class Crew {
  readonly #logs: string;
  readonly #events: CrewEvents;
  /** Folder of the programs of every second place, if it is another. */
  readonly #elsewhere: string | undefined;
  readonly #members = new Map<Place, Member>();
  readonly #born = { worker: 0, producer: 0, waiter: 0, taker: 0 };
  /** Ids of all workers in the registry: a killed worker cannot deregister itself. */
  readonly boots = new Set<string>();
  readonly #standing = new Map<RoleName, Task>();
  #closing = false;

  /** @param elsewhere folder of the programs of every second place of a role */
  constructor(logs: string, events: CrewEvents, elsewhere?: string) {
    this.#logs = logs;
    this.#events = events;
    this.#elsewhere = elsewhere;
  }

  get members(): readonly Member[] {
    return [...this.#members.values()];
  }

  fill(place: Place): void {
    this.#born[place.role] += 1;
    const name = `${place.role}-${this.#born[place.role]}`;
    const argument: RoleArgument = { ...place.argument, name };
    const here = fileURLToPath(new URL('..', import.meta.url));
    const folder = (place.number % 2 === 1 ? this.#elsewhere : undefined) ?? here;
    const program = join(folder, 'roles', `${place.role}.js`);
    const log = openSync(join(this.#logs, name), 'a');
    const child = fork(program, [JSON.stringify(argument)], {
      stdio: ['ignore', log, log, 'ipc'],
    });
    closeSync(log);
    const member: Member = {
      ...{ name, place, child, ready: false, struck: false },
      ended: new Promise((resolve) => child.once('exit', resolve)),
    };
    this.#members.set(place, member);
    child.on('message', (report: Report) => {
      if (report.report === 'ready') member.ready = true;
      if (report.report === 'ready' && report.boot) this.boots.add(report.boot);
      const standing = this.#standing.get(place.role);
      if (report.report === 'ready' && standing) this.ask(place.role, place.number, standing);
      this.#events.onReport(member, report);
    });
    child.on('error', () => {});
    child.on('exit', (code, signal) => {
      if (this.#closing) return;
      if (!member.struck) this.#events.onUnexpectedEnd(member, `${signal ?? code}`);
      this.fill(place);
    });
  }

  /** Sends a task to the process in that place. If it dies, the message is lost, and the desk asks again. */
  ask(role: RoleName, number: number, task: Task): void {
    const member = this.members.find(({ place }) => place.role === role && place.number === number);
    if (member?.ready && member.child.connected) member.child.send(task, () => {});
  }

  /** Sends a task to all processes of a role, and to those that are started later. */
  tell(role: RoleName, task: Task): void {
    this.#standing.set(role, task);
    for (const { place } of this.members) this.ask(role, place.number, task);
  }

  async kill(member: Member): Promise<void> {
    member.struck = true;
    member.child.kill('SIGKILL');
    await member.ended;
  }

  /** Stops it for this time. A separate shell resumes it, even if this process ends meanwhile. */
  async freeze(member: Member, ms: number): Promise<void> {
    member.struck = true;
    const script = 'kill -STOP "$1" && sleep "$2"; kill -CONT "$1"';
    const args = ['-c', script, 'freeze', String(member.child.pid), String(ms / 1_000)];
    await once(spawn('/bin/sh', args, { stdio: 'ignore', detached: true }), 'exit');
    member.struck = false;
  }

  /** Ends all by SIGTERM; kills those that have not ended after `withinMs`, and returns their names. */
  async close(withinMs: number): Promise<string[]> {
    this.#closing = true;
    const late: string[] = [];
    const endOne = async (member: Member) => {
      member.child.kill('SIGTERM');
      const timer = setTimeout(() => {
        late.push(member.name);
        member.child.kill('SIGKILL');
      }, withinMs);
      await member.ended;
      clearTimeout(timer);
    };
    await Promise.all(this.members.map(endOne));
    return late;
  }

  /** Kills all at once. */
  killAll(): void {
    this.#closing = true;
    for (const { child } of this.members) {
      child.kill('SIGCONT');
      child.kill('SIGKILL');
    }
  }
}
