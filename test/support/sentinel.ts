export { startWatched, type Watched } from '../../tools/chaos/dist/attacked/sentinels.js';
