import { once } from 'node:events';
import { connect } from 'node:net';
import { expect } from 'vitest';

/** A response as it was sent, before any HTTP client changes it. */
export interface RawAnswer {
  readonly status: number;
  /** The headers in their order, with their names in the case that the server sent. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  /** Returns the last header with a name, which must be in lower case. */
  readonly header: (name: string) => string | undefined;
  readonly body: string;
}

/**
 * Sends bytes to a server on this machine, and reads until the server disconnects. A test uses it
 * for requests that an HTTP client would not send. The bytes should contain `Connection: close`.
 */
export async function rawExchange(baseUrl: string, bytes: string): Promise<RawAnswer> {
  const socket = connect({ host: 'localhost', port: Number(new URL(baseUrl).port) });
  let received = '';
  socket.setEncoding('latin1').on('data', (chunk: string) => (received += chunk));
  socket.write(bytes);
  await once(socket, 'close');
  return parseAnswer(received);
}

/**
 * Returns the bytes of a request with `Connection: close`. `line` is its first line, and `headers`
 * replaces the default `Host` header.
 */
export function requestBytes(
  baseUrl: string,
  line: string,
  headers: readonly string[] = [`Host: ${new URL(baseUrl).host}`],
  body = '',
): string {
  return [`${line} HTTP/1.1`, ...headers, 'Connection: close', '', body].join('\r\n');
}

/** Parses the first response in the received bytes. */
export function parseAnswer(received: string): RawAnswer {
  const end = received.indexOf('\r\n\r\n');
  const [first = '', ...lines] = received.slice(0, end).split('\r\n');
  const headers = lines.map((line) => {
    const colon = line.indexOf(':');
    return [line.slice(0, colon), line.slice(colon + 1).trim()] as const;
  });
  const byName = new Map(headers.map(([name, value]) => [name.toLowerCase(), value]));
  return {
    status: Number(first.split(' ')[1]),
    headers,
    header: (name) => byName.get(name),
    body: received.slice(end + 4),
  };
}

/**
 * Sends the head of a request, and waits until the service has admitted the request and reads its
 * body (`100 Continue`). The returned function sends the body, and returns the response.
 */
export async function withLateBody(
  baseUrl: string,
  line: string,
  headers: Readonly<Record<string, string>>,
  body: object,
): Promise<() => Promise<RawAnswer>> {
  const text = JSON.stringify(body);
  const { host, port } = new URL(baseUrl);
  const socket = connect({ host: 'localhost', port: Number(port) });
  let received = '';
  socket.setEncoding('latin1').on('data', (chunk: string) => (received += chunk));
  const all = {
    host,
    ...headers,
    'content-length': String(Buffer.byteLength(text)),
    expect: '100-continue',
  };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}`);
  socket.write(requestBytes(baseUrl, line, lines));
  await once(socket, 'data');
  expect(received).toBe('HTTP/1.1 100 Continue\r\n\r\n');
  received = '';
  return async () => {
    socket.write(text);
    await once(socket, 'close');
    return parseAnswer(received);
  };
}
