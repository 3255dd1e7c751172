// Runs one command line after the other, as messages of its parent name them. Each has a program of its own, made by
// the same code as `piecework …`. Behind what a command and its processes have written, it writes a mark to both outputs.
const main = new URL('../../../packages/cli/dist/main.js', import.meta.url);
// Each command adds listeners, which a process of its own would take along.
for (const emitter of [process, process.stdout, process.stderr]) emitter.setMaxListeners(0);

let runs = 0;
process.on('message', async ({ args, redis, mark }) => {
  runs += 1;
  process.argv.splice(2, Number.POSITIVE_INFINITY, ...args);
  process.exitCode = undefined;
  if (redis === undefined) delete process.env.REDIS_URL;
  else process.env.REDIS_URL = redis;
  await import(`${main}?${runs}`);
  const code = process.exitCode ?? 0;
  // Of this process: whether its commands left nothing open is seen by its end.
  process.exitCode = undefined;
  process.stdout.write(mark);
  process.stderr.write(mark);
  process.send({ code });
});
