/** What came next: of the first source, or of the second. */
interface Next<First, Second> {
  readonly first?: First;
  readonly second?: Second;
}

/**
 * What two sources yield, as it comes; ends with the first. Of each source one item is asked for ahead. `stop` ends what
 * they wait for when the consumer leaves, because a generator cannot be left while it waits.
 */
export async function* merged<First, Second>(
  first: AsyncGenerator<First>,
  second: AsyncGenerator<Second> | undefined,
  stop: () => void,
): AsyncGenerator<Next<First, Second>> {
  const ofFirst = () =>
    handled(first.next().then((result) => ({ isFirst: true as const, result })));
  const ofSecond = () =>
    second && handled(second.next().then((result) => ({ isFirst: false as const, result })));
  let one = ofFirst();
  let other = ofSecond();
  try {
    for (;;) {
      // Each pending promise keeps a reaction for every item of the other source: a report is due soon, and has few.
      const next = await (other ? Promise.race([one, other]) : one);
      if (next.isFirst) {
        if (next.result.done) return;
        yield { first: next.result.value };
        one = ofFirst();
      } else {
        if (!next.result.done) yield { second: next.result.value };
        other = next.result.done ? undefined : ofSecond();
      }
    }
  } finally {
    stop();
    await Promise.allSettled([first.return(undefined), second?.return(undefined)]);
  }
}

/** The same promise: it may reject while the consumer is busy, and is awaited later. */
function handled<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}
