import { diag } from '@opentelemetry/api';

/**
 * Calls what may run code of the application, such as a span processor: if that throws, the error goes to the
 * diagnostic logger of OpenTelemetry, and the work that is traced continues.
 */
export function guarded<T>(call: () => T): T | undefined {
  try {
    return call();
  } catch (error) {
    diag.error('piecework: tracing failed', error);
    return undefined;
  }
}
