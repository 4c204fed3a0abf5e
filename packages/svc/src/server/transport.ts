import { now, sleep } from '../program/clock.js';
import { CliFailure, STATUS } from '../program/failure.js';
import { isTimeout, networkReason } from '../program/system-errors.js';
import { localTime } from '../terminal/table.js';
import type { Terminal } from '../terminal/terminal.js';

/** A request without the headers for the token and the proof, which are added later. */
export interface PlainRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  /** True if the caller reads the body of a successful answer in parts. */
  readonly isStreamed?: boolean;
}

/** An answer of the server with its whole body. */
export interface PlainAnswer {
  readonly status: number;
  readonly headers: Headers;
  /** The body; empty if it is in `parts`. */
  readonly text: string;
  /** The parts of the body, if the request asked for them and the server accepted the request. */
  readonly parts?: AsyncIterable<Uint8Array>;
}

/** The longest wait for an answer in milliseconds, if nothing else is said. */
export const TIMEOUT = 30_000;
/** The largest number of times that a request waits after a 429 before the command gives up. */
const LONGEST_QUEUE = 10;

/**
 * Sends a request. After an answer 429 it waits exactly as long as `retry-after` states, and sends
 * the request again.
 *
 * @param request builds the request for each attempt, because a proof may be used only once
 * @param timeout the longest wait for one answer in milliseconds
 * @throws Unreachable if the server cannot be reached
 */
export async function send(
  request: () => Promise<PlainRequest>,
  terminal: Terminal,
  timeout = TIMEOUT,
): Promise<PlainAnswer> {
  for (let attempt = 1; ; attempt += 1) {
    const answer = await sendOnce(await request(), timeout);
    const seconds = Number(answer.headers.get('retry-after') ?? Number.NaN);
    if (answer.status !== 429 || !Number.isFinite(seconds) || attempt > LONGEST_QUEUE) {
      return answer;
    }
    terminal.progress(`The server limits requests. svc waits ${seconds} seconds, as it says.`);
    await sleep(seconds * 1000);
  }
}

/**
 * Fetches a public document without a token. It does not wait after a 429.
 *
 * @param timeout the longest wait in milliseconds
 */
export function fetchPlain(url: string, timeout = TIMEOUT): Promise<PlainAnswer> {
  return sendOnce({ method: 'GET', url, headers: { accept: 'application/json' } }, timeout);
}

/**
 * Sends a form without a proof. It does not wait after a 429.
 *
 * @param timeout the longest wait in milliseconds
 * @throws Unreachable if the server cannot be reached
 */
export function sendForm(
  url: string,
  fields: Readonly<Record<string, string>>,
  timeout: number,
): Promise<PlainAnswer> {
  const headers = {
    accept: 'application/json',
    'content-type': 'application/x-www-form-urlencoded',
  };
  const body = new URLSearchParams(fields).toString();
  return sendOnce({ method: 'POST', url, headers, body }, timeout);
}

async function sendOnce(
  { method, url, headers, body, isStreamed }: PlainRequest,
  timeout = TIMEOUT,
): Promise<PlainAnswer> {
  try {
    const response = await fetch(url, {
      method,
      headers,
      redirect: 'manual',
      signal: AbortSignal.timeout(timeout),
      ...(body === undefined ? {} : { body }),
    });
    const { status, headers: answered } = response;
    if (isStreamed && response.ok && response.body) {
      return { status, headers: answered, text: '', parts: response.body };
    }
    const text = isStreamed ? await firstText(response) : await response.text();
    return { status, headers: answered, text };
  } catch (error) {
    throw new Unreachable(new URL(url), error);
  }
}

/** The largest text that is read of an answer that is not the wanted file, in bytes. */
const MOST_TEXT = 64 * 1024;

/** Reads the text of an answer, at most {@link MOST_TEXT}, and leaves the rest. */
async function firstText({ body }: Response): Promise<string> {
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const part of body ?? []) {
    parts.push(part as Uint8Array);
    size += (part as Uint8Array).length;
    if (size > MOST_TEXT) break; // which ends the connection
  }
  return Buffer.concat(parts).toString('utf8', 0, MOST_TEXT);
}

/** The failure for a server that cannot be reached: the reason in one line, and the next step. */
export class Unreachable extends CliFailure {
  /** True if the server gave no answer in time. */
  readonly isTimeout: boolean;

  constructor({ host, hostname }: URL, error: unknown) {
    const [reason, whatToDo] = networkReason(error, hostname, localTime(new Date(now())));
    super(`${host} cannot be reached: ${reason}.`, whatToDo, STATUS.failed, { cause: error });
    this.isTimeout = isTimeout(error);
  }
}
