/** Users of an object of that class. They have no shards; the commands of their `condition` are not known here. */
export const OTHER_QUEUES = ['retry-queue', 'scheduler', 'id-queue'] as const;
/** What a process does in a queue, which decides the rights that its ACL user needs. */
export type Role =
  | ('producer' | 'worker' | 'notifier' | 'admin')
  | ('retry-queue' | 'scheduler' | 'id-queue');
export const ROLES: readonly Role[] = [
  ...(['producer', 'worker', 'notifier', 'admin'] as const),
  ...OTHER_QUEUES,
];
