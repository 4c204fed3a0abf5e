import { setTimeout as delay } from 'node:timers/promises';
import { Agent, request } from '#platform/outbound/undici.js';
import { newAddress } from '../client.js';
import { Ledger } from '../failover/ledger.js';
import { SERVED_BY } from '../replica-front.js';

/** The kinds of requests that the load sends. Each of them writes to the database. */
export const KINDS = ['certificate', 'token', 'revocation', 'create', 'delete'] as const;
export type Kind = (typeof KINDS)[number];

/** The milliseconds between two requests of one sender. */
const PAUSE = 40;

/**
 * The milliseconds after which a sender gives up. The service answers sooner than that in any case.
 */
const PATIENCE = 25_000;

/** The answer of the service to one request, or the fact that none came. */
export interface LoadAnswer {
  readonly kind: Kind;
  /** The times of the request and of its answer, by `performance.now()`. */
  readonly began: number;
  readonly at: number;
  /** The HTTP status; 0 without a response of a replica. */
  readonly status: number;
  /** True if the status means that the service did what the request wanted. */
  readonly isDone: boolean;
  /** True if the response says when to try again (`Retry-After`). */
  readonly saysWhen: boolean;
  /** The body of a response that is no success, or the text of an error. */
  readonly text: string;
}

/** The last state of a token or a user that the service has confirmed by a response. */
export interface Acknowledged {
  /** The time of that response, by `performance.now()`. */
  readonly at: number;
  /**
   * `ending` means that a request to revoke the token or delete the user was sent, and no response
   * has confirmed it yet.
   */
  readonly state: 'made' | 'ending' | 'ended';
}

/** The URL and the credentials of the requests. */
export interface LoadParts {
  readonly baseUrl: string;
  /** The session tokens of the people who request certificates. */
  readonly sessions: readonly string[];
  readonly publicKey: string;
  readonly application: { readonly id: string; readonly secret: string };
  readonly scimToken: string;
}

/**
 * Sends requests all the time: for certificates, for OAuth tokens and their revocation, and for
 * creating and deleting users by SCIM. Records every response, and the states that they confirm.
 */
export class MixedLoad {
  readonly answers: LoadAnswer[] = [];
  readonly ledger = new Ledger();
  /** The confirmed state of each token by its text, and of each user by its id. */
  readonly tokens = new Map<string, Acknowledged>();
  readonly users = new Map<string, Acknowledged>();
  readonly #connections = new Agent();
  readonly #got = new Map<Kind, number>();
  #isOver = false;
  #done: Promise<unknown> = Promise.resolve();
  #names = 0;

  constructor(private readonly parts: LoadParts) {}

  start(): void {
    const senders = [
      ...this.parts.sessions.map((session) => () => this.#certificate(session)),
      () => this.#token(),
      () => this.#user(),
    ];
    this.#done = Promise.all(senders.map((send) => this.#repeat(send)));
  }

  /** Sends no more requests, and waits for the answers that are under way. */
  async stop(): Promise<void> {
    this.#isOver = true;
    await this.#done;
    await this.#connections.close();
  }

  /** Resolves when each kind of request has succeeded `count` more times from now on. */
  async untilEachSucceeded(count: number): Promise<void> {
    const before = new Map(this.#got);
    const lacks = (kind: Kind) => this.#gotOf(kind) < (before.get(kind) ?? 0) + count;
    while (KINDS.some(lacks)) await delay(20);
  }

  async #repeat(send: () => Promise<void>): Promise<void> {
    while (!this.#isOver) {
      await send();
      await delay(PAUSE);
    }
  }

  async #certificate(session: string): Promise<void> {
    const answer = await this.#send('certificate', [200], 'POST', '/v1/credentials/ssh', {
      authorization: `Bearer ${session}`,
      json: { public_key: this.parts.publicKey },
    });
    if (!answer.isDone) return;
    const { serial, certificate } = JSON.parse(answer.text) as {
      serial: string;
      certificate: string;
    };
    this.ledger.add({ serial, certificate, email: '', at: performance.now() });
  }

  /** Requests a token, and revokes every second one. */
  async #token(): Promise<void> {
    const authorization = this.#basic();
    const form = { grant_type: 'client_credentials' };
    const answer = await this.#send('token', [200], 'POST', '/oauth/token', {
      authorization,
      form,
    });
    if (!answer.isDone) return;
    const { access_token: token } = JSON.parse(answer.text) as { access_token: string };
    const { tokens } = this;
    tokens.set(token, { at: performance.now(), state: 'made' });
    if (tokens.size % 2 === 0) return;
    tokens.set(token, { at: performance.now(), state: 'ending' });
    const ended = await this.#untilDone(() =>
      this.#send('revocation', [200], 'POST', '/oauth/revoke', { authorization, form: { token } }),
    );
    if (ended) tokens.set(token, { at: performance.now(), state: 'ended' });
  }

  /** Creates a user by SCIM, and deletes every second one. */
  async #user(): Promise<void> {
    const authorization = `Bearer ${this.parts.scimToken}`;
    this.#names += 1;
    const answer = await this.#send('create', [201], 'POST', '/scim/v2/Users', {
      authorization,
      json: {
        schemas: ['urn:ietf:params:scim:schemas:core:2.0:User'],
        userName: `load-${this.#names}@failover.example`,
      },
    });
    if (!answer.isDone) return;
    const { id } = JSON.parse(answer.text) as { id: string };
    const { users } = this;
    users.set(id, { at: performance.now(), state: 'made' });
    if (users.size % 2 === 0) return;
    users.set(id, { at: performance.now(), state: 'ending' });
    // A repeated request gets 404 if an earlier one deleted the user and its answer was lost.
    const ended = await this.#untilDone((isRepeated) =>
      this.#send('delete', isRepeated ? [204, 404] : [204], 'DELETE', `/scim/v2/Users/${id}`, {
        authorization,
      }),
    );
    if (ended) users.set(id, { at: performance.now(), state: 'ended' });
  }

  /** Repeats a request until it succeeds. Returns false if the load ends before. */
  async #untilDone(send: (isRepeated: boolean) => Promise<LoadAnswer>): Promise<boolean> {
    for (let tries = 0; !this.#isOver; tries += 1) {
      const { isDone } = await send(tries > 0);
      if (isDone) return true;
      await delay(PAUSE);
    }
    return false;
  }

  #basic(): string {
    const { id, secret } = this.parts.application;
    return `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}`;
  }

  async #send(
    kind: Kind,
    done: readonly number[],
    method: string,
    path: string,
    sent: Sent,
  ): Promise<LoadAnswer> {
    const began = performance.now();
    const got = await this.#answerOf(method, path, sent);
    const isDone = done.includes(got.status);
    const answer = { kind, began, at: performance.now(), isDone, ...got };
    if (isDone) this.#got.set(kind, this.#gotOf(kind) + 1);
    this.answers.push(isDone ? { ...answer, text: '' } : answer);
    return answer;
  }

  async #answerOf(method: string, path: string, { authorization, json, form }: Sent) {
    const body = form ? new URLSearchParams(form).toString() : json && JSON.stringify(json);
    const type = form ? 'application/x-www-form-urlencoded' : typeOf(path);
    try {
      const answer = await request(new URL(path, this.parts.baseUrl), {
        dispatcher: this.#connections,
        method,
        headers: {
          authorization,
          'x-forwarded-for': newAddress(),
          ...(body === undefined ? {} : { 'content-type': type }),
        },
        ...(body === undefined ? {} : { body }),
        signal: AbortSignal.timeout(PATIENCE),
      });
      const text = await answer.body.text();
      // Without this header, the proxy itself has answered, because it reached no replica.
      const status = answer.headers[SERVED_BY] === undefined ? 0 : answer.statusCode;
      return { status, saysWhen: answer.headers['retry-after'] !== undefined, text };
    } catch (error) {
      return { status: 0, saysWhen: false, text: String(error) };
    }
  }

  #gotOf(kind: Kind): number {
    return this.#got.get(kind) ?? 0;
  }
}

interface Sent {
  readonly authorization: string;
  readonly json?: object;
  readonly form?: Readonly<Record<string, string>>;
}

function typeOf(path: string): string {
  return path.startsWith('/scim') ? 'application/scim+json' : 'application/json';
}
