export { OpenTelemetry } from '@piecework/telemetry';
