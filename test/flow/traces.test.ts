/**
 * Spans of submissions, handler runs and completions, and how they belong together.
 */
import { once } from 'node:events';
import { context, propagation, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import { AlwaysOffSampler, type ReadableSpan } from '@opentelemetry/sdk-trace-base';
import {
  type HandlerContext,
  InvalidOptionError,
  Piecework,
  type PieceworkOptions,
} from 'piecework';
import { describe, expect } from 'vitest';
import { example } from '../support/examples.js';
import { type Flow, numbers, test } from '../support/flow.js';
import { startOwnRedis } from '../support/redis.js';
import { recording, registerContexts } from '../support/spans.js';
import { until } from '../support/until.js';

registerContexts();

function pieceworkOf(flow: Flow, options: Partial<PieceworkOptions> = {}): Piecework {
  const pw = new Piecework({ redis: flow.redis, queue: flow.queue, ...options });
  flow.after(() => pw.close());
  return pw;
}

/** What a span is linked to. */
const linksOf = ({ links }: ReadableSpan) => links.map(({ context: { spanId } }) => spanId);
const idOf = (span: ReadableSpan | undefined) => span?.spanContext().spanId;
const traceOf = (span: ReadableSpan | undefined) => span?.spanContext().traceId;
const policyOf = async (flow: Flow, id: string) =>
  (await flow.request(id).fields('policy'))['policy'];

describe('a traced request', () => {
  test('has a span for its submission, each run and its completion, by the conventions', async ({
    flow,
  }) => {
    const { telemetry, spans } = recording();
    await flow.worker({ handler: (n: number) => n, telemetry }).start();
    const request = await pieceworkOf(flow, { telemetry }).submit(numbers(2));
    await request.completion();
    await until(() => spans('process').length === 2);

    const [submit] = spans('submit');
    expect(submit).toMatchObject({ name: `submit ${flow.queue}`, kind: SpanKind.PRODUCER });
    expect(submit?.attributes).toEqual({
      'messaging.system': 'piecework',
      'messaging.destination.name': flow.queue,
      'messaging.operation.name': 'submit',
      'messaging.operation.type': 'send',
      'messaging.message.conversation_id': request.id,
      'messaging.batch.message_count': 2,
      'piecework.generation': expect.any(Number),
      'piecework.request.created': true,
    });
    const [run] = spans('process');
    expect(run).toMatchObject({ name: `process ${flow.queue}`, kind: SpanKind.CONSUMER });
    expect(run?.attributes).toEqual({
      'messaging.system': 'piecework',
      'messaging.destination.name': flow.queue,
      'messaging.operation.name': 'process',
      'messaging.operation.type': 'process',
      'messaging.client.id': expect.any(String),
      'messaging.message.conversation_id': request.id,
      'messaging.message.id': `${request.id}:0`,
      'piecework.index': 0,
      'piecework.attempt': 1,
      'piecework.generation': submit?.attributes['piecework.generation'],
      'piecework.outcome': 'succeeded',
    });
    const [complete] = spans('complete');
    expect(complete).toMatchObject({ name: `complete ${flow.queue}`, kind: SpanKind.CLIENT });
    expect(complete?.attributes).toMatchObject({
      'messaging.operation.name': 'complete',
      'piecework.request.status': 'succeeded',
      'piecework.request.total': 2,
    });
    for (const span of [...spans('process'), complete as ReadableSpan]) {
      expect(linksOf(span)).toEqual([idOf(submit)]);
      expect(traceOf(span)).not.toBe(traceOf(submit));
    }
  });

  test('gives its runs the baggage, and what they start is theirs', async ({ flow }) => {
    const { telemetry, tracer, spans } = recording({ runs: 'children' });
    const seen: (string | undefined)[] = [];
    const handler = async () => {
      await Promise.resolve();
      seen.push(propagation.getActiveBaggage()?.getEntry('tenant')?.value);
      tracer.startSpan('inner').end();
    };
    await flow.worker({ handler, telemetry }).start();
    const pw = pieceworkOf(flow, { telemetry });
    const baggage = propagation.createBaggage({ tenant: { value: 'a b' } });
    const span = tracer.startSpan('caller');
    const within = trace.setSpan(propagation.setBaggage(context.active(), baggage), span);
    const request = await context.with(within, () => pw.submit([1]));
    span.end();
    await request.completion();
    await until(() => spans('process').length === 1);
    expect(seen).toEqual(['a b']);
    const [caller, submit, run, inner] = ['caller', 'submit', 'process', 'inner'].map(
      (name) => spans(name)[0],
    );
    expect(submit?.parentSpanContext?.spanId).toBe(idOf(caller));
    expect(run?.parentSpanContext?.spanId).toBe(idOf(submit));
    expect(inner?.parentSpanContext?.spanId).toBe(idOf(run));
    expect(new Set([caller, submit, run, inner].map(traceOf)).size).toBe(1);
  });

  test('shows errors: of attempts that are retried or fail, of those over time, and of a completion', async ({
    flow,
  }) => {
    const { telemetry, spans } = recording();
    const handler = async (what: string, { signal }: HandlerContext) => {
      if (what === 'late') await once(signal, 'abort');
      else throw Object.assign(new TypeError(`no ${what}`), { code: 'E_NO' });
    };
    await flow.worker({ handler, telemetry }).start();
    const pw = pieceworkOf(flow, { telemetry });
    const request = await pw.submit(['a', 'late'], { attempts: 2, attemptTimeoutMs: 30 });
    await request.completion();
    await until(() => spans('process').length === 4);
    const said = spans('process')
      .map(({ attributes: a, status, events }) => [
        ...[a['piecework.index'], a['piecework.attempt'], a['piecework.outcome'], a['error.type']],
        ...[status.code, events[0]?.name],
      ])
      .sort();
    const thrown = [SpanStatusCode.ERROR, 'exception'];
    expect(said).toEqual([
      [0, 1, 'retried', 'E_NO', ...thrown],
      [0, 2, 'failed', 'E_NO', ...thrown],
      [1, 1, 'retried', 'TIMEOUT', ...thrown],
      [1, 2, 'failed', 'TIMEOUT', ...thrown],
    ]);
    const waits = pw.request(flow.id('nobody')).completion({ timeoutMs: 1 });
    await expect(waits).rejects.toThrow();
    expect(spans('complete').at(-1)).toMatchObject({ status: { code: SpanStatusCode.ERROR } });
    await expect(pw.submit([1], { id: request.id })).rejects.toThrow();
    const [refused] = spans('submit').slice(-1);
    expect(refused?.attributes['error.type']).toBe('EXISTS');
  });

  test('keeps its links across a redrive, whose runs have its generation', async ({ flow }) => {
    const { telemetry, spans } = recording();
    let fails = true;
    const handler = () => {
      if (fails) throw new Error('not yet');
    };
    await flow.worker({ handler, telemetry }).start();
    const pw = pieceworkOf(flow, { telemetry });
    const request = await pw.submit([1]);
    await request.completion();
    await flow.complete(request.id);
    fails = false;
    const { generation } = await request.redrive();
    await request.completion();
    await until(() => spans('process').length === 2);
    const [submit] = spans('submit');
    const runs = spans('process');
    expect(runs.map(linksOf)).toEqual([[idOf(submit)], [idOf(submit)]]);
    expect(runs.map(({ attributes }) => attributes['piecework.outcome'])).toEqual([
      'failed',
      'succeeded',
    ]);
    expect(runs[1]?.attributes['piecework.generation']).toBe(generation);
    expect(spans('complete').map(linksOf)).toEqual([[idOf(submit)], [idOf(submit)]]);
  });

  test('that is submitted again, in another trace, is the same request', async ({ flow }) => {
    const { telemetry, spans } = recording();
    const pw = pieceworkOf(flow, { telemetry });
    const options = { id: flow.id('twice'), attempts: 2 };
    const first = await pw.submit([1], options);
    const again = await pw.submit([1], options);
    expect([first.created, again.created]).toEqual([true, false]);
    expect(await policyOf(flow, first.id)).toContain(idOf(spans('submit')[0]));
    const other = pw.submit([1], { ...options, attempts: 3 });
    await expect(other).rejects.toMatchObject({ differs: ['attempts'] });
    await first.drop();
  });

  test('gives work back without an error, when its handler holds it', async ({ flow }) => {
    const { telemetry, spans } = recording();
    let held = false;
    const handler = (_: number, ctx: HandlerContext) => {
      if (held) return;
      held = true;
      throw ctx.holdRequest(1);
    };
    await flow.worker({ handler, telemetry }).start();
    const request = await pieceworkOf(flow, { telemetry }).submit([1]);
    await request.completion();
    await until(() => spans('process').length === 2);
    const [returned] = spans('process');
    expect(returned?.attributes['piecework.outcome']).toBe('returned');
    expect(returned?.status.code).toBe(SpanStatusCode.UNSET);
  });
});

test('the example prints the spans of three processes as a tree', {
  tags: ['own-server'],
}, async () => {
  const server = await startOwnRedis();
  const { code, stdout, stderr } = await example('traces/traces.mjs', [], server.url);
  await server.close();
  expect(code, stderr).toBe(0);
  const [submit, ...rest] = stdout.trimEnd().split('\n');
  const baggage = rest.pop();
  expect(submit).toBe('submit 3 sub-requests · caller');
  const of = (index: number) => rest.filter((line) => line.includes(`index ${index}, `));
  const without = (lines: readonly string[]) =>
    lines.map((line) => line.replace(/^[├└]─ process | · worker \d$/g, ''));
  expect(without(of(1))).toEqual([
    'index 1, attempt 1: retried (Error: not at first)',
    'index 1, attempt 2: succeeded',
  ]);
  expect(without(of(2))).toEqual([
    'index 2, attempt 1: retried (TypeError: broken)',
    'index 2, attempt 2: failed (TypeError: broken)',
    'index 2, attempt 1: succeeded',
  ]);
  expect(rest.filter((line) => line.includes('complete')).length).toBe(2);
  // Everything is linked to the submission, of whichever process it is.
  expect(rest.every((line) => /^[├└]─ .* · (caller|worker [12])$/.test(line))).toBe(true);
  expect(baggage).toBe('baggage in the handlers: acme, acme, acme');
});

describe('telemetry that is off', () => {
  test('stores nothing and traces nothing', async ({ flow }) => {
    const handler = (n: number) => n;
    const { telemetry, spans } = recording({ sampler: new AlwaysOffSampler() });
    await flow.worker({ handler, telemetry }).start();
    const plain = await pieceworkOf(flow).submit([1]);
    await plain.completion();
    expect(await policyOf(flow, plain.id)).toBe('');
    // All that are not sampled store the same, so that small submissions still share a call.
    const unsampled = await pieceworkOf(flow, { telemetry }).submit([1]);
    await unsampled.completion();
    expect(await policyOf(flow, unsampled.id)).toBe('{"trace":"off"}');
    expect(spans()).toEqual([]);
  });

  test('at the submission is off for the runs, and at the worker changes nothing', async ({
    flow,
  }) => {
    const off = recording({ sampler: new AlwaysOffSampler() });
    const on = recording();
    const worker = flow.worker({ handler: (n: number) => n, telemetry: on.telemetry });
    await worker.start();
    await (await pieceworkOf(flow, { telemetry: off.telemetry }).submit([1])).completion();
    expect(on.spans()).toEqual([]);
    // A submission without telemetry says nothing about sampling.
    await (await pieceworkOf(flow).submit([2])).completion();
    await until(() => on.spans('process').length === 1);
    expect(on.spans('process').map(linksOf)).toEqual([[]]);
    await worker.close();
    await flow.worker({ handler: (n: number) => n }).start();
    await (await pieceworkOf(flow, { telemetry: on.telemetry }).submit([3])).completion();
    expect(on.spans('complete')).toHaveLength(1);
  });
});

describe('tracing that goes wrong', () => {
  test('fails no work: a processor that throws, and baggage that is too large', async ({
    flow,
  }) => {
    const fail = () => {
      throw new Error('a broken processor');
    };
    const processor = { onStart: fail, onEnd: fail, forceFlush: fail, shutdown: fail };
    const broken = recording({ processor });
    const worker = flow.worker({ handler: (n: number) => n, telemetry: broken.telemetry });
    await worker.start();
    const request = await pieceworkOf(flow, { telemetry: broken.telemetry }).submit(numbers(3));
    expect(await request.completion()).toMatchObject({ status: 'succeeded' });
    await worker.close();

    const { telemetry, spans } = recording();
    const large = propagation.createBaggage({ a: { value: 'x'.repeat(4_080) } }).setEntry('b', {
      value: 'y'.repeat(4_080),
    });
    const within = propagation.setBaggage(context.active(), large);
    const pw = pieceworkOf(flow, { telemetry });
    const second = await context.with(within, () => pw.submit([1]));
    const policy = (await policyOf(flow, second.id)) ?? '';
    expect(policy).toContain(idOf(spans('submit')[0]));
    expect(policy).not.toContain('xxx');
    await second.drop();
  });

  test('is refused where the option is no telemetry', async ({ flow }) => {
    const telemetry = { submit: () => {} } as never;
    expect(() => pieceworkOf(flow, { telemetry })).toThrow(InvalidOptionError);
    expect(() => flow.worker({ handler: () => 1, telemetry })).toThrow(InvalidOptionError);
    expect(() => recording({ runs: 'both' as never })).toThrow(InvalidOptionError);
  });
});
