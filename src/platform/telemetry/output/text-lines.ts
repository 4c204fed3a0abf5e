import { styleText } from 'node:util';
import type { DestinationStream } from 'pino';
import { LogDestination } from './log-destination.js';

/** The color of each level in a terminal. */
const COLORS = {
  trace: 'gray',
  debug: 'blue',
  info: 'green',
  warn: 'yellow',
  error: 'red',
  fatal: 'bgRed',
} as const;

/** A line of the log as pino writes it. */
interface LogLine {
  readonly level: keyof typeof COLORS;
  readonly time: string;
  readonly msg?: string;
  readonly context?: string;
  readonly err?: DescribedError | string;
  readonly [field: string]: unknown;
}

/** The fields that are not repeated after the message, because the line shows them already. */
const REPEATED = new Set(['level', 'time', 'msg', 'context', 'err', 'method', 'route', 'status']);

/**
 * Makes a stream that converts the JSON of pino to lines for people. It writes each line at once
 * and in this process, so that a crash loses none. It is our own code, because `pino-pretty` is a
 * tool of development with eleven dependencies.
 */
export function textLines(fd: 1 | 2, isColored: boolean): DestinationStream {
  const out = new LogDestination(fd, true);
  return { write: (json) => out.write(textOf(JSON.parse(json), isColored)) };
}

/**
 * Formats a line: the local time, the level, the message and the other fields. An error follows
 * with its stack and causes.
 */
export function textOf(line: LogLine, isColored: boolean): string {
  const paint = (color: Parameters<typeof styleText>[0], text: string) =>
    isColored ? styleText(color, text, { validateStream: false }) : text;
  const { level, time, msg = '', context, err } = line;
  const message = context === undefined ? msg : `${context}: ${msg}`;
  const others = Object.entries(line).filter(([name]) => !REPEATED.has(name));
  const words = [
    `[${localTime(time)}]`,
    `${paint(COLORS[level], level.toUpperCase())}:`,
    paint('cyan', message),
    ...(others.length === 0 ? [] : [paint('gray', JSON.stringify(Object.fromEntries(others)))]),
  ];
  return `${words.join(' ')}\n${err === undefined ? '' : errorText(err)}`;
}

/** Returns the time of day in the local time zone, with milliseconds. */
function localTime(time: string): string {
  const at = new Date(time);
  const seconds = [at.getHours(), at.getMinutes(), at.getSeconds()].map(twoDigits).join(':');
  return `${seconds}.${String(at.getMilliseconds()).padStart(3, '0')}`;
}

function twoDigits(n: number): string {
  return String(n).padStart(2, '0');
}

/** An error as `describeError` describes it. */
interface DescribedError {
  readonly type: string;
  readonly message: string;
  readonly code?: string;
  readonly stack: string;
  readonly cause?: DescribedError | string;
}

/** Formats an error: its type, message and code, then its stack and causes. */
function errorText(error: DescribedError | string, before = ''): string {
  if (typeof error === 'string') return `    ${before}${error}\n`;
  const { type, message, code, stack, cause } = error;
  const head = `    ${before}${type}: ${message}`;
  const frames = stack === '' ? [] : stack.split('\n');
  const lines = [
    code === undefined ? head : `${head} (${code})`,
    ...frames.map((frame) => `    ${frame}`),
  ];
  return `${lines.join('\n')}\n${cause === undefined ? '' : errorText(cause, 'caused by ')}`;
}
