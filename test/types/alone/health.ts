export { serveHealth } from 'piecework/health';
