export { split } from '@piecework/producer/items';
