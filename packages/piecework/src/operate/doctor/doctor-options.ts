import { LONGEST_DELAY_MS, type OptionTable, option, shape } from '@piecework/protocol/contract';
import type { Users } from './servers/acl.js';
import { ROLES } from './servers/roles.js';

export interface DoctorOptions {
  /** Whether to search for requests that the queue does not know, too: scans all keys (SCAN). @default false */
  readonly deep?: boolean | undefined;
  /**
   * Whether to repair first what can be repaired safely: opens requests that the queue lost again (scans all keys),
   * and ticks the agenda. @default false
   */
  readonly repair?: boolean | undefined;
  /**
   * ACL users whose rights are compared with what their role needs, as `{ worker: 'pw-worker' }`.
   * @default the user of this connection, as admin
   */
  readonly users?: Users | undefined;
  /**
   * How long a handler may run before it is a warning, in ms. @default ten times the median of its request, at
   * least 60000; 600000 where no worker knows one
   */
  readonly slowMs?: number | undefined;
}

/** The options after the check, defaults filled in. */
export type CheckedOptions = Required<Omit<DoctorOptions, 'slowMs'>> & DoctorOptions;

const user = shape.optional(shape.match(/^\S{1,128}$/));

export const doctorOptions: OptionTable = {
  deep: option.boolean(false),
  repair: option.boolean(false),
  users: option.custom(
    shape.exactly(Object.fromEntries(ROLES.map((role) => [role, user]))),
    `names of ACL users by role: ${ROLES.join(', ')}`,
    {},
  ),
  slowMs: option.ms(1, LONGEST_DELAY_MS),
};
