import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { parseCookie } from 'cookie';
import { systemClock, systemRandom } from '@svc/stand-ins/clock';
import { listenOnLoopback, stopServer } from '@svc/stand-ins/loopback-server';
import { sendPlainPage } from '@svc/stand-ins/plain-page';
import { endedPage, signedInPage, signedOutPage, WATCH_SCRIPT, type AccessState } from './pages.js';
import {
  RelyingParty,
  type PendingSignIn,
  type RegisteredClient,
  type UserClaims,
} from './relying-party.js';

/**
 * The largest number of browsers whose sign-ins the application remembers. If one more browser
 * comes, the oldest one is forgotten.
 */
const MOST_BROWSERS = 100;

/** The path to which the service sends logout tokens. */
const LOGOUT_PATH = '/backchannel-logout';

/**
 * The largest length of a request body, in characters. The only body that the application reads is
 * a logout token, which is shorter.
 */
const MOST_BYTES = 16_384;

/** The session of a user that the application itself keeps, independently of the service. */
interface OwnSession {
  readonly claims: UserClaims;
  /** The time at which a logout token ended the session, in milliseconds since 1970. */
  endedAt?: number;
}

/**
 * The state of one browser at the application: a sign-in that has begun, a session, both or
 * neither.
 */
interface BrowserState {
  pending?: PendingSignIn;
  session?: OwnSession | undefined;
}

/** A request to the application, with its URL and the state of the browser that sent it. */
interface Visit {
  readonly url: URL;
  readonly response: ServerResponse;
  readonly browser: BrowserState;
  /**
   * The headers of the response that set the cookie of a new browser; empty if the browser has the
   * cookie already.
   */
  readonly cookie: Record<string, string>;
}

/** A small application on this machine to which users of the demo's tour sign in. */
export class DemoApplication {
  readonly #server: Server;
  readonly #browsers = new Map<string, BrowserState>();
  #relyingParty: RelyingParty | undefined;

  private constructor(
    readonly url: string,
    server: Server,
  ) {
    this.#server = server;
  }

  /** The URL to which the service sends users back after the sign-in. */
  get redirectUri(): string {
    return `${this.url}/callback`;
  }

  /** The body with which an admin registers the application at the service. */
  get registration() {
    return {
      name: 'The demo application',
      type: 'web',
      redirect_uris: [this.redirectUri],
      backchannel_logout_uri: `${this.url}${LOGOUT_PATH}`,
      backchannel_logout_at_session_end: true,
    };
  }

  /**
   * Starts the application. It refuses every sign-in until {@link connect} was called.
   * @param port 0 for a free port
   */
  static async start(port: number): Promise<DemoApplication> {
    const server = createServer();
    const bound = await listenOnLoopback(server, port);
    const application = new DemoApplication(`http://127.0.0.1:${bound}`, server);
    server.on('request', (request, response) => {
      application.#answer(request, response).catch((error: unknown) => {
        const reason = error instanceof Error ? error.message : String(error);
        sendPlainPage(response, 502, signedOutPage(`The service gave no valid answer: ${reason}.`));
      });
    });
    return application;
  }

  /** Connects the application to the service at which it is registered. */
  async connect(registered: Omit<RegisteredClient, 'redirectUri'>): Promise<void> {
    const { redirectUri } = this;
    this.#relyingParty = await RelyingParty.discover({ ...registered, redirectUri });
  }

  close(): Promise<void> {
    return stopServer(this.#server);
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', this.url);
    if (request.headers.host !== url.host) {
      sendPlainPage(response, 421, signedOutPage('Open the application at its own address.'));
      return;
    }
    if (this.#relyingParty && request.method === 'POST' && url.pathname === LOGOUT_PATH) {
      await this.#endSessions(request, response, this.#relyingParty);
      return;
    }
    if (!this.#relyingParty || request.method !== 'GET') {
      sendPlainPage(response, 503, signedOutPage('The application is not ready yet.'));
      return;
    }
    const visit = { url, response, ...this.#browserOf(request) };
    if (url.pathname === '/sign-in') await this.#signIn(visit, this.#relyingParty);
    else if (url.pathname === '/callback') await this.#complete(visit, this.#relyingParty);
    else if (url.pathname === '/sign-out') this.#signOut(visit);
    else if (url.pathname === '/state') sendState(visit);
    else if (url.pathname === '/watch.js') sendScript(response);
    else if (url.pathname === '/') showHome(visit);
    else sendPlainPage(response, 404, signedOutPage('There is nothing here.'));
  }

  async #signIn({ response, browser, cookie }: Visit, relyingParty: RelyingParty): Promise<void> {
    browser.pending = relyingParty.begin();
    const location = (await relyingParty.authorizationUrl(browser.pending)).href;
    redirect(response, location, cookie);
  }

  async #complete({ url, response, browser, cookie }: Visit, relyingParty: RelyingParty) {
    const { pending } = browser;
    delete browser.pending;
    if (!pending) {
      sendPlainPage(response, 400, signedOutPage('This sign-in has expired.'), cookie);
      return;
    }
    browser.session = { claims: await relyingParty.complete(url, pending) };
    redirect(response, '/', cookie);
  }

  #signOut({ response, browser, cookie }: Visit): void {
    delete browser.session;
    redirect(response, '/', cookie);
  }

  /**
   * Ends the sessions that a logout token names (OpenID Connect Back-Channel Logout §2.7). The
   * application answers 200 even if no such session exists, because an earlier token may have ended
   * it.
   */
  async #endSessions(
    request: IncomingMessage,
    response: ServerResponse,
    relyingParty: RelyingParty,
  ): Promise<void> {
    response.setHeader('cache-control', 'no-store');
    try {
      const form = new URLSearchParams(await bodyOf(request));
      const { sub, sid } = await relyingParty.ended(form.get('logout_token') ?? '');
      for (const { session } of this.#browsers.values()) {
        const isNamed =
          sid === undefined ? session?.claims['sub'] === sub : session?.claims['sid'] === sid;
        if (session && isNamed) session.endedAt ??= systemClock.milliseconds();
      }
      response.writeHead(200).end();
    } catch {
      response.writeHead(400).end();
    }
  }

  /**
   * Finds the state of a browser by its cookie, or makes a new one. The cookie's name contains the
   * port, since browsers send the cookies of a host to all of its ports.
   */
  #browserOf(request: IncomingMessage): Pick<Visit, 'browser' | 'cookie'> {
    const name = `demo_application_${new URL(this.url).port}`;
    const id = parseCookie(request.headers.cookie ?? '')[name] ?? '';
    const known = this.#browsers.get(id);
    if (known) return { browser: known, cookie: {} };
    const [newId, browser]: [string, BrowserState] = [systemRandom.token(), {}];
    this.#browsers.set(newId, browser);
    for (const oldest of this.#browsers.keys()) {
      if (this.#browsers.size > MOST_BROWSERS) this.#browsers.delete(oldest);
    }
    return {
      browser,
      cookie: { 'set-cookie': `${name}=${newId}; Path=/; HttpOnly; SameSite=Lax` },
    };
  }
}

function redirect(response: ServerResponse, location: string, cookie: Record<string, string>) {
  response.writeHead(303, { location, 'cache-control': 'no-store', ...cookie });
  response.end();
}

function sendScript(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'text/javascript; charset=utf-8' });
  response.end(WATCH_SCRIPT);
}

/** Returns the state of the session that the application keeps. It asks no other server. */
function stateOf({ session }: BrowserState): AccessState {
  if (!session) return 'signed-out';
  return session.endedAt === undefined ? 'signed-in' : 'ended';
}

function showHome({ response, browser, cookie }: Visit): void {
  const { claims = {}, endedAt } = browser.session ?? {};
  if (endedAt !== undefined)
    sendPlainPage(response, 200, endedPage(claims, new Date(endedAt)), cookie);
  else
    sendPlainPage(response, 200, browser.session ? signedInPage(claims) : signedOutPage(), cookie);
}

function sendState({ response, browser }: Visit): void {
  const ended_at = browser.session?.endedAt ?? null;
  response.writeHead(200, { 'content-type': 'application/json', 'cache-control': 'no-store' });
  response.end(JSON.stringify({ state: stateOf(browser), ended_at }));
}

/**
 * Reads the body of a request.
 *
 * @throws Error if it is too large
 */
async function bodyOf(request: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of request.setEncoding('utf8')) {
    text += chunk as string;
    if (text.length > MOST_BYTES) throw new Error('the body is too large');
  }
  return text;
}
