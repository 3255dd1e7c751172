import type { RowCounts } from './views.js';

/** How many sub-requests are settled. */
export const doneOf = ({ succeeded, failed, cancelled }: RowCounts) =>
  succeeded + failed + cancelled;
