import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { exportJWK, generateKeyPair, type JWK } from 'jose';
import {
  Provider,
  type ClientMetadata,
  type Configuration,
  type Grant,
  type KoaContextWithOIDC,
} from 'oidc-provider';
import { z } from 'zod';
import { systemRandom } from '../clock.js';
import { MemoryStore, NoSessionStore } from './memory-store.js';
import { messagePage, signInPage, type OfferedPerson } from './pages.js';
import { listenOnLoopback, stopServer } from '../loopback/loopback-server.js';
import { PLAIN_PAGE_HEADERS, renderPlainPage, sendPlainPage } from '../loopback/plain-page.js';

/** The options of the identity provider: its port, and its only client. */
export interface DemoIdentityProviderOptions {
  /** The port to listen on; a free one by default. */
  readonly port?: number;
  readonly clientId: string;
  readonly clientSecret: string;
  readonly redirectUri: string;
  /**
   * Returns the claims of a user other than the e-mail address. By default they are
   * `email_verified: true`, and a name that is made from the e-mail address.
   */
  readonly claims?: (email: string) => object;
  /** The people that the sign-in page offers as buttons. */
  readonly people?: readonly OfferedPerson[];
}

/** A running OpenID provider of the demo or a test. */
export interface DemoIdentityProvider {
  readonly issuer: string;
  close(): Promise<void>;
}

/**
 * Starts the identity provider of the demo and the tests, on loopback. It checks no password: it
 * signs in the e-mail address in `login_hint`, or else the address that the user types on a page.
 * It stores no session, so that the next sign-in can be another user's.
 */
export async function startDemoIdentityProvider(
  options: DemoIdentityProviderOptions,
): Promise<DemoIdentityProvider> {
  const server = createServer();
  const issuer = `http://127.0.0.1:${await listenOnLoopback(server, options.port)}`;
  const users: Users = new Map();
  const provider = new Provider(issuer, await configuration(options, users));
  serve(server, provider, { issuer, users, people: options.people ?? [] });
  return { issuer, close: () => stopServer(server) };
}

/** The e-mail addresses of the users who signed in, by their subjects. */
type Users = Map<string, string>;

async function configuration(
  options: DemoIdentityProviderOptions,
  users: Users,
): Promise<Configuration> {
  return {
    adapter: (model) => (model === 'Session' ? new NoSessionStore() : new MemoryStore()),
    clients: [clientOf(options)],
    responseTypes: ['code'],
    scopes: ['openid', 'email', 'profile'],
    claims: {
      openid: ['sub'],
      email: ['email', 'email_verified'],
      profile: ['name', 'given_name', 'family_name'],
    },
    conformIdTokenClaims: false, // puts the claims into the ID token, as common providers do
    enabledJWA: { idTokenSigningAlgValues: ['ES256'] },
    jwks: { keys: [await signingKey()] },
    cookies: { keys: [systemRandom.token()] },
    pkce: { required: () => true },
    interactions: { url: (_ctx, { uid }) => `${SIGN_IN}${uid}` },
    extraParams: { login_hint: ({ oidc }, hint) => signInAtOnce(oidc, users, hint) },
    features: { devInteractions: { enabled: false }, rpInitiatedLogout: { enabled: false } },
    expiresWithSession: () => false, // no session is stored, so that no token can end with one
    clientBasedCORS: () => false,
    ttl: LIFETIMES,
    findAccount: (_ctx, subject) => {
      const email = users.get(subject);
      if (email === undefined) return undefined;
      const claims = { ...claimsOf(email), ...options.claims?.(email), sub: subject };
      return { accountId: subject, claims: () => claims };
    },
    loadExistingGrant,
    renderError: (ctx, { error }) => {
      ctx.type = 'html';
      ctx.set(PLAIN_PAGE_HEADERS);
      ctx.body = renderPlainPage(messagePage(`The request was refused: ${error}.`));
    },
  };
}

/** The lifetimes in seconds, by the models (kinds of records) of `oidc-provider`. */
const LIFETIMES = {
  AccessToken: 300,
  AuthorizationCode: 60,
  Grant: 600,
  IdToken: 300,
  Interaction: 600,
  Session: 600,
};

function clientOf(options: DemoIdentityProviderOptions): ClientMetadata {
  return {
    client_id: options.clientId,
    client_secret: options.clientSecret,
    redirect_uris: [options.redirectUri],
    response_types: ['code'],
    grant_types: ['authorization_code'],
    id_token_signed_response_alg: 'ES256',
  };
}

/**
 * Signs in the user whom `login_hint` names, before the library asks for a user, so that the
 * browser gets its code without a page.
 */
function signInAtOnce(
  { session }: KoaContextWithOIDC['oidc'],
  users: Users,
  hint: string | undefined,
): void {
  const email = addressIn(hint ?? '');
  if (email !== undefined) session?.loginAccount({ accountId: subjectIn(users, email) });
}

/** Grants every scope without a consent page, so that a sign-in needs at most one page. */
async function loadExistingGrant({ oidc }: KoaContextWithOIDC): Promise<Grant | undefined> {
  if (!oidc.client || !oidc.session?.accountId) return undefined;
  const grant = new oidc.provider.Grant({
    clientId: oidc.client.clientId,
    accountId: oidc.session.accountId,
  });
  grant.addOIDCScope('openid email profile');
  await grant.save();
  return grant;
}

async function signingKey(): Promise<JWK> {
  const { privateKey } = await generateKeyPair('ES256', { extractable: true });
  return { ...(await exportJWK(privateKey)), alg: 'ES256', use: 'sig', kid: 'demo' };
}

/**
 * Returns the subject of a user. It is the same after a restart of the demo. It differs from the
 * e-mail address, so that code that confuses the two fails.
 */
function subjectOf(email: string): string {
  return createHash('sha256').update(email).digest('hex').slice(0, 32);
}

/** Remembers the e-mail address of a user who signs in, and returns the user's subject. */
function subjectIn(users: Users, email: string): string {
  const subject = subjectOf(email);
  users.set(subject, email);
  return subject;
}

function claimsOf(email: string) {
  const [localPart = email] = email.split('@');
  const words = localPart.split(/[._-]+/).filter((word) => word !== '');
  const name = words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join(' ');
  const [given = '', ...family] = name.split(' ');
  return {
    email,
    email_verified: true,
    name: name || email,
    ...(family.length === 0 ? {} : { given_name: given, family_name: family.join(' ') }),
  };
}

/**
 * Returns a typed e-mail address with its letters in lower case; undefined for a text that is not
 * an e-mail address.
 */
function addressIn(typed: string): string | undefined {
  return z.email({ pattern: z.regexes.html5Email }).safeParse(typed.trim().toLowerCase()).data;
}

const SIGN_IN = '/sign-in/';

/** The facts about a running identity provider that its pages need. */
interface Running {
  readonly issuer: string;
  readonly users: Users;
  readonly people: readonly OfferedPerson[];
}

function serve(server: Server, provider: Provider, running: Running): void {
  const protocol = provider.callback();
  server.on('request', (req, res) => {
    // The library takes the URLs of the provider from the Host header, so it is set to the host of
    // the issuer.
    req.headers.host = new URL(running.issuer).host;
    const isSignIn = req.url?.startsWith(SIGN_IN) === true;
    const response = isSignIn ? signIn(provider, running, req, res) : protocol(req, res);
    response.catch(() =>
      sendPlainPage(res, 400, messagePage('This sign-in has expired. Go back and start again.')),
    );
  });
}

/** Completes a sign-in with the typed e-mail address, or shows the page that asks for one. */
async function signIn(
  provider: Provider,
  { users, people }: Running,
  req: IncomingMessage,
  res: ServerResponse,
): Promise<void> {
  await provider.interactionDetails(req, res);
  const isForm = req.method === 'POST';
  const typed = isForm ? new URLSearchParams(await text(req)).get('email') : undefined;
  const email = addressIn(typed ?? '');
  if (email !== undefined) {
    const login = { accountId: subjectIn(users, email) };
    await provider.interactionFinished(req, res, { login });
  } else {
    const problem = isForm ? 'Please enter an e-mail address.' : '';
    sendPlainPage(res, isForm ? 400 : 200, signInPage(people, problem));
  }
}
