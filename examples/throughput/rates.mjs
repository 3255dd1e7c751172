const number = (n) => Math.round(n).toLocaleString('en-US');

/**
 * Prints each second how many were done in it and in total; the function that it returns ends that
 * and prints the sum. The rate of the sum counts from the first to the last look with any progress.
 */
export function printRates(verb, total) {
  let before = { count: 0, atMs: performance.now() };
  let firstMs;
  let lastMs;
  const look = () => {
    const now = { count: total(), atMs: performance.now() };
    if (now.count > before.count) {
      firstMs ??= before.atMs;
      lastMs = now.atMs;
    }
    const perSecond = (1_000 * (now.count - before.count)) / (now.atMs - before.atMs);
    before = now;
    return perSecond;
  };
  const timer = setInterval(() => {
    const perSecond = look();
    console.log(
      `${verb} ${number(perSecond).padStart(9)} /s ${number(total()).padStart(13)} total`,
    );
  }, 1_000);
  return () => {
    clearInterval(timer);
    look();
    const seconds = firstMs === undefined ? 0 : (lastMs - firstMs) / 1_000;
    const rate = seconds > 0 ? `, ${number(total() / seconds)} /s` : '';
    console.log(`${verb} ${number(total())} in ${seconds.toFixed(1)} s${rate}`);
  };
}
