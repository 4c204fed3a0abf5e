import { ExportResultCode, type ExportResult } from '@opentelemetry/core';
import type { ReadableSpan, SpanExporter } from '@opentelemetry/sdk-trace';
import type { Logger } from 'pino';
import { cleanSpan } from './clean-span.js';

/**
 * Exports spans (the steps of a trace) without secrets, and logs if the collector cannot be
 * reached.
 */
export class CleanSpanExporter implements SpanExporter {
  #logger: Logger | undefined;
  #isDelivering = true;

  constructor(private readonly exporter: SpanExporter) {}

  /** Sets the logger for the lines about the delivery. */
  reportTo(logger: Logger): void {
    this.#logger = logger;
  }

  /**
   * Passes the spans without their secrets to the exporter, and logs if the result differs from
   * that of the last export.
   */
  export(spans: ReadableSpan[], done: (result: ExportResult) => void): void {
    this.exporter.export(spans.map(cleanSpan), (result) => {
      this.#report(result);
      done(result);
    });
  }

  async forceFlush(): Promise<void> {
    await this.exporter.forceFlush?.();
  }

  shutdown(): Promise<void> {
    return this.exporter.shutdown();
  }

  /** Logs one line if the delivery of spans begins to fail, and one when it works again. */
  #report({ code, error }: ExportResult): void {
    const isDelivering = code === ExportResultCode.SUCCESS;
    if (isDelivering === this.#isDelivering) return;
    this.#isDelivering = isDelivering;
    if (isDelivering) this.#logger?.info({ context: 'tracing' }, 'spans are delivered again');
    else this.#logger?.warn({ context: 'tracing', err: error }, 'spans cannot be delivered');
  }
}
