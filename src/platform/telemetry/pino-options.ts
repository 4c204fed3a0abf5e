import { AsyncLocalStorage } from 'node:async_hooks';
import type { IncomingMessage } from 'node:http';
import { isatty } from 'node:tty';
import pino, { type DestinationStream, type Logger, type LoggerOptions } from 'pino';
import { systemClock } from '#platform/clock/clock.js';
import type { Config } from '#platform/config/config.js';
import { interactionIdOf } from '#platform/http/request/interaction-id.js';
import { toSingleLine } from '#platform/text/single-line.js';
import { cleanArguments } from './clean-arguments.js';
import { activeSpan } from './tracing.js';
import { parseLogFilter } from '#platform/telemetry/filter/log-filter.js';
import { LogDestination } from '#platform/telemetry/output/log-destination.js';
import { textLines } from '#platform/telemetry/output/text-lines.js';

/** The request that the current code serves; undefined outside of requests. */
export const servedRequest = new AsyncLocalStorage<IncomingMessage>();

/**
 * Makes the logger of the process, filtered by target (RUST_LOG) and in the format that the
 * operator chose.
 *
 * @param destination a file descriptor, or a stream, which always gets JSON
 */
export function createLogger(
  log: Config['log'],
  destination: DestinationStream | 1 | 2 = 1,
): Logger {
  const filter = parseLogFilter(log.filter);
  const options: LoggerOptions = {
    level: filter.level,
    base: null,
    timestamp: isoTime,
    formatters: { level: (label) => ({ level: label }) },
    serializers: { err: (error) => describeError(error) },
    mixin: currentIds,
    hooks: {
      logMethod(args, method, level) {
        const [first] = args as unknown[];
        const context = (first as { context?: unknown } | undefined)?.context;
        const target = typeof context === 'string' ? context : '';
        if (!filter.allows(level, target)) return;
        method.apply(this, cleanArguments(args) as typeof args);
      },
    },
  };
  if (typeof destination === 'object') return pino(options, destination);
  return pino(
    options,
    log.format === 'json'
      ? new LogDestination(destination, false)
      : textLines(destination, isatty(destination)),
  );
}

/**
 * Logs an error that no other code handles, and ends the process with status 1, because its state
 * is unknown after such an error. Node itself would print every property of the error, and
 * properties may be secrets.
 */
export function endAtUnhandledErrors(logger: Logger): void {
  const end = (error: unknown): void => {
    logger.fatal({ err: error, context: 'process' }, 'An unhandled error ends the process');
    process.exit(1);
  };
  process.on('uncaughtException', end);
  process.on('unhandledRejection', end);
}

/** Returns the ids of the current request and span, under the names that log collectors expect. */
function currentIds(): object {
  const request = servedRequest.getStore();
  const span = activeSpan();
  return {
    ...(request ? { interactionId: interactionIdOf(request) } : {}),
    ...(span ? { trace_id: span.traceId, span_id: span.spanId } : {}),
  };
}

let millisecond = 0;
let written = '';

/**
 * Returns the present time in RFC 3339 for a log line. It is formatted once for each millisecond,
 * because many lines have the same time.
 */
function isoTime(): string {
  const now = systemClock.milliseconds();
  if (now !== millisecond) {
    millisecond = now;
    written = `,"time":"${new Date(now).toISOString()}"`;
  }
  return written;
}

/** The largest number of causes of an error that are logged. */
const CAUSES = 3;

/**
 * Returns the parts of an error for the log: its type, message, code, stack and causes. Other
 * properties are dropped, since libraries attach secrets to errors, such as the parameters of a
 * failed query. Line breaks and control characters are removed, so that a client's text cannot
 * forge a log line.
 */
export function describeError(error: unknown, causes = CAUSES): unknown {
  if (!(error instanceof Error)) return typeof error;
  const code = 'code' in error ? toSingleLine(String(error.code), 64) : undefined;
  const { name, message, stack = '', cause } = error;
  return {
    type: name,
    message: toSingleLine(message, LONGEST_MESSAGE),
    code,
    stack: framesOf(stack),
    ...(cause && causes > 0 ? { cause: describeError(cause, causes - 1) } : {}),
  };
}

/** The largest number of characters in a logged message, and in each logged line of a stack. */
const LONGEST_MESSAGE = 1000;

/**
 * Returns the frames of a stack. The lines above them are left out, because they repeat the
 * message.
 */
function framesOf(stack: string): string {
  return stack
    .split('\n')
    .filter((line) => /^ {4}at \S/.test(line))
    .map((line) => toSingleLine(line, LONGEST_MESSAGE))
    .join('\n');
}

/**
 * Returns the options with which nestjs-pino uses the logger of the process, and describes errors
 * as {@link describeError} does.
 */
export function nestPinoParams(logger: Logger) {
  return {
    pinoHttp: {
      logger,
      serializers: { err: (error: unknown) => describeError(error) },
      wrapSerializers: false,
    },
  };
}
