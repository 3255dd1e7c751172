/** `piecework/options`: the option tables from which the command line makes its flags. */
export { listOptions, pauseQueueOptions } from '../operate/admin.js';
export { doctorOptions } from '../operate/doctor/doctor.js';
export { ROLES } from '../operate/doctor/rights.js';
export { updateOptions } from '../operate/request-control.js';
export { runningOptions } from '../operate/running.js';
