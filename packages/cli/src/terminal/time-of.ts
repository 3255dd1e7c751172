/**
 * A time as it is typed. `Date` alone takes 30 February for 2 March, and chooses silently where the clocks of the local
 * zone show a time never or twice.
 */

const TYPED =
  /^(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,3}))?)?)?(Z|[+-]\d\d:\d\d)?$/i;

/** How a time may be typed. */
export const TIME_FORMS =
  'a time such as 2030-01-31T12:00:00Z, 2030-01-31T12:00 (in your zone), or ms since 1970';

/** The longest step of a clock, in ms. */
const DAY_MS = 86_400_000;
const MINUTE_MS = 60_000;
/** A smaller number is a time before 1973 in ms, or one before 5138 in seconds. */
const SECONDS_BELOW = 100_000_000_000;

/**
 * @param typed a date or a date and time, in the local zone unless it ends in one, or ms since 1970
 * @returns the time, or what is allowed instead
 */
export function timeOf(typed: string): Date | string {
  if (/^\d{1,15}$/.test(typed)) {
    // `date +%s` has seconds: as ms they are a day of 1970, which is over, so the request would begin at once.
    if (Number(typed) >= SECONDS_BELOW) return new Date(Number(typed));
    return `ms since 1970: ${typed} is in 1970 to 1973; if it is seconds, write ${typed}000`;
  }
  const [, year, month, day, hour = '0', minute = '0', second = '0', ms = '0', zone] =
    TYPED.exec(typed) ?? [];
  if (day === undefined) return TIME_FORMS;
  const fields = [year, month, day, hour, minute, second].map(Number) as Fields;
  const [y, m, d, ...time] = fields;
  const asUtc = new Date(Date.UTC(y, m - 1, d, ...time, Number(ms.padEnd(3, '0'))));
  if (`${utcFields(asUtc)}` !== `${fields}`) return 'a day and a time that exist';
  if (zone !== undefined) {
    const [, sign, hours = 0, minutes = 0] = /([+-])(\d\d):(\d\d)/.exec(zone) ?? [];
    if (Number(hours) > 23 || Number(minutes) > 59) return TIME_FORMS;
    const offset = (Number(hours) * 60 + Number(minutes)) * (sign === '-' ? -1 : 1);
    return new Date(asUtc.getTime() - offset * MINUTE_MS);
  }
  // The offsets of the zone before and behind a step of its clocks near this time.
  const [before, behind] = [-DAY_MS, DAY_MS].map((step) => {
    const offset = new Date(asUtc.getTime() + step).getTimezoneOffset();
    return new Date(asUtc.getTime() + offset * MINUTE_MS);
  }) as [Date, Date];
  if (before.getTime() === behind.getTime()) return before;
  const shown = [before, behind].filter((one) => `${localFields(one)}` === `${fields}`);
  if (shown.length === 1) return shown[0] as Date;
  const often = shown.length === 0 ? 'never shows this time' : 'shows this time twice';
  const [first, last] = [before, behind].sort((a, b) => a.getTime() - b.getTime());
  return `${zoned(first as Date)} or ${zoned(last as Date)}, as the clock of your zone ${often}`;
}

type Fields = [number, number, number, number, number, number];

const utcFields = (at: Date): Fields => [
  ...([at.getUTCFullYear(), at.getUTCMonth() + 1, at.getUTCDate()] as const),
  ...([at.getUTCHours(), at.getUTCMinutes(), at.getUTCSeconds()] as const),
];

/** The local time, as if it were UTC. */
const local = (at: Date) => new Date(at.getTime() - at.getTimezoneOffset() * MINUTE_MS);

const localFields = (at: Date) => utcFields(local(at));

/** The local time with its zone: `2026-12-01T10:00:00+01:00`. */
export function zoned(at: Date): string {
  const minutes = -at.getTimezoneOffset();
  const two = (n: number) => String(Math.floor(Math.abs(n))).padStart(2, '0');
  const zone = `${minutes < 0 ? '-' : '+'}${two(minutes / 60)}:${two(minutes % 60)}`;
  return `${local(at)
    .toISOString()
    .replace(/(\.000)?Z$/, '')}${zone}`;
}
