import pc from 'picocolors';

/** What a colour means. */
export type Tone = 'good' | 'bad' | 'warning' | 'quiet' | 'strong' | 'busy';

/** Whether a stream shows colours: on a terminal, unless NO_COLOR or --no-color says otherwise. */
export function hasColours(
  { isTTY }: { readonly isTTY?: boolean },
  env: NodeJS.ProcessEnv = process.env,
  args: readonly string[] = process.argv,
): boolean {
  return (
    Boolean(isTTY) && !env['NO_COLOR'] && env['TERM'] !== 'dumb' && !args.includes('--no-color')
  );
}

/** Colours a text that is already cut to its width. */
export type Paint = (tone: Tone | undefined, text: string) => string;

export function painter(coloured: boolean): Paint {
  const { green, red, yellow, dim, bold, cyan } = pc.createColors(coloured);
  const tones = { good: green, bad: red, warning: yellow, quiet: dim, strong: bold, busy: cyan };
  return (tone, text) => (tone === undefined || text === '' ? text : tones[tone](text));
}

/** Colours what is printed on standard output. */
export const paint: Paint = (tone, text) => painter(hasColours(process.stdout))(tone, text);
