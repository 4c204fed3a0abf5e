import type { CommandContext } from '../../command/command-context.js';
import type { ParsedArguments } from '../../program/arguments.js';
import { CliFailure, STATUS, usageFailure } from '../../program/failure.js';
import type { RequestContent, ServerClient } from '../../server/server-client.js';
import type { TokenKind } from '../../server/stored-token.js';
import type { PlainAnswer } from '../../server/transport.js';
import type { Terminal } from '../../terminal/terminal.js';

/**
 * Sends the requests of an admin with the token of `svc login --admin`, and asks the admin before a
 * change. If the server demands a touch of the security key, or the token has expired, the admin
 * logs in again. Then the request is sent again.
 */
export class AdminClient {
  #client: Promise<ServerClient> | undefined;

  constructor(
    readonly context: CommandContext,
    private readonly kind: TokenKind = 'admin-token',
  ) {}

  get terminal(): Terminal {
    return this.context.terminal;
  }

  /** Sends a request and returns the JSON of the answer. */
  json<T>(method: string, to: string, content?: RequestContent): Promise<T> {
    return this.#ask((client) => client.json<T>(method, to, content));
  }

  /** Sends a request and returns the answer with its headers. */
  request(method: string, to: string, content?: RequestContent): Promise<PlainAnswer> {
    return this.#ask((client) => client.request(method, to, content));
  }

  /**
   * Shows what an act will do, and asks the admin to agree. With `--yes` it does neither.
   * @throws CliFailure if the answer is no, or if there is no terminal
   */
  async agree(options: ParsedArguments, effects: readonly string[], question: string) {
    if (options.has('yes')) return;
    for (const line of effects) this.terminal.warn(line);
    if (await this.terminal.confirm(question)) return;
    throw new CliFailure('Nothing was changed.', 'Answer y to do it.');
  }

  /**
   * Prints a new secret. Standard output gets the secret alone, so that it can be written to a
   * file. The explanations go to standard error.
   */
  secret(document: object, secret: string, explanations: readonly string[]): void {
    for (const line of explanations) this.terminal.warn(line);
    this.terminal.result(document, [secret]);
  }

  async #ask<T>(work: (client: ServerClient) => Promise<T>): Promise<T> {
    this.#client ??= this.context.client(this.kind);
    const client = await this.#client;
    try {
      return await work(client);
    } catch (error) {
      if (!(error instanceof CliFailure) || error.status !== STATUS.notLoggedIn) throw error;
      if (this.kind !== 'admin-token') throw error;
      const { message, status } = error;
      throw new CliFailure(message, 'Run: svc login --admin', status, { cause: error });
    }
  }
}

/**
 * Returns a path of the API from a template. Each value becomes exactly one segment: characters
 * such as a slash are escaped.
 *
 * @throws CliFailure with status 2 for an empty value, and for `.` and `..`, which would name
 *   another path
 */
export function path(parts: TemplateStringsArray, ...values: readonly string[]): string {
  return String.raw({ raw: parts }, ...values.map(segment));
}

function segment(value: string): string {
  if (/^\.{0,2}$/.test(value)) throw usageFailure(`"${value}" is no name and no id.`, 'svc admin');
  return encodeURIComponent(value);
}

/** Returns a path with a query. Undefined and empty values are left out. */
export function withQuery(to: string, query: Readonly<Record<string, string | undefined>>): string {
  const known = Object.entries(query).filter((pair): pair is [string, string] => !!pair[1]);
  const text = new URLSearchParams(known).toString();
  return text === '' ? to : `${to}?${text}`;
}

/**
 * Says on standard error how to see the next page of a list; nothing if `next` is null, on the last
 * page.
 */
export function tellOfMore({ terminal }: AdminClient, next: string | null): void {
  if (next !== null) terminal.warn(`There are more: add --after ${next}`);
}

/**
 * Returns the header `If-Match` with the entity tag of an answer. With it, the server refuses a
 * change if the object is not as the answer showed it. The result is empty if the answer has no
 * tag.
 */
export function ifMatch({ headers }: PlainAnswer): Record<string, string> {
  const tag = headers.get('etag');
  return tag === null ? {} : { 'if-match': tag };
}

/**
 * The header (RFC 7240) that asks for a JSON document about what an act ended, in place of an empty
 * answer.
 */
export const WITH_DOCUMENT = { prefer: 'return=representation' } as const;
