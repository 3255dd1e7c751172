/** `piecework/options`: the option tables from which the command line makes its flags. */
export { pauseQueueOptions } from '../operate/admin.js';
export { doctorOptions } from '../operate/doctor/doctor-options.js';
export { ROLES } from '../operate/doctor/servers/roles.js';
export { updateOptions } from '../operate/request-control.js';
export { listOptions } from '../operate/request-list.js';
export { runningOptions } from '../operate/running.js';
