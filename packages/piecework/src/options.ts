/** `piecework/options`: the option tables from which the command line makes its flags. */
export { listOptions, pauseQueueOptions } from './admin.js';
export { doctorOptions } from './doctor/doctor.js';
export { ROLES } from './doctor/rights.js';
export { updateOptions } from './request-control.js';
export { runningOptions } from './running.js';
