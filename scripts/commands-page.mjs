// Writes into docs/operations.md, from the scripts and from the rights of the roles: the commands of each ACL user, and
// the list of all commands. With --check it writes nothing and fails when they are not up to date. Reads the built
// package: run `npm run build` before.
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import {
  commandsOf,
  LATER,
  OF_CLUSTERS,
  OPTIONAL,
  PLAIN,
  usersOf,
} from '../packages/piecework/dist/operate/doctor/servers/rights.js';
import { ROLES } from '../packages/piecework/dist/operate/doctor/servers/roles.js';
import { OPTION_SINCE, SINCE } from './command-versions.mjs';
import { buildScripts } from './lua-source.mjs';

const page = fileURLToPath(new URL('../docs/operations.md', import.meta.url));
const WIDTH = 120;
const [BEGIN, END] = ['<!-- Commands, written by npm run commands -->', '<!-- End of commands -->'];

/** Words in lines of at most WIDTH characters; each line but the last ends with `end`. */
function wrapped(words, indent, end = '') {
  const lines = [];
  for (const word of words) {
    const last = lines.at(-1);
    if (last !== undefined && `${last} ${word}${end}`.length <= WIDTH)
      lines[lines.length - 1] += ` ${word}`;
    else lines.push(`${lines.length === 0 && end === '' ? '' : indent}${word}`);
  }
  return lines.join(`${end}\n`);
}

/** The rights of a role to commands, as its line in a shell has them. */
function rightsOf(role) {
  const commands = commandsOf(role).filter((command) => !LATER.includes(command));
  const quoted = commands.map((one) => (one.includes('|') ? `'+${one}'` : `+${one}`));
  return wrapped(quoted, '    ', ' \\');
}

const lua = Object.values(buildScripts())
  .map((script) => script.lua)
  .join('\n');

/** Options that scripts give to a command: words in capitals among its arguments. */
function optionsOf(command) {
  const [name, sub] = command.toUpperCase().split('|');
  const call = new RegExp(
    `(?:redis\\.p?call|someAtATime)\\('${name}'${sub ? `, '${sub}'` : ''}(.*)`,
    'g',
  );
  const found = [...lua.matchAll(call)].flatMap(([, rest]) => {
    const [mine] = rest.split(/redis\.p?call/);
    return [...mine.matchAll(/'([A-Z]{2,})'/g)].map(([, word]) => word);
  });
  return [...new Set(found)].sort();
}

const all = [...new Set(ROLES.flatMap(commandsOf))].sort();
for (const command of all)
  if (!SINCE.some(([, names]) => names.includes(command)))
    throw new Error(`scripts/command-versions.mjs does not say since when there is ${command}`);

function optionText(command, option) {
  const since = OPTION_SINCE[command]?.[option];
  return since === undefined ? `\`${option}\`` : `\`${option}\` (${since})`;
}

function entryOf(command) {
  const { roles, scripts } = usersOf(command, ROLES);
  const senders = ROLES.filter((role) => PLAIN[role].includes(command));
  const options = optionsOf(command);
  const name = command.toUpperCase().replace('|', ' ');
  const facts = [
    options.length > 0 ? `with ${options.map((one) => optionText(command, one)).join(', ')}` : '',
    scripts.length > 0 ? `scripts ${scripts.map((one) => `\`${one}\``).join(', ')}` : '',
    senders.length > 0 ? `sent by ${senders.join(', ')}` : '',
    scripts.length + senders.length === 0
      ? `sent by ${roles.length === ROLES.length ? 'all' : roles.join(', ')}`
      : '',
  ];
  if (OF_CLUSTERS.includes(command)) facts.push('only to nodes of a cluster');
  const purpose = OPTIONAL[command] ? ` **Optional:** for ${OPTIONAL[command]}.` : '';
  return `- \`${name}\`: ${facts.filter(Boolean).join('; ')}.${purpose}`;
}

const list = SINCE.map(([version, names]) => {
  const entries = all.filter((command) => names.includes(command)).map(entryOf);
  return [
    `Since Redis ${version}:`,
    '',
    ...entries.map((one) => wrapped(one.split(' '), '  ')),
  ].join('\n');
}).join('\n\n');

const found = readFileSync(page, 'utf8');
const withRights = ROLES.reduce((text, role) => {
  const line = new RegExp(
    `(ACL SETUSER piecework-${role} (?:[^+\\n]*\\\\\\n)*)((?: {4}'?\\+.*\\n)+)`,
  );
  if (!line.test(text)) throw new Error(`docs/operations.md has no user piecework-${role}`);
  return text.replace(line, (_, before) => `${before}${rightsOf(role)}\n`);
}, found);
const [before, rest] = withRights.split(`${BEGIN}\n`);
const after = rest.slice(rest.indexOf(END));
const whole = `${before}${BEGIN}\n\n${list}\n\n${after}`;
if (found === whole) {
  console.log('the commands in operations.md are fresh');
} else if (process.argv.includes('--check')) {
  console.error('docs/operations.md is stale: run `npm run commands` and commit it');
  process.exitCode = 1;
} else {
  writeFileSync(page, whole);
  console.log('wrote the commands into docs/operations.md');
}
