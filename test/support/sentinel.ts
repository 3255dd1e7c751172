export { startWatched, type Watched } from '../../tools/chaos/dist/sentinel/watched.js';
