import type { ServerResponse } from 'node:http';

/** Kept on the response itself: a WeakMap of every answer is work for the garbage collector. */
const ERROR = Symbol('code of the error');
type Answered = ServerResponse & { [ERROR]?: string };

/** Notes the code of the error that a response tells: one of the catalogue, or one of OAuth (RFC 6749 §5.2). */
export function noteAnsweredError(response: ServerResponse, code: string): void {
  (response as Answered)[ERROR] = code;
}

/** The code of the error that a response tells, once it is known; undefined where it tells none. */
export function answeredErrorOf(response: ServerResponse): string | undefined {
  return (response as Answered)[ERROR];
}
