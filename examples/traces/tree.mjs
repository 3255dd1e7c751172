// Prints spans as a tree: below a submission what is linked to it, by the time at which it began.

/** @param spans as telemetry.mjs makes them · @param processes names of processes, by pid */
export function tree(spans, processes) {
  const sorted = spans.toSorted((a, b) => a.startedAt - b.startedAt);
  const below = ({ id }) =>
    sorted.filter(({ parent, links }) => parent === id || links.includes(id));
  const isTop = ({ parent, links }) =>
    !sorted.some(({ id }) => id === parent || links.includes(id));
  const lines = [];
  const add = (span, first, rest) => {
    lines.push(`${first}${line(span, processes)}`);
    const children = below(span);
    for (const [i, child] of children.entries()) {
      const isLast = i === children.length - 1;
      add(child, `${rest}${isLast ? '└─ ' : '├─ '}`, `${rest}${isLast ? '   ' : '│  '}`);
    }
  };
  for (const span of sorted.filter(isTop)) add(span, '', '');
  return lines.join('\n');
}

function line(span, processes) {
  const operation = span['messaging.operation.name'];
  const words = {
    submit: () => `${span['messaging.batch.message_count']} sub-requests`,
    process: () =>
      `index ${span['piecework.index']}, attempt ${span['piecework.attempt']}: ${span['piecework.outcome']}`,
    complete: () => span['piecework.request.status'] ?? '',
  };
  const about = words[operation]?.() ?? span.name;
  const error = span.error === undefined ? '' : ` (${span['error.type']}: ${span.error})`;
  return `${operation ?? ''} ${about}${error} · ${processes.get(span.pid)}`;
}
