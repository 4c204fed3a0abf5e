import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { now, sleep } from '../program/clock.js';
import { CliFailure, STATUS } from '../program/failure.js';
import { isTimeout, networkReason } from '../program/system-errors.js';
import { version } from '../program/version.js';
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

/** The headers of an answer, by their names in any case. */
export class AnswerHeaders {
  constructor(private readonly fields: IncomingHttpHeaders) {}

  /** Returns the value of a header; null if the answer has none. */
  get(name: string): string | null {
    const value = this.fields[name.toLowerCase()];
    return (Array.isArray(value) ? value.join(', ') : value) ?? null;
  }
}

/**
 * An answer of the server. Its body is in `text`, or in `parts` if the caller reads it in parts.
 */
export interface PlainAnswer {
  readonly status: number;
  readonly headers: AnswerHeaders;
  /** The body; empty if it is in `parts`. */
  readonly text: string;
  /** The parts of the body, if the request asked for them and the server accepted the request. */
  readonly parts?: AsyncIterable<Uint8Array>;
}

/** The longest wait for an answer in milliseconds, if the caller names none. */
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

async function sendOnce(request: PlainRequest, timeout = TIMEOUT): Promise<PlainAnswer> {
  const signal = AbortSignal.timeout(timeout);
  try {
    const response = await responseTo(request, signal);
    const { statusCode: status = 0 } = response;
    const headers = new AnswerHeaders(response.headers);
    const parts = wholeBody(response, signal);
    const isOk = status >= 200 && status < 300;
    if (request.isStreamed && isOk) return { status, headers, text: '', parts };
    const text = await textOf(parts, request.isStreamed ? MOST_TEXT : Infinity);
    return { status, headers, text };
  } catch (error) {
    throw new Unreachable(new URL(request.url), signal.aborted ? signal.reason : error);
  }
}

/**
 * Sends a request by the client of node:http, because the first `fetch` of a process takes 70 ms of
 * CPU time more. It follows no redirect.
 */
async function responseTo(
  { method, url, headers, body }: PlainRequest,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  const named = { 'user-agent': `svc/${version()} (${process.platform})`, ...headers };
  const { request } = await (url.startsWith('https:') ? import('node:https') : import('node:http'));
  return new Promise((done, fail) => {
    const sent = request(url, { method, headers: named, signal });
    sent.once('response', done);
    sent.on('error', fail);
    sent.end(body);
  });
}

/**
 * Reads the body in parts.
 *
 * @throws the reason of the signal, or a system error, if the body is not whole
 */
async function* wholeBody(
  response: IncomingMessage,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  try {
    yield* response as AsyncIterable<Uint8Array>;
  } catch (error) {
    throw signal.aborted ? signal.reason : error;
  }
  // A cancelled request drops what it has received, and its body seems to end. So the signal is
  // checked here.
  signal.throwIfAborted();
  if (!response.complete) throw Object.assign(new Error('cut off'), { code: 'ECONNRESET' });
}

/**
 * The largest number of bytes of an error that are read, if the caller reads its answers in parts.
 */
const MOST_TEXT = 64 * 1024;

/**
 * Reads the text of an answer, without a byte order mark. At most `most` bytes of it are returned,
 * and the connection is closed if more bytes come.
 */
async function textOf(parts: AsyncIterable<Uint8Array>, most: number): Promise<string> {
  const read: Uint8Array[] = [];
  let size = 0;
  for await (const part of parts) {
    read.push(part);
    size += part.length;
    if (size > most) break; // leaving the loop closes the connection
  }
  const text = Buffer.concat(read).subarray(0, most).toString('utf8');
  return text.startsWith('\uFEFF') ? text.slice(1) : text;
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
