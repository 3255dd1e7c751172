import pTimeout from 'p-timeout';
import { backoff, LONGEST_TIMER_MS } from '../common/waiting.js';
import { ConnectionError } from '../contract/errors.js';

/** What a server is asked to accept. */
export interface Credential {
  /** @default 'default' */
  readonly username?: string | undefined;
  /** Password or token. */
  readonly password: string;
  /** When it ends, as a `Date` or in ms since 1970, by the clock of this process. @default it does not end */
  readonly expiresAt?: Date | number | undefined;
  /** The same as a duration from now, in ms. */
  readonly expiresInMs?: number | undefined;
}

/**
 * Answers user and password for a connection that is about to be opened. It may be called at any time, and has 8 s to
 * answer. Connections that open meanwhile share the answer.
 */
export type CredentialsProvider = () => Credential | Promise<Credential>;

/** A checked answer. */
export interface KnownCredential {
  readonly username: string;
  readonly password: string;
  /** By the clock of this process, in ms since 1970. */
  readonly expiresAt?: number;
}

/** How long `credentials` may take, in ms: less than the check of a server, so that its own error is reported. */
const ANSWER_MS = 8_000;
/** How long before its end a credential is replaced, at most, in ms; of a short one a quarter of its life. */
const BEFORE_END_MS = 60_000;
/** The least time between two calls that replace a credential before its end, in ms. */
const LEAST_MS = 500;

/** One for each function, however many connections use it. */
const known = new WeakMap<CredentialsProvider, Credentials>();

/**
 * Calls the `credentials` of a user: at each connect, one call for all connections that open meanwhile, and again before
 * an answer ends. With each answer all live connections authenticate again (`onAnswer`), so that all end at the same time.
 */
export class Credentials {
  readonly #provider: CredentialsProvider;
  readonly #listeners = new Set<(credential: KnownCredential) => void>();
  readonly #backoff = backoff(LEAST_MS, 10_000);
  #asked: Promise<KnownCredential> | undefined;
  #latest: KnownCredential | undefined;
  #timer: NodeJS.Timeout | undefined;

  private constructor(provider: CredentialsProvider) {
    this.#provider = provider;
    known.set(provider, this);
  }

  static of(provider: CredentialsProvider): Credentials {
    return known.get(provider) ?? new Credentials(provider);
  }

  /** The last answer; undefined: there was none yet. */
  get latest(): KnownCredential | undefined {
    return this.#latest;
  }

  /** @throws ConnectionError when the function fails, hangs, or answers something else */
  get(): Promise<KnownCredential> {
    this.#asked ??= this.#ask().finally(() => {
      this.#asked = undefined;
    });
    return this.#asked;
  }

  /** Calls `listener` with each answer; answers how to stop that. */
  onAnswer(listener: (credential: KnownCredential) => void): () => void {
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
      if (this.#listeners.size === 0) clearTimeout(this.#timer);
    };
  }

  async #ask(): Promise<KnownCredential> {
    const message = `connect: \`credentials\` did not answer within ${ANSWER_MS / 1_000} s`;
    const answer = await pTimeout(
      (async () => this.#provider())().catch((error: unknown) => {
        throw new ConnectionError(`connect: \`credentials\` failed: ${messageOf(error)}`, error);
      }),
      { milliseconds: ANSWER_MS, message: new ConnectionError(message) },
    );
    const credential = checked(answer);
    this.#latest = credential;
    this.#backoff.reset();
    this.#renewBefore(credential.expiresAt);
    for (const listener of this.#listeners) listener(credential);
    return credential;
  }

  #renewBefore(endsAt: number | undefined): void {
    clearTimeout(this.#timer);
    if (endsAt === undefined) return;
    const leftMs = endsAt - Date.now();
    this.#renewIn(Math.max(leftMs - Math.min(BEFORE_END_MS, leftMs / 4), LEAST_MS));
  }

  #renewIn(ms: number): void {
    if (this.#listeners.size === 0) return;
    const renew = () => {
      // If it fails until the end, the server closes the connections, and their next attempts report why.
      this.get().catch(() => this.#renewIn(this.#backoff.next()));
    };
    this.#timer = setTimeout(renew, Math.min(ms, LONGEST_TIMER_MS)).unref();
  }
}

/** @throws ConnectionError when it is no credential */
function checked(answer: unknown): KnownCredential {
  const { username = 'default', password, expiresAt, expiresInMs } = (answer ?? {}) as Credential;
  const endsAt =
    expiresInMs === undefined ? expiresAt && Number(expiresAt) : Date.now() + expiresInMs;
  if (typeof username !== 'string' || typeof password !== 'string' || Number.isNaN(endsAt))
    throw new ConnectionError(
      'connect: `credentials` has to answer { username, password }, both texts, perhaps with expiresAt (ms since 1970 or a Date) or expiresInMs',
    );
  return endsAt === undefined ? { username, password } : { username, password, expiresAt: endsAt };
}

const messageOf = (error: unknown) => (error instanceof Error ? error.message : String(error));
