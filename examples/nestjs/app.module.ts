import { type DynamicModule, Inject, Injectable, Module } from '@nestjs/common';
import { defineTask, type HandlerContext, Piecework, type SubmittedRequest } from 'piecework';
import { PieceworkModule, type PieceworkModuleOptions } from './piecework.module.js';
import { Task } from './task.decorator.js';

export const countWords = defineTask<string, number>('count-words');

/** The work. Handlers use what is injected, as every other method does. */
@Injectable()
export class Words {
  @Task(countWords)
  count(text: string, { signal }: HandlerContext): number {
    signal.throwIfAborted();
    return text.split(/\s+/).filter(Boolean).length;
  }
}

/** What a controller would call. */
@Injectable()
export class Texts {
  readonly #piecework: Piecework;

  constructor(@Inject(Piecework) piecework: Piecework) {
    this.#piecework = piecework;
  }

  submit(texts: readonly string[]): Promise<SubmittedRequest<number>> {
    return this.#piecework.submit(texts, { task: countWords });
  }
}

@Module({})
// biome-ignore lint/complexity/noStaticOnlyClass: a module of Nest is a class.
export class AppModule {
  static with(options: PieceworkModuleOptions): DynamicModule {
    return {
      module: AppModule,
      imports: [PieceworkModule.forRoot(options)],
      providers: [Words, Texts],
    };
  }
}
