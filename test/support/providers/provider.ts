/** A server that a test may kill, freeze and fill: nobody else uses it. */
export interface TestServer {
  readonly url: string;
  /** Ends the server and waits for that. May be called twice, and after it was killed. */
  close(): Promise<void>;
  /** Sends the server a signal, such as SIGKILL, SIGSTOP or SIGCONT. */
  kill(signal: NodeJS.Signals): Promise<void>;
}

/** Where servers come from. */
export interface RedisProvider {
  /** Starts an empty server. `settings`: further `--name value` pairs of its configuration. */
  start(settings?: readonly string[]): Promise<TestServer>;
}
