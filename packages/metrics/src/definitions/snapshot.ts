import type { Registry } from 'prom-client';

/** The values of a registry, as `getMetricsAsJSON` of prom-client returns them. */
export type Snapshot = Awaited<ReturnType<Registry['getMetricsAsJSON']>>;
