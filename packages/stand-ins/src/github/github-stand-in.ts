import { createHmac } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock, newUuid } from '../clock.js';
import { listenOnLoopback, stopServer } from '../loopback/loopback-server.js';
import { appApi } from './app-api.js';
import { createRepository, serveGit } from './git-backend.js';
import {
  NOT_FOUND,
  problem,
  readRequest,
  writeAnswer,
  type StandInAnswer,
  type StandInRequest,
} from './http-answer.js';
import { PLANTED_TEXT, StandInState } from './stand-in-state.js';
import { oauthPages, userApi } from './user-api.js';

const API = '/api/v3';

/** The body and the headers of a webhook that the stand-in has signed. */
export interface SignedWebhook {
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** A server on loopback that answers as GitHub does, for the demo and the tests. */
export class GitHubStandIn {
  readonly state = new StandInState();
  readonly folder = mkdtempSync(join(tmpdir(), 'svc-github-'));
  #server: Server | undefined;
  #port = 0;

  /** Starts a stand-in on a free port. */
  static async start(): Promise<GitHubStandIn> {
    const standIn = new GitHubStandIn();
    await standIn.back();
    return standIn;
  }

  /** The origin of the pages and of Git. */
  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** The environment variables with which a service uses the stand-in. */
  get environment(): Record<string, string> {
    const { appId, appName, clientId, clientSecret, webhookSecret, appKey } = this.state;
    return {
      SVC_GITHUB_APP_ID: appId,
      SVC_GITHUB_APP_KEY: appKey.export({ type: 'pkcs1', format: 'pem' }).toString(),
      SVC_GITHUB_APP_NAME: appName,
      SVC_GITHUB_APP_CLIENT_ID: clientId,
      SVC_GITHUB_APP_CLIENT_SECRET: clientSecret,
      SVC_GITHUB_WEBHOOK_SECRET: webhookSecret,
      SVC_GITHUB_API_URL: `${this.url}${API}`,
    };
  }

  /**
   * Creates an empty Git repository `owner/name`, and gives every installation at the account
   * `owner` access to it. A second call with the same names changes nothing.
   */
  addRepository(owner: string, name: string): void {
    createRepository(this.folder, owner, name);
    for (const one of this.state.installations.values()) {
      if (one.account.login === owner && !one.repositories.includes(name)) {
        one.repositories.push(name);
      }
    }
  }

  /** Signs the body of a webhook with HMAC-SHA-256, as GitHub does. */
  webhook(event: string, payload: object, delivery: string = newUuid()): SignedWebhook {
    const body = JSON.stringify(payload);
    const mac = createHmac('sha256', this.state.webhookSecret).update(body).digest('hex');
    return {
      body,
      headers: {
        'content-type': 'application/json',
        'user-agent': 'GitHub-Hookshot/stand-in',
        'x-github-event': event,
        'x-github-delivery': delivery,
        'x-hub-signature-256': `sha256=${mac}`,
      },
    };
  }

  /**
   * Stops listening, as if GitHub were down: every connection is refused until {@link back} is
   * called.
   */
  async away(): Promise<void> {
    if (this.#server) await stopServer(this.#server);
    this.#server = undefined;
  }

  /** Starts listening. After {@link away} it listens on the same port again. */
  async back(): Promise<void> {
    this.#server = createServer((request, response) => {
      this.#answer(request, response).catch(() => response.destroy());
    });
    this.#port = await listenOnLoopback(this.#server, this.#port);
  }

  async close(): Promise<void> {
    await this.away();
    rmSync(this.folder, { recursive: true, force: true });
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname } = new URL(request.url ?? '/', this.url);
    this.state.requests.push(`${request.method} ${pathname}`);
    if (serveGit(this.state, this.folder, request, response)) return;
    const read = await readRequest(request, this.url);
    const { fault } = this.state;
    if (fault === 'hanging') return;
    const answer = fault === 'none' ? this.#route(read) : failure(fault);
    if (pathname.endsWith('/access_tokens')) await this.state.parked;
    writeAnswer(response, answer);
  }

  #route(request: StandInRequest): StandInAnswer {
    const { pathname } = request.url;
    if (!pathname.startsWith(`${API}/`)) return oauthPages(this.state, request) ?? NOT_FOUND;
    const path = pathname.slice(API.length);
    return appApi(this.state, request, path) ?? userApi(this.state, request, path) ?? NOT_FOUND;
  }
}

/** Returns the answer that GitHub gives when it limits requests, or fails. */
function failure(fault: 'rate-limited' | 'secondary-limit' | 'bad-gateway'): StandInAnswer {
  if (fault === 'bad-gateway') {
    return { status: 502, text: `<html><body>Unicorn! ${PLANTED_TEXT}</body></html>` };
  }
  if (fault === 'secondary-limit') {
    const answer = problem(429, `You have exceeded a secondary rate limit. ${PLANTED_TEXT}`);
    return { ...answer, headers: { 'retry-after': '60' } };
  }
  const reset = String(systemClock.seconds() + 1200);
  const answer = problem(403, `API rate limit exceeded for installation ID 7. ${PLANTED_TEXT}`);
  return { ...answer, headers: { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': reset } };
}
