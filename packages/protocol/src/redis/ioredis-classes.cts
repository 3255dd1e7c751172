import ioredis = require('ioredis');

/*
 * The classes of ioredis that we use, as a CommonJS module. When an ES module imports a CommonJS one, Node looks for the
 * names of its exports in its text and in the files that it passes on. In ioredis these are long enough for V8 to
 * optimize that search, which takes 60 ms of CPU in each process. Here it reads this file alone, and ioredis is loaded
 * by `require`.
 */
const { AbstractConnector, Cluster, Command, Redis, SentinelConnector } = ioredis;

export = { AbstractConnector, Cluster, Command, Redis, SentinelConnector };
