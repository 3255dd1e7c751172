import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { AppModule } from './app.module.js';

// A worker without HTTP. For a server, `NestFactory.create` in its place, and `await app.listen(3000)`.
const app = await NestFactory.createApplicationContext(
  AppModule.with({ redis: process.env['REDIS_URL'] ?? 'redis://localhost:6379' }),
);
// SIGTERM closes the application: the worker takes no more, and running handlers may end.
app.enableShutdownHooks();
