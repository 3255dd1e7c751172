import type { Command } from 'commander';

/** What `--help` of each command shows below its flags: examples, and notes on what the command prints. */
const EXAMPLES: Readonly<Record<string, readonly string[]>> = {
  run: [
    'piecework run --input big.ndjson --split ndjson --handler h.mjs -j 100 --out out.ndjson',
    `piecework run --input photos/ --exec 'identify {}' -j 4 --out sizes.txt --format text`,
    "piecework run --input 'logs/*.gz' --batch 1000 --exec 'wc -w' --out - | jq .value",
    "piecework run --input people.csv --split csv --exec 'node letter.js' --dry-run",
    "piecework run --redis redis://localhost --id job1 --input words.txt --exec 'wc -c' --out o.ndjson  # again: continues",
  ],
  submit: [
    'piecework submit --input big.ndjson --split ndjson --limit 100 --priority 10 --wait',
    'seq 1000 | piecework submit --input - --id numbers',
  ],
  worker: [
    'piecework worker --handler h.mjs --processes auto --health-port 8080 --metrics-port 8080',
    "piecework worker --exec 'python3 square.py' --persistent",
  ],
  watch: ['piecework watch numbers', 'piecework watch --json | jq .open'],
  top: ['piecework top --redis redis://localhost', 'piecework top --queue mail --read-only'],
  status: ['piecework status numbers', 'piecework status numbers --json | jq .counts'],
  list: ['piecework list', 'piecework list --state all --json | jq -r .id'],
  workers: ['piecework workers', 'piecework workers --json | jq .running'],
  results: ['piecework results numbers --order index --failed --out numbers.ndjson'],
  failures: ['piecework failures numbers --group', 'piecework failures numbers --error TypeError'],
  redrive: [
    'piecework redrive numbers --error TimeoutError --wait',
    'piecework redrive numbers --index 3,17',
  ],
  errors: ['piecework errors', 'piecework errors --json | jq -r .message'],
  cancel: ['piecework cancel numbers'],
  pause: ['piecework pause numbers', 'piecework pause --queue-wide --for-ms 60000'],
  resume: ['piecework resume numbers', 'piecework resume --queue-wide'],
  update: ['piecework update numbers --limit 200 --priority 10'],
  drop: ['piecework drop numbers'],
  doctor: ['piecework doctor', 'piecework doctor --users worker=piecework-worker --json'],
  dashboard: [
    'piecework dashboard --insecure',
    'piecework dashboard --token-file token --allow-control --queues req,mail*4',
  ],
  exporter: [
    'piecework exporter --redis redis://localhost --host 0.0.0.0',
    'piecework exporter --queues req,mail*4 --target-seconds 300',
  ],
  dev: [
    'piecework dev --port 7777 --dir ./data',
    'piecework dev --cluster',
    'piecework dev --dashboard',
  ],
  complete: ['source <(piecework complete bash)', 'piecework complete fish | source'],
};

/** The statuses that `status`, `list` and `watch` print. */
const STATUSES = `
Status:
  open        items may still be added; those already added run
  sealed      all items are in; the request runs
  cancelling  running sub-requests may finish; the others are cancelled
  complete    it has ended: succeeded, failed or cancelled`;

const NPX = `
In production start node_modules/.bin/piecework: npx ends on a signal and does not wait for the worker, which then
drains by itself.`;

const NOTES: Readonly<Record<string, string>> = {
  ...{ status: STATUSES, list: STATUSES, watch: STATUSES },
  worker: NPX,
};

export function addExamples(program: Command): void {
  for (const command of program.commands) {
    const note = NOTES[command.name()];
    if (note) command.addHelpText('after', note);
    const lines = EXAMPLES[command.name()];
    if (!lines) continue;
    const text = lines.map((line) => `  $ ${line}`).join('\n');
    command.addHelpText('after', `\nExamples:\n${text}`);
  }
}
