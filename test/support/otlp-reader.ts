import { spawnSync } from 'node:child_process';

/**
 * The path of the program of `.ci/otlp`, which `.ci/run` compiles. It reads requests by the
 * packages of the OpenTelemetry Collector.
 */
export const OTLP_READER = '/opt/svc-test/otlp/reader';

/** A log record as the packages of the OpenTelemetry Collector read it. */
export interface ReadRecord {
  readonly resource: Readonly<Record<string, unknown>>;
  readonly scope: string;
  readonly time: string;
  readonly event: string;
  readonly severity: string;
  readonly number: number;
  readonly body: string;
  readonly attributes: Readonly<Record<string, unknown>>;
}

/**
 * Reads the log records in the body of an OTLP request.
 *
 * @throws Error if the collector would refuse the body
 */
export function readOtlp(body: Buffer): ReadRecord[] {
  const read = spawnSync(OTLP_READER, { input: body });
  if (read.status !== 0) throw new Error(String(read.stderr));
  return JSON.parse(String(read.stdout)) as ReadRecord[];
}
