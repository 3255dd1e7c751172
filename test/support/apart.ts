import type { Redis } from 'ioredis';

/** What a server answers to a script whose keys are in several hash slots. */
export const crossSlot = () => new Error("CROSSSLOT Keys in request don't hash to the same slot");

/** Whether the arguments of an EVALSHA name keys of a queue and keys of requests. */
export function touchesBothSides(args: readonly unknown[]): boolean {
  const keys = args.slice(2, 2 + Number(args[1])).map(String);
  return /^\{.*\}:open$/.test(keys[0] ?? '') && keys.some((key) => key.startsWith('request:{'));
}

/** Makes a client answer as a proxy before a cluster does, so that a submission takes the separate calls. */
export function apart<Client extends Redis>(client: Client): Client {
  const send = client.sendCommand.bind(client);
  client.sendCommand = (command, stream) => {
    const isScript = command.name === 'evalsha' || command.name === 'eval';
    if (!isScript || !touchesBothSides(command.args)) return send(command, stream);
    command.reject(crossSlot());
    return command.promise;
  };
  return client;
}
