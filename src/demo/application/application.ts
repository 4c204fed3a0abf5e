import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { parseCookie } from 'cookie';
import { systemRandom } from '#platform/clock/random.js';
import { listenOnLoopback, stopServer } from '@svc/stand-ins/loopback-server';
import { sendPlainPage } from '@svc/stand-ins/plain-page';
import { endedPage, signedInPage, signedOutPage, WATCH_SCRIPT, type AccessState } from './pages.js';
import {
  RelyingParty,
  type PendingSignIn,
  type RegisteredClient,
  type ApplicationUser,
} from './relying-party.js';

/** The most browsers whose sign-ins the application keeps; the oldest is forgotten. */
const MOST_BROWSERS = 100;

/** The sign-in of one browser. */
interface BrowserState {
  pending?: PendingSignIn;
  user?: ApplicationUser | undefined;
}

/** A request with its address and the state of its browser. */
interface Visit {
  readonly url: URL;
  readonly response: ServerResponse;
  readonly browser: BrowserState;
  /** Sets the cookie of a new browser. */
  readonly cookie: Record<string, string>;
}

/** The application that users of the tour sign in to, on loopback. */
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

  /** The address to which the service sends users back. */
  get redirectUri(): string {
    return `${this.url}/callback`;
  }

  /**
   * Starts the application. It refuses every sign-in until {@link connect}. @param port 0 for a
   * free one
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

  /** Connects the application with the service that registered it. */
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
    if (!this.#relyingParty || request.method !== 'GET') {
      sendPlainPage(response, 503, signedOutPage('The application is not ready yet.'));
      return;
    }
    const visit = { url, response, ...this.#browserOf(request) };
    if (url.pathname === '/sign-in') await this.#signIn(visit, this.#relyingParty);
    else if (url.pathname === '/callback') await this.#complete(visit, this.#relyingParty);
    else if (url.pathname === '/sign-out') this.#signOut(visit);
    else if (url.pathname === '/state') await this.#sendState(visit);
    else if (url.pathname === '/watch.js') sendScript(response);
    else if (url.pathname === '/') await this.#home(visit);
    else sendPlainPage(response, 404, signedOutPage('There is nothing here.'));
  }

  async #home({ response, browser, cookie }: Visit): Promise<void> {
    const state = await this.#stateOf(browser);
    const claims = browser.user?.claims ?? {};
    if (state === 'signed-in') sendPlainPage(response, 200, signedInPage(claims));
    else
      sendPlainPage(response, 200, state === 'ended' ? endedPage(claims) : signedOutPage(), cookie);
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
    browser.user = await relyingParty.complete(url, pending);
    redirect(response, '/', cookie);
  }

  #signOut({ response, browser, cookie }: Visit): void {
    delete browser.user;
    redirect(response, '/', cookie);
  }

  async #sendState({ response, browser }: Visit): Promise<void> {
    const state = await this.#stateOf(browser);
    response.writeHead(200, { 'content-type': 'application/json', 'cache-control': 'no-store' });
    response.end(JSON.stringify({ state }));
  }

  /** Asks the service at every view: nothing is cached that the end of an access must end. */
  async #stateOf({ user }: BrowserState): Promise<AccessState> {
    if (!user) return 'signed-out';
    return (await this.#relyingParty?.isActive(user)) === true ? 'signed-in' : 'ended';
  }

  /**
   * The cookie is named after the port, since browsers send the cookies of a host to all of its
   * ports.
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
