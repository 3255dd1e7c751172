/**
 * `piecework/options`: the option tables from which the command line makes its flags. They load nothing that talks to
 * Redis.
 */
export { doctorOptions } from '../operate/doctor/doctor-options.js';
export { ROLES } from '../operate/doctor/servers/roles.js';
export {
  listOptions,
  pauseQueueOptions,
  runningOptions,
  updateOptions,
} from '../operate/options.js';
