import { type JsonText, shownText } from '@piecework/protocol/contract';
import { ExecCommand } from '../exec/command.js';
import type { Input } from '../input/input.js';
import { jsonTextOf, objectLine } from '../json/json-parts.js';
import { print, say } from '../terminal/print.js';
import type { WorkValues } from './check-work.js';
import { LossWarning } from './loss-warning.js';

/** How many sub-requests are shown. */
const SHOWN = 10;

/** `--dry-run`: prints the commands or the payloads of the first sub-requests, and says whether there are more. */
export async function dryRun(
  items: Input,
  { exec, execFields, execInput, persistent, json }: Partial<WorkValues> & { json: boolean },
): Promise<void> {
  const command =
    exec === undefined || persistent
      ? undefined
      : new ExecCommand(exec, execInput, execFields?.split(','));
  const warning = json || exec !== undefined ? undefined : new LossWarning(items);
  items.onLeftOut(({ file, unit, record: { number, wrong } }) => {
    if (!json) say(`left out: ${file}: ${unit} ${number} ${wrong}`);
  });
  await items.begin();
  if (items.rows !== undefined && !json) say(items.rows);
  let index = 0;
  for await (const item of items) {
    const payload = jsonTextOf(item) as JsonText;
    if (index === SHOWN) {
      if (!json) say(`… the input continues; these were the first ${SHOWN}`);
      return;
    }
    warning?.check(payload);
    const shown = command?.shown(payload, index, json ? String : (text) => shownText(text));
    if (shown === undefined) print(objectLine({ index, payload }));
    else if (json) print(JSON.stringify({ index, command: shown }));
    else print(...shown.split('\n'));
    index += 1;
  }
  if (!json) say(index === 1 ? 'that is the only one' : `that is all: ${index}`);
}
