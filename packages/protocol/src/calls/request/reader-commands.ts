import { TIMES } from '../../contract/defaults.js';
import { type Reply, run } from '../../scripts/run-script.js';
import { RequestReads } from './request-reads.js';

/** What a reader of results does to a request, besides reading. Hash slot of `{<id>}`. */
export class ReaderCommands extends RequestReads {
  /** Says that somebody follows the results: for a few seconds, no outcome waits to be settled together with others. */
  follow(generation: number): Promise<Reply<'follow'>> {
    const args = { generation, forMs: TIMES.followMs };
    return run(this.connection.client, 'follow', this.keys, args);
  }
}
