import { createHash, randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { exportJWK, generateKeyPair, type JWK } from 'jose';
import { Provider, type Configuration } from 'oidc-provider';
import { parseEmailAddress } from '#domain/organizations/email-address.js';
import { ForgetfulStore, MemoryStore } from './memory-store.js';
import { messagePage, PAGE_HEADERS, signInPage } from './pages.js';
import { listenOnLoopback, stopServer } from '../loopback/loopback-server.js';

/** The one client of the demo's identity provider, and where it listens. */
export interface DemoIdentityProviderOptions {
  /** A free port when left out. */
  readonly port?: number;
  readonly clientId: string;
  readonly clientSecret: string;
  readonly redirectUri: string;
  /** What to say about a person instead of `email_verified: true` and a name made from the address. */
  readonly claims?: (email: string) => object;
}

/** A running identity provider. */
export interface DemoIdentityProvider {
  readonly issuer: string;
  close(): Promise<void>;
}

/**
 * Starts the identity provider of the demo and the tests, on loopback. It believes whoever comes: an e-mail in
 * `login_hint` is signed in without a question, anybody else is asked for one on a page with one field. It remembers
 * nobody, so that the next sign-in can be another person's.
 */
export async function startDemoIdentityProvider(
  options: DemoIdentityProviderOptions,
): Promise<DemoIdentityProvider> {
  const server = createServer();
  const issuer = `http://127.0.0.1:${await listenOnLoopback(server, options.port)}`;
  const people: People = new Map();
  const provider = new Provider(issuer, await configuration(options, people));
  serve(server, provider, { issuer, people });
  return { issuer, close: () => stopServer(server) };
}

/** Who has signed in: addresses by subject. */
type People = Map<string, string>;

async function configuration(
  options: DemoIdentityProviderOptions,
  people: People,
): Promise<Configuration> {
  return {
    adapter: (model) => (model === 'Session' ? new ForgetfulStore() : new MemoryStore()),
    clients: [
      {
        client_id: options.clientId,
        client_secret: options.clientSecret,
        redirect_uris: [options.redirectUri],
        response_types: ['code'],
        grant_types: ['authorization_code'],
        id_token_signed_response_alg: 'ES256',
      },
    ],
    responseTypes: ['code'],
    scopes: ['openid', 'email', 'profile'],
    claims: {
      openid: ['sub'],
      email: ['email', 'email_verified'],
      profile: ['name', 'given_name', 'family_name'],
    },
    conformIdTokenClaims: false, // the claims go into the ID token, as with the providers people really use
    enabledJWA: { idTokenSigningAlgValues: ['ES256'] },
    jwks: { keys: [await signingKey()] },
    cookies: { keys: [randomBytes(32).toString('base64url')] },
    pkce: { required: () => true },
    interactions: { url: (_ctx, { uid }) => `${SIGN_IN}${uid}` },
    features: { devInteractions: { enabled: false }, rpInitiatedLogout: { enabled: false } },
    expiresWithSession: () => false, // sessions are forgotten
    clientBasedCORS: () => false,
    ttl: {
      AccessToken: 300,
      AuthorizationCode: 60,
      Grant: 600,
      IdToken: 300,
      Interaction: 600,
      Session: 600,
    },
    findAccount: (_ctx, subject) => {
      const email = people.get(subject);
      if (email === undefined) return undefined;
      const claims = { ...claimsOf(email), ...options.claims?.(email), sub: subject };
      return { accountId: subject, claims: () => claims };
    },
    // Whoever signs in agrees: asking for consent is not what the demo shows.
    loadExistingGrant: async ({ oidc }) => {
      if (!oidc.client || !oidc.session?.accountId) return undefined;
      const grant = new oidc.provider.Grant({
        clientId: oidc.client.clientId,
        accountId: oidc.session.accountId,
      });
      grant.addOIDCScope('openid email profile');
      await grant.save();
      return grant;
    },
    renderError: (ctx, { error }) => {
      ctx.type = 'html';
      ctx.set(PAGE_HEADERS);
      ctx.body = messagePage(`The request was refused: ${error}.`);
    },
  };
}

async function signingKey(): Promise<JWK> {
  const { privateKey } = await generateKeyPair('ES256', { extractable: true });
  return { ...(await exportJWK(privateKey)), alg: 'ES256', use: 'sig', kid: 'demo' };
}

/** Does not change when the demo restarts, and is not the address: nobody may mistake one for the other. */
function subjectOf(email: string): string {
  return createHash('sha256').update(email).digest('hex').slice(0, 32);
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

const SIGN_IN = '/sign-in/';

function serve(
  server: Server,
  provider: Provider,
  { issuer, people }: { issuer: string; people: People },
): void {
  const protocol = provider.callback();
  server.on('request', (req, res) => {
    // The library builds its addresses from the Host header; ours are the issuer's alone.
    req.headers.host = new URL(issuer).host;
    const isSignIn = req.url?.startsWith(SIGN_IN) === true;
    const answered = isSignIn ? signIn(provider, people, req, res) : protocol(req, res);
    answered.catch(() => {
      res.writeHead(400, { 'content-type': 'text/html; charset=utf-8', ...PAGE_HEADERS });
      res.end(messagePage('This sign-in has expired. Go back and start again.'));
    });
  });
}

/** Finishes a sign-in with the address it came with or the one now typed, or asks for one. */
async function signIn(
  provider: Provider,
  people: People,
  req: IncomingMessage,
  res: ServerResponse,
): Promise<void> {
  const { params } = await provider.interactionDetails(req, res);
  const isForm = req.method === 'POST';
  const given = isForm ? new URLSearchParams(await text(req)).get('email') : params['login_hint'];
  const email = parseEmailAddress(typeof given === 'string' ? given : '');
  if (email) {
    const accountId = subjectOf(email);
    people.set(accountId, email);
    await provider.interactionFinished(req, res, { login: { accountId } });
  } else {
    show(res, isForm ? 400 : 200, isForm ? 'Please enter an e-mail address.' : '');
  }
}

function show(res: ServerResponse, status: number, problem: string): void {
  res.writeHead(status, {
    'content-type': 'text/html; charset=utf-8',
    ...PAGE_HEADERS,
  });
  res.end(signInPage(problem));
}
