import { defineTask, Piecework } from 'piecework';

interface Photo {
  readonly path: string;
  readonly fail?: boolean;
  readonly width?: number;
}

const resize = defineTask<Photo, { bytes: number }>('resize');
const pw = new Piecework({ redis: 'redis://localhost' });

/* The task says what a payload is; items may leave out what is optional. */
const paths: readonly string[] = ['a', 'b'];
const photos = paths.map((path) => ({ path, fail: true }));
await pw.submit(photos, { task: resize });
await pw.submit([{ path: 'a' }, { path: 'b', width: 5 }], { task: resize, limit: 5 });
await pw.submit(new Set(photos), { task: resize });
await pw.submit(streamed(), { task: resize });
await pw.submit(new ReadableStream<Photo>(), { task: resize });
await pw.submit(
  paths.map((path) => ({ path })),
  { task: resize },
);

async function* streamed() {
  yield { path: 'a' };
}

/* What is wrong is the item. */
await pw.submit(
  [
    { path: 'a' },
    // @ts-expect-error a number is no path
    { path: 1 },
    // @ts-expect-error there is no such property
    { path: 'c', heigth: 3 },
  ],
  { task: resize, limit: 5 },
);
const numbers = [1, 2];
await pw.submit(
  // @ts-expect-error numbers are no photos
  numbers,
  { task: resize },
);
await pw.submit(
  // @ts-expect-error nor when they stream
  new ReadableStream<number>(),
  { task: resize },
);
await pw.submit(
  // @ts-expect-error one of them has no path
  paths.map((name) => ({ name })),
  { task: resize },
);

/* Without a task, or with the name of one, anything goes that JSON keeps. */
await pw.submit(numbers);
await pw.submit(numbers, { task: 'resize' });
await pw.submit([1, 'a', { b: true }], { limit: null });
await pw.submit<Photo, number>(photos, { task: 'resize' });
await pw.submit<Photo>(
  // @ts-expect-error a type that is given holds
  numbers,
  { task: 'resize' },
);
// @ts-expect-error no such option
await pw.submit(photos, { task: resize, prioritty: 1 });
