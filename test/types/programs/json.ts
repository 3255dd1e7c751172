import {
  DelayedTasks,
  defineTask,
  type Jsonify,
  Piecework,
  RetryQueue,
  Scheduler,
  type Task,
  Worker,
} from 'piecework';

type Same<A, B> =
  (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const same = <A, B>(_: Same<A, B>) => {};

interface Shot {
  readonly path: string;
  takenAt: Date;
  width?: number;
  note: string | undefined;
  edits: (Date | undefined)[];
  place: readonly [lat: number, lon: number, seen?: Date];
  source: URL;
  rest: unknown;
  // biome-ignore lint/suspicious/noExplicitAny: is passed through
  extra: any;
  byYear: Record<string, Date>;
  related: Shot[];
}
interface Report {
  at: Date;
  left?: undefined;
}
const redis = 'redis://localhost';
const pw = new Piecework({ redis });
const develop = defineTask<Shot, Report>('develop');
declare const shot: Shot;

/* What is submitted has the types of the payload; what the handler gets, and results, are what JSON makes of it. */
const request = await pw.submit([shot], { task: develop });
const handler = develop.handler((arrived) => {
  same<(typeof arrived)['takenAt'], string>(true);
  same<(typeof arrived)['note'], string | undefined>(true);
  same<(typeof arrived)['edits'], (string | null)[]>(true);
  same<(typeof arrived)['place'], readonly [lat: number, lon: number, seen?: string | null]>(true);
  same<(typeof arrived)['source'], string>(true);
  same<(typeof arrived)['rest'], unknown>(true);
  arrived.extra.anything.goes();
  same<(typeof arrived)['byYear']['2026'], string>(true);
  same<(typeof arrived.related)[0]['related'][0]['takenAt'], string>(true);
  // @ts-expect-error it is the text of a date
  arrived.takenAt.getTime();
  const copy: typeof arrived = { ...arrived, width: 5 };
  // @ts-expect-error a property that is undefined is left out
  arrived.note.length;
  return { at: new Date(copy.takenAt) };
});
for await (const { value } of request.results()) {
  value.at.toUpperCase();
  // @ts-expect-error a property that is always undefined is left out
  console.log(value.left);
}
for await (const { value } of pw.request('id', { task: develop }).results()) value.at.toUpperCase();
for await (const { value } of pw.request<Report>('id').results()) value.at.toUpperCase();
const open = await pw.open({ task: develop });
await open.append(shot);
for await (const { value } of open.handle.results()) value.at.toUpperCase();
new Worker({ redis, handlers: [handler] });
for await (const one of new Worker({ redis }).subRequests<Shot>())
  one.payload.takenAt.toUpperCase();

/* JSON itself stays as it is, whatever it is called: an interface, a recursive type, an enum, a branded text. */
type Json = string | number | boolean | null | Json[] | { [name: string]: Json };
interface Tree {
  readonly value: number;
  readonly kids: readonly Tree[];
}
type Id = string & { readonly brand: 'id' };
enum Size {
  Small,
  Large,
}
same<Jsonify<Id | Size | null | boolean>, Id | Size | null | boolean>(true);
same<Jsonify<unknown>, unknown>(true);
defineTask<Json, Json>('json').handler((payload): Json => payload);
defineTask<Tree, Tree>('tree').handler((tree): Tree => tree.kids[0] ?? tree);
defineTask<Id, Size>('id').handler((id): Size => (id === 'a' ? Size.Small : Size.Large));
defineTask<string, void>('nothing').handler(async () => {});
defineTask<object, Jsonify<Report>>('twice').handler(() => ({ at: '' }));

/* What JSON cannot carry does not compile where it is defined, however deep it is. */
class Point {
  x = 1;
  toString() {
    return String(this.x);
  }
}
class Money {
  readonly #cents = 5;
  toJSON() {
    return this.#cents;
  }
}
// @ts-expect-error a bigint
defineTask<bigint>('wrong');
// @ts-expect-error a Map
defineTask<{ tags: { all: Map<string, number> }[] }>('wrong');
// @ts-expect-error a function that may be there
defineTask<{ onEnd?: () => void }>('wrong');
// @ts-expect-error methods are lost on the way
defineTask<Point>('wrong');
// @ts-expect-error a result is JSON as well
defineTask<string, Set<string>>('wrong');
// @ts-expect-error no promise of a result
defineTask<string, Promise<number>>('wrong');
// @ts-expect-error a symbol in a result
defineTask<string, { mark: symbol }>('wrong');
// @ts-expect-error what toJSON returns is no JSON
defineTask<{ toJSON(): bigint }>('wrong');
const price = defineTask<Money, Money>('price').handler((cents) => {
  cents.toFixed();
  return new Money();
});
new Worker({ redis, handlers: [price] });

/* A function over all tasks, and one that names them. */
const runAll = async <P, R>(task: Task<P, R>, payloads: readonly P[]) => {
  const { results } = await pw.submit(payloads, { task });
  return results;
};
await runAll(develop, [shot]);
const named = <P, R>(name: string) => defineTask<P, R>(`app-${name}` as never);
named<Shot, Report>('develop').handler(({ takenAt }) => ({ at: new Date(takenAt) }));

/* So it is with the queues beside requests. */
const retries = new RetryQueue<Shot>({ redis, name: 'shots' });
await retries.put(shot);
await retries.consume(({ takenAt }, { payload }) => takenAt === payload.takenAt.toUpperCase());
for await (const { payload } of retries.failures()) payload.takenAt.toUpperCase();
const times = new Scheduler<{ at: Date }>({ redis, name: 'times' });
await times.enqueue({ at: new Date() }, new Date());
for await (const { object } of times.due()) {
  object.at.toUpperCase();
  await times.remove(object);
}
const later = new DelayedTasks<{ remind: [at: Date] }>({ redis });
await later.executeLater('mail', 'remind', [new Date()]);
later.worker({ queues: ['mail'], handlers: { remind: ([at]) => at.toUpperCase() } });
