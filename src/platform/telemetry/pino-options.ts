import { isatty } from 'node:tty';
import pino, { type DestinationStream, type Logger, type LoggerOptions } from 'pino';
import pretty from 'pino-pretty';
import type { Config } from '#platform/config/config.js';
import { parseLogFilter } from './log-filter.js';

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
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
    serializers: { err: describeError },
    hooks: {
      logMethod(args, method, level) {
        const [first] = args as unknown[];
        const context = (first as { context?: unknown } | undefined)?.context;
        const target = typeof context === 'string' ? context : '';
        if (filter.allows(level, target)) method.apply(this, args);
      },
    },
  };
  if (typeof destination === 'object') return pino(options, destination);
  return pino(
    options,
    log.format === 'json' ? pino.destination(destination) : textStream(destination),
  );
}

/**
 * What is logged of an error: nothing but what says where it comes from. Libraries hang the rest of the world on theirs,
 * such as the parameters of a failed query.
 */
export function describeError(error: unknown): unknown {
  if (!(error instanceof Error)) return typeof error;
  const code = 'code' in error ? String(error.code) : undefined;
  const { name, message, stack, cause } = error;
  return { type: name, message, code, stack, ...(cause ? { cause: describeError(cause) } : {}) };
}

/** Lines for people: written in this process, at once, so that a crash loses none. */
function textStream(destination: 1 | 2) {
  return pretty({
    destination,
    colorize: isatty(destination),
    singleLine: true,
    sync: true,
    ignore: 'context',
    messageFormat: '{if context}{context}: {end}{msg}',
  });
}

/** What nestjs-pino needs to write through the process's logger, with our reading of errors instead of its own. */
export function nestPinoParams(logger: Logger) {
  return { pinoHttp: { logger, serializers: { err: describeError }, wrapSerializers: false } };
}
