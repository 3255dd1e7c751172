import type { Socket } from 'node:net';
import type { RedisOptions } from 'ioredis';
import { ownProcessRuns } from '../common/process-runs.js';
import { ConnectionError } from '../contract/errors.js';
import { PlainConnector } from './plain-connector.js';

/*
 * A server that this program, or its parent, started has a URL that contains its process id:
 * `redis://default:<password>@127.0.0.1:<port>?serverPid=<pid>`. A client of it connects only while that process runs: later,
 * another user of the machine may listen at its port, would receive the password, and could hand out work.
 */

type Options = RedisOptions & { readonly serverPid?: string };

export class OwnServerConnector extends PlainConnector {
  readonly #serverPid: string | undefined;

  constructor(options: unknown) {
    super(options);
    this.#serverPid = (options as Options).serverPid;
  }

  /** Rejects when the server has ended; then the client does not connect again. */
  override async connect(): Promise<Socket> {
    this.connecting = true;
    if (!ownProcessRuns(Number(this.#serverPid)))
      throw new ConnectionError('the Redis that was started here has ended');
    return super.connect();
  }
}

/** How a client of this URL, or with these options of one, connects. */
export function connectorOf(where: string | object): Pick<RedisOptions, 'Connector'> {
  const isOwn =
    typeof where === 'string'
      ? new URLSearchParams(where.split('?')[1]).has('serverPid')
      : 'serverPid' in where;
  // cure: a client of an own server does not connect to what listens there after its end
  if (isOwn) return { Connector: OwnServerConnector };
  return {};
}
