/** Deals the items to so many groups in turn. */
export function deal<Item>(items: readonly Item[], groups: number): Item[][] {
  return Array.from({ length: groups }, (_, group) => items.filter((_, i) => i % groups === group));
}
