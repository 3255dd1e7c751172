import 'reflect-metadata';
import { Logger } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { PieceworkError } from 'piecework';
import { AppModule } from './app.module.js';

try {
  // A worker without HTTP. For a server, `NestFactory.create` in its place, and `await app.listen(3000)`.
  const app = await NestFactory.createApplicationContext(
    AppModule.with({ redis: process.env['REDIS_URL'] ?? 'redis://localhost:6379' }),
  );
  // SIGTERM closes the application: the worker takes no more, and running handlers may end.
  app.enableShutdownHooks();
} catch (error) {
  // Such as a Redis that is away: the message says enough.
  if (!(error instanceof PieceworkError)) throw error;
  new Logger('main').fatal(error.message);
  // What was opened before would keep the process running.
  process.exit(1);
}
