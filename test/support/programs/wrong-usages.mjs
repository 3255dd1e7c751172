// Runs programs of examples/ that are used wrongly, one after the other in this process: they end before they have
// started anything. Its only argument is JSON: a list of [path of the program, arguments]. Says a list of
// { code, stdout, stderr }; the code is null when the program did not end the process.
import { pathToFileURL } from 'node:url';

const usages = JSON.parse(process.argv[2]);
const say = process.stdout.write.bind(process.stdout);
const ends = [];
for (const [i, [path, args]] of usages.entries()) {
  const end = { code: null, stdout: '', stderr: '' };
  ends.push(end);
  for (const output of ['stdout', 'stderr']) {
    process[output].write = (text) => {
      end[output] += text;
      return true;
    };
  }
  process.argv.splice(1, Number.POSITIVE_INFINITY, path, ...args);
  const ended = new Error('the program has ended');
  process.exit = (code) => {
    end.code ??= code ?? 0;
    throw ended;
  };
  await import(`${pathToFileURL(path)}?${i}`).catch((error) => {
    if (error !== ended) end.stderr += error.stack;
  });
}
// Whatever a program that did not end has begun ends now.
say(JSON.stringify(ends), () => process.kill(process.pid, 'SIGKILL'));
