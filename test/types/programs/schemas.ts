import { defineTask, Piecework, type Task, Worker } from 'piecework';

/* As any library that speaks Standard Schema declares its schemas: what goes in, and what comes out. */
interface Schema<Input, Output> {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => { readonly value: Output };
    readonly types?: { readonly input: Input; readonly output: Output };
  };
}
declare function schema<Input, Output>(): Schema<Input, Output>;

const pw = new Piecework({ redis: 'redis://localhost' });
const shrink = defineTask('shrink', {
  payload: schema<{ path: string; width?: string }, { path: string; width: number }>(),
});

/* Payloads are what goes into the schema; the handler gets what comes out. */
await pw.submit([{ path: 'a' }, { path: 'b', width: '5' }], { task: shrink });
await pw.submit(
  [
    // @ts-expect-error what comes out does not go in
    { path: 'a', width: 5 },
  ],
  { task: shrink },
);
const open = await pw.open({ task: shrink });
await open.append({ path: 'a' });
// @ts-expect-error nor here
await open.append({ path: 'a', width: 5 });
const handler = shrink.handler(({ width }) => width.toFixed());
new Worker({ redis: 'redis://localhost', handlers: [handler] });

/* With a type for what the handler returns. */
const counted: Task<string, number, string[]> = defineTask('count', {
  payload: schema<string, string[]>(),
});
const request = await pw.submit(['a b'], { task: counted });
for await (const { value } of request.results()) console.log(value.toFixed());
counted.handler((words) => words.length);
// @ts-expect-error it returns no number
counted.handler((words) => words);
