import { metrics, type MetricOptions, type ObservableGauge } from '@opentelemetry/api';

/** The values of gauges for one combination of attributes. */
export interface ObservedValues<Name extends string> {
  readonly attributes: Readonly<Record<string, string>>;
  readonly values: Readonly<Record<Name, number>>;
}

/**
 * Exports gauges by OTLP until the process ends; without a collector it does nothing. `/metrics`
 * does not have them.
 *
 * @param described the names of the gauges, each with its description and unit
 * @param read is called before each export
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
