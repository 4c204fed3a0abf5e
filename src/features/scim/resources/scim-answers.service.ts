import { Inject, Injectable } from '@nestjs/common';
import type { Request, Response } from 'express';
import { DomainError } from '#platform/errors/domain-error.js';
import { CONFIG, type Config } from '#platform/config/config.js';
import { namesTag } from '#platform/http/request/entity-tag.js';

const LIST = '"schemas":["urn:ietf:params:scim:api:messages:2.0:ListResponse"]';

/** What is known of a page of a list before its resources are read (RFC 7644 §3.4.2). */
export interface ListHead {
  readonly totalResults: number;
  /** Where it was asked for by index. */
  readonly startIndex: number | undefined;
  /** Where the next page begins (RFC 9865 §2). */
  readonly nextCursor: string | undefined;
}

/** The answers of `/scim/v2`: their media type, entity tags and addresses. */
@Injectable()
export class ScimAnswers {
  /** The address of the service, without a slash at its end. */
  readonly base: string;

  constructor(@Inject(CONFIG) config: Config) {
    this.base = `${config.http.baseUrl}/scim/v2`;
  }

  /** Sends a document. */
  send(response: Response, status: number, json: string): void {
    this.begin(response, status);
    response.end(json);
  }

  /**
   * Says the version of a resource, with 304 where the client has it: to whoever only reads, HEAD like GET (RFC 9110 §9.3.2,
   * §13.1.2).
   *
   * @returns whether that was all there is to say
   */
  isKnown(response: Response, tag: string): boolean {
    response.setHeader('ETag', tag);
    const { method, headers } = response.req;
    const reads = method === 'GET' || method === 'HEAD';
    if (!reads || !namesTag(headers['if-none-match'], tag)) return false;
    response.status(304).end();
    return true;
  }

  /** The head of an answer whose body is written piece by piece. */
  begin(response: Response, status: number): void {
    response.statusCode = status;
    response.setHeader('Content-Type', mediaType(response.req));
  }

  /**
   * Sends a document piece by piece, each asked for when the client has read those before: it has nothing of the database's while
   * it takes its time, and the deadline of the request ends that.
   */
  async stream(
    response: Response,
    status: number,
    texts: AsyncGenerator<string, void>,
  ): Promise<void> {
    const first = await texts.next(); // whatever goes wrong until here is answered as an error
    this.begin(response, status);
    try {
      if (!(await isRead(response, first.value ?? ''))) return;
      if (response.req.method !== 'HEAD') {
        for await (const text of texts) if (!(await isRead(response, text))) return;
      }
    } catch (error) {
      response.destroy(); // cut off, so that nobody takes a part for the whole
      throw error;
    }
    response.end();
  }

  /** The text of a list before its resources. */
  listHead({ totalResults, startIndex, nextCursor }: ListHead): string {
    const parts = [`{${LIST}`, `"totalResults":${totalResults}`];
    if (startIndex !== undefined) parts.push(`"startIndex":${startIndex}`);
    if (nextCursor !== undefined) parts.push(`"nextCursor":${JSON.stringify(nextCursor)}`);
    return `${parts.join(',')},"Resources":[`;
  }

  /** The text behind them: only now it is sure how many there are. */
  listTail(itemsPerPage: number): string {
    return `],"itemsPerPage":${itemsPerPage}}`;
  }
}

/** Writes a piece, and waits until the client has read it. @returns whether the client is still there */
async function isRead(response: Response, text: string): Promise<boolean> {
  if (!response.closed && !response.write(text)) await drained(response);
  return !response.closed;
}

/** Waits until the client has read what was written, or has gone. */
function drained(response: Response): Promise<void> {
  return new Promise((resolve) => {
    const settle = () => {
      response.off('drain', settle).off('close', settle);
      resolve();
    };
    response.on('drain', settle).on('close', settle);
  });
}

/** `application/scim+json`, unless the client takes plain JSON alone (RFC 7644 §3.1). Neither has a charset. */
function mediaType(request: Request): string {
  const accept = request.headers.accept ?? '*/*';
  const isPlain =
    /application\/json/i.test(accept) && !/scim\+json|\*\/\*|application\/\*/i.test(accept);
  return isPlain ? 'application/json' : 'application/scim+json';
}

/** @throws DomainError precondition_failed where `If-Match` names another version (RFC 7644 §3.14, RFC 9110 §13.1.1) */
export function checkIfMatch(condition: string | undefined, tag: string): void {
  if (condition !== undefined && !namesTag(condition, tag)) {
    throw new DomainError('precondition_failed', 'The resource is of another version by now.');
  }
}
