import { isSingleLine, withoutControls } from '#platform/text/single-line.js';

/** The greatest depth of an object in a log line. A deeper object is replaced by `…`. */
const DEEPEST = 6;

/**
 * Cleans the arguments of a log call. Line breaks, control characters and changes of text direction
 * are removed from messages, keys and values, so that a client cannot forge a line. Errors are
 * cleaned later, when they are converted to text.
 *
 * @param args the arguments of a pino call: an object or an error first, or the message
 */
export function cleanArguments(args: readonly unknown[]): unknown[] {
  const [first] = args;
  if (first instanceof Error && args.length === 1) {
    // Without this message, pino would take the message of the error, without cleaning it.
    return [{ err: first }, withoutControls(first.message)];
  }
  return args.map((argument) => (isClean(argument, DEEPEST) ? argument : clean(argument, DEEPEST)));
}

/**
 * Returns true if a value needs no cleaning, so that it need not be copied. Most lines need none.
 */
function isClean(value: unknown, depth: number): boolean {
  if (typeof value === 'string') return isSingleLine(value);
  if (typeof value !== 'object' || value === null || value instanceof Error) return true;
  if (depth === 0) return false;
  for (const key in value) {
    if (!isSingleLine(key) || !isClean((value as Record<string, unknown>)[key], depth - 1)) {
      return false;
    }
  }
  return true;
}

function clean(value: unknown, depth: number): unknown {
  if (typeof value === 'string') return withoutControls(value);
  if (typeof value !== 'object' || value === null || value instanceof Error) return value;
  if (depth === 0) return '…';
  if (Array.isArray(value)) return value.map((item) => clean(item, depth - 1));
  const entries = Object.entries(value);
  return Object.fromEntries(
    entries.map(([key, item]) => [withoutControls(key), clean(item, depth - 1)]),
  );
}
