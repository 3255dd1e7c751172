/*
 * What a handler may throw, or answer, and that throws itself when it is read.
 */

const fault = () => {
  throw new Error('hands off');
};

export function revoked(target: object = {}): object {
  const { proxy, revoke } = Proxy.revocable(target, {});
  revoke();
  return proxy;
}

/** By name: a property called so makes an object look like a promise. */
const withThen = <T extends object>(object: T, then: () => unknown): T =>
  Object.defineProperty(object, 'then', { value: then });

function errorWith(name: string, get: () => unknown): Error {
  return Object.defineProperty(new Error('as usual'), name, { get });
}

function cycle(): Error {
  const error = new Error('outside');
  error.cause = new Error('inside', { cause: error });
  return error;
}

/** To be thrown: each by what it is, made anew each time. */
export const hostileThrows: Readonly<Record<string, () => unknown>> = {
  'an error whose name cannot be read': () => errorWith('name', fault),
  'an error whose name is none': () =>
    Object.assign(new Error('as usual'), { name: { toString: fault } }),
  'an error whose message cannot be read': () => errorWith('message', fault),
  'an error whose stack cannot be read': () => errorWith('stack', fault),
  'an error whose cause cannot be read': () => errorWith('cause', fault),
  'an error whose constructor cannot be read': () => errorWith('constructor', fault),
  'an error that is its own cause': cycle,
  'a frozen error': () => Object.freeze(new Error('as usual')),
  'an error with a huge message': () => new Error('x'.repeat(20_000_000)),
  'a revoked proxy': () => revoked(),
  'a revoked proxy of an error': () => revoked(new Error('as usual')),
  'a revoked proxy of a function': () => revoked(fault),
  'a proxy that refuses everything': () => new Proxy({}, new Proxy({}, { get: fault })),
  'an object whose toString throws': () => ({ toString: fault }),
  'an object whose toJSON throws': () => ({ toJSON: fault }),
  'an object that is turned into no primitive': () => ({ [Symbol.toPrimitive]: fault }),
  'an object without a prototype': () => Object.create(null),
  'an object whose then throws': () => withThen({}, fault),
  undefined: () => undefined,
  null: () => null,
  'a symbol': () => Symbol('as usual'),
  'a function': () => fault,
  'a bigint': () => 1n,
};

/** To be answered by a handler: each of them is no result. */
export const hostileResults: Readonly<Record<string, () => unknown>> = {
  'a result that refuses to become JSON': () => ({ toJSON: fault }),
  'a result whose toJSON throws a revoked proxy': () => ({
    toJSON: () => {
      throw revoked();
    },
  }),
  'a result with a getter that throws null': () => ({
    get a() {
      throw null;
    },
  }),
  'a revoked proxy': () => revoked(),
  'a thenable that throws': () => withThen({}, fault),
  'a thenable whose then cannot be read': () => Object.defineProperty({}, 'then', { get: fault }),
  'a thenable that throws a revoked proxy': () =>
    withThen({}, () => {
      throw revoked();
    }),
  'a promise whose then throws': () => {
    const rejected = Promise.reject(new Error('as usual'));
    rejected.catch(() => {});
    return withThen(rejected, fault);
  },
  'a promise whose constructor cannot be read': () =>
    Object.defineProperty(Promise.resolve(1), 'constructor', { get: fault }),
  'a promise whose constructor can be read once': () => {
    let reads = 0;
    return Object.defineProperty(Promise.resolve(1), 'constructor', {
      get: () => (reads++ === 0 ? Promise : fault()),
    });
  },
  'a result that is its own part': () => {
    const result: Record<string, unknown> = {};
    result['self'] = result;
    return result;
  },
};
