import type { Request, Response } from 'express';
import { namesVersion } from '../language/scim-language.js';

const LIST = '"schemas":["urn:ietf:params:scim:api:messages:2.0:ListResponse"]';

/** The part of a list response that comes before its resources (RFC 7644 §3.4.2). */
export interface ListHead {
  readonly totalResults: number;
  /** The number of the first resource in the whole list, from 1; undefined for a page by cursor. */
  readonly startIndex: number | undefined;
  /** The cursor of the next page (RFC 9865 §2). */
  readonly nextCursor: string | undefined;
}

/** Sends a JSON document that is one text, with the media type that the client accepts. */
export function sendJson(response: Response, status: number, json: string): void {
  begin(response, status);
  response.end(json);
}

/**
 * Sends a document in pieces. The next piece is made only after the connection has taken the
 * previous ones, so that a slow client keeps no database connection. The deadline of the request
 * ends the response.
 */
export async function streamJson(
  response: Response,
  status: number,
  pieces: AsyncGenerator<string, unknown>,
): Promise<void> {
  const first = await pieces.next(); // an error up to here becomes an error response
  begin(response, status);
  try {
    if (!(await isRead(response, first.done ? '' : first.value))) return;
    if (response.req.method !== 'HEAD') {
      for await (const piece of pieces) if (!(await isRead(response, piece))) return;
    }
  } catch (error) {
    response.destroy(); // so that the client does not take the part for the whole document
    throw error;
  }
  response.end();
}

/**
 * Sets the version of a resource as `ETag`. Sends 304 if a GET or HEAD names the version in
 * `If-None-Match` (RFC 9110 §9.3.2, §13.1.2).
 *
 * @returns true if 304 was sent
 */
export function isNotModified(response: Response, tag: string): boolean {
  response.setHeader('ETag', tag);
  const { method, headers } = response.req;
  const reads = method === 'GET' || method === 'HEAD';
  if (!reads || !namesVersion(headers['if-none-match'], tag)) return false;
  response.status(304).end();
  return true;
}

/** Returns the text of a list response before its resources. */
export function listHead({ totalResults, startIndex, nextCursor }: ListHead): string {
  const parts = [`{${LIST}`, `"totalResults":${totalResults}`];
  if (startIndex !== undefined) parts.push(`"startIndex":${startIndex}`);
  if (nextCursor !== undefined) parts.push(`"nextCursor":${JSON.stringify(nextCursor)}`);
  return `${parts.join(',')},"Resources":[`;
}

/**
 * Returns the text of a list response after its resources. It contains the number of the resources,
 * which is known only after all of them were rendered.
 */
export function listTail(itemsPerPage: number): string {
  return `],"itemsPerPage":${itemsPerPage}}`;
}

/** Sets the status and the media type of a response, before its body is written. */
function begin(response: Response, status: number): void {
  response.statusCode = status;
  response.setHeader('Content-Type', mediaType(response.req));
}

/**
 * Writes a piece. If the buffer of the response is full, it waits until the connection has taken
 * the bytes in it.
 * @returns false if the client has disconnected
 */
async function isRead(response: Response, text: string): Promise<boolean> {
  if (!response.closed && !response.write(text)) await drained(response);
  return !response.closed;
}

/** Waits until the connection has taken all buffered bytes, or the client has disconnected. */
function drained(response: Response): Promise<void> {
  return new Promise((resolve) => {
    const settle = () => {
      response.off('drain', settle).off('close', settle);
      resolve();
    };
    response.on('drain', settle).on('close', settle);
  });
}

/**
 * Returns the media type of a response: `application/json` if the client accepts only plain JSON,
 * else `application/scim+json` (RFC 7644 §3.1). Neither has the parameter `charset`.
 */
function mediaType(request: Request): string {
  const accept = request.headers.accept ?? '*/*';
  const isPlain =
    /application\/json/i.test(accept) && !/scim\+json|\*\/\*|application\/\*/i.test(accept);
  return isPlain ? 'application/json' : 'application/scim+json';
}
