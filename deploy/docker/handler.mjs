// The handler of the workers in compose.yaml: put yours here. It may import what the image has (piecework, pino, …);
// for other packages, make an image FROM this one that adds your node_modules to /app.

/** @returns how many characters the payload has as JSON */
export default async function handler(payload, { log, index }) {
  log.debug({ index }, 'measured');
  return JSON.stringify(payload).length;
}
