import { metrics, type MetricOptions, type ObservableGauge } from '@opentelemetry/api';

/**
 * The present values of gauges, which are metrics that go up and down, for one combination of
 * attributes.
 */
export interface ObservedValues<Name extends string> {
  readonly attributes: Readonly<Record<string, string>>;
  readonly values: Readonly<Record<Name, number>>;
}

/**
 * Exports gauges to the OTLP collector until the process ends. Without a collector it does nothing.
 * `/metrics` does not show them.
 *
 * @param described the names of the gauges, each with its description and unit
 * @param read returns the present values, and is called before each export
 */
export function observeGauges<const Name extends string>(
  described: Readonly<Record<Name, Pick<MetricOptions, 'description' | 'unit'>>>,
  read: () => readonly ObservedValues<Name>[],
): void {
  const meter = metrics.getMeter('svc-server');
  const gauges = (Object.entries(described) as [Name, MetricOptions][]).map(
    ([name, options]): [Name, ObservableGauge] => [
      name,
      meter.createObservableGauge(name, options),
    ],
  );
  meter.addBatchObservableCallback(
    (result) => {
      for (const { attributes, values } of read()) {
        for (const [name, gauge] of gauges) result.observe(gauge, values[name], attributes);
      }
    },
    gauges.map(([, gauge]) => gauge),
  );
}
