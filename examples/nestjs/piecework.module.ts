import {
  type DynamicModule,
  Inject,
  Injectable,
  Logger,
  Module,
  type OnApplicationBootstrap,
  type OnApplicationShutdown,
  type OnModuleDestroy,
} from '@nestjs/common';
import { DiscoveryModule, DiscoveryService, MetadataScanner } from '@nestjs/core';
import {
  type HandlerContext,
  Piecework,
  type PieceworkOptions,
  type TaskHandler,
  Worker,
  type WorkerOptions,
} from 'piecework';
import { taskOf } from './task.decorator.js';

export interface PieceworkModuleOptions extends PieceworkOptions {
  /**
   * Options of the worker of this process, or false: this process only submits. A worker is started if a provider has
   * a method with `@Task`. @default {}
   */
  readonly worker?:
    | false
    | Omit<WorkerOptions, 'redis' | 'queue' | 'shards' | 'handler' | 'handlers'>;
  /** How long running handlers may take when the application closes, in ms. @default 30000 */
  readonly drainMs?: number;
}

const OPTIONS = Symbol('PieceworkModuleOptions');

/** Starts a worker for the methods with `@Task` of all providers, and ends it with the application. */
@Injectable()
export class TaskWorker implements OnApplicationBootstrap, OnModuleDestroy, OnApplicationShutdown {
  readonly #logger = new Logger(TaskWorker.name);
  readonly #options: PieceworkModuleOptions;
  readonly #discovery: DiscoveryService;
  readonly #scanner: MetadataScanner;
  readonly #piecework: Piecework;
  #worker: Worker | undefined;

  constructor(
    @Inject(OPTIONS) options: PieceworkModuleOptions,
    @Inject(DiscoveryService) discovery: DiscoveryService,
    @Inject(MetadataScanner) scanner: MetadataScanner,
    @Inject(Piecework) piecework: Piecework,
  ) {
    this.#options = options;
    this.#discovery = discovery;
    this.#scanner = scanner;
    this.#piecework = piecework;
  }

  /** All providers exist, but no route is served yet. @throws ConnectionError, ServerError: the application ends */
  async onApplicationBootstrap(): Promise<void> {
    const { redis, queue, shards, worker } = this.#options;
    const handlers = this.#handlers();
    if (worker === false || handlers.length === 0) return;
    this.#worker = new Worker({ ...worker, redis, queue, shards, handlers });
    await this.#worker.start();
    this.#logger.log(`serves ${handlers.map(({ task }) => task).join(', ')}`);
  }

  /** The first hook of a shutdown: the providers that handlers use still work. */
  async onModuleDestroy(): Promise<void> {
    await this.#worker?.close({ timeoutMs: this.#options.drainMs ?? 30_000 });
  }

  /** The last hook: until here, others may have submitted. */
  async onApplicationShutdown(): Promise<void> {
    await this.#piecework.close();
  }

  #handlers(): TaskHandler[] {
    const found = new Map<string, TaskHandler>();
    for (const { instance } of this.#discovery.getProviders()) {
      if (typeof instance !== 'object' || instance === null) continue;
      for (const name of this.#scanner.getAllMethodNames(Object.getPrototypeOf(instance))) {
        const method: unknown = instance[name];
        const task = typeof method === 'function' ? taskOf(method) : undefined;
        if (!task) continue;
        if (found.has(task.name)) throw new Error(`two methods have @Task(${task.name})`);
        const run = (payload: unknown, context: HandlerContext) => instance[name](payload, context);
        found.set(task.name, task.handler(run));
      }
    }
    return [...found.values()];
  }
}

/**
 * ```ts
 * @Module({ imports: [PieceworkModule.forRoot({ redis: 'redis://localhost:6379' })], providers: [Words] })
 * export class AppModule {}
 * ```
 * Any provider can inject `Piecework` to submit. Call `app.enableShutdownHooks()`: without it, SIGTERM ends the process
 * at once, and other workers take its work over when its leases end.
 */
@Module({})
// biome-ignore lint/complexity/noStaticOnlyClass: a module of Nest is a class.
export class PieceworkModule {
  /** @throws InvalidOptionError when Nest makes the providers */
  static forRoot(options: PieceworkModuleOptions): DynamicModule {
    const { worker: _, drainMs: __, ...own } = options;
    return {
      module: PieceworkModule,
      global: true,
      imports: [DiscoveryModule],
      providers: [
        { provide: OPTIONS, useValue: options },
        { provide: Piecework, useFactory: () => new Piecework(own) },
        TaskWorker,
      ],
      exports: [Piecework],
    };
  }
}
