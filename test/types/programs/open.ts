import { defineTask, Piecework } from 'piecework';

const resize = defineTask<{ path: string; width?: number }, { bytes: number }>('resize');
const pw = new Piecework({ redis: 'redis://localhost' });

const open = await pw.open({ task: resize });
await open.append({ path: 'a' }, { path: 'b', width: 5 });
await open.append(...['a', 'b'].map((path) => ({ path })));
await open.append(
  { path: 'a' },
  // @ts-expect-error a number is no path
  { path: 1 },
);
// @ts-expect-error it is the payload, no array of them
await open.append([{ path: 'a' }]);
await open.seal();
const made: boolean = open.handle.created && !open.joined;
for await (const { value } of open.handle.results()) console.log(value.bytes, made);

/* Without a task, or with the name of one, anything goes that JSON keeps. */
const free = await pw.open({ limit: 5 });
await free.append(1, 'a', { b: true });
const named = await pw.open({ task: 'resize' });
await named.append(1);
const typed = await pw.open<number, string>({ task: 'resize' });
// @ts-expect-error a type that is given holds
await typed.append('a');
for await (const { value } of typed.handle.results()) console.log(value.length);
