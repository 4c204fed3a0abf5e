import { Counter, Registry } from 'prom-client';
import { describe, expect, it } from 'vitest';
import {
  sumOfMetrics,
  type ExportedMetrics,
} from '../../../src/platform/telemetry/service-metrics.service.js';
import { MetricsOfWorkers } from '../../../src/workers/metrics-of-workers.js';

/** Returns the metrics of a worker that has counted this many requests. */
function exported(requests: number): Promise<ExportedMetrics> {
  const registry = new Registry();
  const counter = new Counter({ name: 'requests', help: 'Requests', registers: [registry] });
  counter.inc(requests);
  return registry.getMetricsAsJSON();
}

async function totalOf(metrics: readonly ExportedMetrics[]): Promise<number | undefined> {
  const [sum] = await sumOfMetrics(metrics);
  return sum?.values[0]?.value;
}

describe('the metrics of several workers', () => {
  it('are the sum, in which ended workers and workers without an answer count', async () => {
    const all = new MetricsOfWorkers();
    const [ten, twenty, five] = await Promise.all([exported(10), exported(20), exported(5)]);
    const answering = (answers: Readonly<Record<number, ExportedMetrics>>, silent: number[] = []) =>
      all.collect((id) => {
        const workers = Object.keys(answers).map(Number);
        setImmediate(() => {
          for (const worker of workers) all.answer(worker, id, answers[worker] ?? []);
        });
        return [...workers, ...silent];
      });
    expect(await totalOf(await answering({ 1: ten, 2: twenty }))).toBe(30);

    all.retire(1);
    expect(await totalOf(await answering({ 3: five }))).toBe(35);

    // Worker 2 ends while it is asked for its metrics.
    const collected = answering({ 3: five }, [2]);
    setImmediate(() => all.retire(2));
    expect(await totalOf(await collected)).toBe(35);

    // The sum over the ended workers is added only once.
    expect(await totalOf(await answering({ 3: five }))).toBe(35);
  });

  it('asks once at a time, so that no answer belongs to another question', async () => {
    const all = new MetricsOfWorkers();
    const three = await exported(3);
    let open = 0;
    let most = 0;
    const ask = (id: number) => {
      open += 1;
      most = Math.max(most, open);
      setImmediate(() => {
        open -= 1;
        all.answer(1, id, three);
      });
      return [1];
    };
    const [one, other] = await Promise.all([all.collect(ask), all.collect(ask)]);
    expect([await totalOf(one), await totalOf(other), most]).toEqual([3, 3, 1]);
  });
});
