export { OpenTelemetry, type OpenTelemetryOptions } from './open-telemetry.js';
