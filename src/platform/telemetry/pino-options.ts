import { isatty } from 'node:tty';
import { trace } from '@opentelemetry/api';
import pino, { type DestinationStream, type Logger, type LoggerOptions } from 'pino';
import pretty from 'pino-pretty';
import { systemClock } from '#platform/clock/clock.js';
import type { Config } from '#platform/config/config.js';
import { interactionIdOf } from '#platform/http/request/interaction-id.js';
import { toSingleLine } from '#platform/text/single-line.js';
import { cleanArguments } from './clean-arguments.js';
import { parseLogFilter } from '#platform/config/log-filter.js';
import { servedRequest } from './served-request.js';

/**
 * The logger of the process: filtered by target (RUST_LOG), in the format the operator chose.
 *
 * @param destination a file descriptor (standard output, unless told), or a stream that takes JSON whatever the format
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
    mixin: whereabouts,
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
    log.format === 'json' ? pino.destination(destination) : textStream(destination),
  );
}

/** Which request and which span a line was written in, as collectors look for it; nothing where there is none. */
function whereabouts(): object {
  const request = servedRequest.getStore();
  const span = trace.getActiveSpan()?.spanContext();
  return {
    ...(request ? { interactionId: interactionIdOf(request) } : {}),
    ...(span ? { trace_id: span.traceId, span_id: span.spanId } : {}),
  };
}

let millisecond = 0;
let written = '';

/** The time of a line (RFC 3339), written once a millisecond: there are more lines than that. */
function isoTime(): string {
  const now = systemClock.milliseconds();
  if (now !== millisecond) {
    millisecond = now;
    written = `,"time":"${new Date(now).toISOString()}"`;
  }
  return written;
}

/** How many errors behind an error are told. */
const CAUSES = 3;

/**
 * What is logged of an error: nothing but what says where it comes from. Libraries hang the rest of the world on theirs,
 * such as the parameters of a failed query, and quote what a client sent, which may try to forge lines.
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

/** In characters. */
const LONGEST_MESSAGE = 1000;

/** Only the frames: the lines above them repeat the message. */
function framesOf(stack: string): string {
  return stack
    .split('\n')
    .filter((line) => /^ {4}at \S/.test(line))
    .map((line) => toSingleLine(line, LONGEST_MESSAGE))
    .join('\n');
}

/** Lines for people: written in this process, at once, so that a crash loses none. */
function textStream(destination: 1 | 2) {
  return pretty({
    destination,
    colorize: isatty(destination),
    singleLine: true,
    sync: true,
    // The message says them already.
    ignore: 'context,method,route,status',
    messageFormat: '{if context}{context}: {end}{msg}',
  });
}

/** What nestjs-pino needs to write through the process's logger, with our reading of errors instead of its own. */
export function nestPinoParams(logger: Logger) {
  return {
    pinoHttp: {
      logger,
      serializers: { err: (error: unknown) => describeError(error) },
      wrapSerializers: false,
    },
  };
}
