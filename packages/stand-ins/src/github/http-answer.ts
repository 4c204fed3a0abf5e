import type { IncomingMessage, ServerResponse } from 'node:http';

/** The answer of the stand-in to a request, before it is written. */
export interface StandInAnswer {
  readonly status: number;
  readonly json?: object;
  readonly text?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A request whose body was read. */
export interface StandInRequest {
  readonly method: string;
  readonly url: URL;
  readonly authorization: string;
  readonly body: string;
}

/** Reads a request with its whole body. `base` is the URL to which its path is relative. */
export async function readRequest(request: IncomingMessage, base: string): Promise<StandInRequest> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return {
    method: request.method ?? 'GET',
    url: new URL(request.url ?? '/', base),
    authorization: request.headers.authorization ?? '',
    body: Buffer.concat(chunks).toString(),
  };
}

/** Writes an answer with the headers that GitHub sends, such as those of the rate limit. */
export function writeAnswer(response: ServerResponse, answer: StandInAnswer): void {
  const { status, json, text, headers = {} } = answer;
  const type = json ? 'application/json; charset=utf-8' : 'text/html; charset=utf-8';
  response.writeHead(status, {
    'content-type': type,
    'x-github-request-id': 'A1B2:C3D4:E5F6',
    'x-ratelimit-limit': '5000',
    'x-ratelimit-remaining': '4999',
    ...headers,
  });
  response.end(json ? JSON.stringify(json) : (text ?? ''));
}

/** Returns an error in the form of GitHub's errors. */
export function problem(status: number, message: string): StandInAnswer {
  const json = { message, documentation_url: 'https://docs.github.com/rest', status: `${status}` };
  return { status, json };
}

export const NOT_FOUND = problem(404, 'Not Found');
export const BAD_CREDENTIALS = problem(401, 'Bad credentials');
