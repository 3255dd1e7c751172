// Runs one command line after the other, as messages of its parent name them, each with a program made
// anew by the same code as `piecework …`, and answers what it said and its exit code. For those that end
// before they open anything: all of them share this process.
const main = new URL('../../../packages/cli/dist/main.js', import.meta.url);
const said = { stdout: '', stderr: '' };
for (const output of ['stdout', 'stderr']) {
  process[output].setMaxListeners(0);
  process[output].write = (text) => {
    said[output] += text;
    return true;
  };
}

let runs = 0;
process.on('message', async (args) => {
  runs += 1;
  process.argv.splice(2, Number.POSITIVE_INFINITY, ...args);
  process.exitCode = undefined;
  Object.assign(said, { stdout: '', stderr: '' });
  await import(`${main}?${runs}`);
  process.send({ code: process.exitCode ?? 0, ...said });
});
