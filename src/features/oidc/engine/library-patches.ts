import { timingSafeEqual } from 'node:crypto';
import type { Logger } from '@nestjs/common';
import { Provider, interactionPolicy } from 'oidc-provider';
// @ts-expect-error -- this file of the OAuth library has no types
import instanceOf from 'oidc-provider/lib/helpers/weak_cache.js';
import { AAL3 } from '#domain/sessions/session.js';
import { hashOpaqueToken } from '#platform/crypto/opaque-token.js';
import { secretHashesOf } from '../protocol/client-metadata.js';
import type { KoaContextWithOIDC } from '../protocol/library.js';
import { NOT_ASSIGNED, UNMET_CONDITION } from '../request/refused-reach.js';

/*
 * Contains every use of undocumented parts of oidc-provider 9.13.3, which any update may change.
 * The test test/unit/features/oidc/library-internals.test.ts fails if an update changes one of
 * these functions of the library: read the function, run the tests that its entry names, and record
 * its new hash in the test. `Upstream` names the issue of panva/node-oidc-provider, or the day of a
 * search for one that found none.
 */

/**
 * The internal functions of the OAuth library's grant types. Reason: our own grant types need the
 * same rules for DPoP, mTLS, resources and responses. Upstream: #573 leads to `registerGrantType`,
 * which registers our own grant types but does not give them these functions. Tests:
 * test/api/oauth/token-exchange.test.ts, test/api/oauth/fido2-grant.test.ts.
 */
export {
  buildTokenResponse,
  checkDpopReplay,
  checkDpopRequired,
  checkMtlsCert,
  resolveRequestedResources,
  validateClientScope,
  validateDpop,
} from 'oidc-provider/lib/helpers/grants.js';

/**
 * Returns the OAuth library's context of the current request, which the library keeps in an
 * AsyncLocalStorage. Reason: the library calls the storage adapters without the context. Upstream:
 * #611, for which the maintainer has no other solution. Tests: test/api/oauth/once-only.test.ts,
 * test/api/oauth/admin-scope.test.ts.
 */
export function currentContext(): KoaContextWithOIDC | undefined {
  return Provider.ctx;
}

/**
 * Stores the id of a proof, so that each proof is accepted only once. A proof is a DPoP proof or a
 * client assertion. Resolves to false for an id that was stored before.
 */
export type SpendId = (issuer: string, jti: string, expiresAt: Date) => Promise<boolean>;

/**
 * The seconds for which the id of a proof is still stored after the proof expires. The clock of the
 * client that made the proof may be ahead.
 */
const REPLAY_MARGIN = 600;

/**
 * The object in which the OAuth library makes and checks the nonces of DPoP proofs, with the only
 * method that this file uses.
 */
interface Nonces {
  checkChallenge(nonce: string): boolean;
}

/** Sends an authorization response to the client in one response mode. */
type SendResponse = (ctx: KoaContextWithOIDC, redirectUri: string, payload: object) => unknown;

/** The internal members of the OAuth library's provider that this file uses. */
interface Inside {
  readonly DPoPNonces: Nonces;
  readonly responseModes: Map<string, SendResponse>;
}

const inside = instanceOf as (provider: Provider) => Inside;

/**
 * Makes a provider also accept the nonces (for DPoP proofs) of a second secret. Reason: the OAuth
 * library knows one `nonceSecret`. While the root secret is being replaced, some replicas make
 * nonces with the old one and some with the new one. Upstream: searched 2026-11-25, none found.
 * Tests: test/api/root-secret-rotation.test.ts.
 */
export function acceptNoncesOf(provider: Provider, secret: Buffer): void {
  const { DPoPNonces: own } = inside(provider);
  const Challenges = own.constructor as new (secret: Buffer, info: string) => Nonces;
  const others = new Challenges(secret, 'DPoP');
  const checkOwn = own.checkChallenge.bind(own);
  own.checkChallenge = (nonce) => checkOwn(nonce) || others.checkChallenge(nonce);
}

/** Applies all changes of this file to a new instance of the OAuth library's `Provider`. */
export function patchProvider(provider: Provider, endpointsOf: EndpointsOf, spend: SpendId): void {
  checkReplaysBy(provider, spend);
  compareSecretsByHash(provider);
  expectPublishedEndpoints(provider, endpointsOf);
  nameSessionsOurselves(provider);
  avoidFormPost(provider);
  keepGetterOutOfOldGeneration(provider);
}

/** The key under which a context has the descriptor of the getter that the library defines. */
const GETTER = Symbol('getter of ctx.oidc');
type Context = object & { [GETTER]?: PropertyDescriptor };

/**
 * Stores the descriptor of the getter `oidc` of each context under a symbol, and calls it by one
 * getter of the prototype. Reason: the OAuth library defines a getter on the context of each
 * request. V8 allocates getters in its old generation, where each of them keeps its whole request
 * alive until the next major collection (docs/performance/garbage.md). Upstream: searched
 * 2026-12-01, none found. Tests: test/unit/features/oidc/context-getter.test.ts.
 */
function keepGetterOutOfOldGeneration(provider: Provider): void {
  const handler: ProxyHandler<Context> = {
    defineProperty(context, name, descriptor) {
      if (name !== 'oidc' || !descriptor.get) {
        return Reflect.defineProperty(context, name, descriptor);
      }
      context[GETTER] = descriptor;
      return true;
    },
  };
  Object.defineProperty(provider.context, 'oidc', {
    get(this: Context) {
      return this[GETTER]?.get?.() as unknown;
    },
  });
  const createContext = provider.createContext.bind(provider);
  const create: typeof createContext = (request, response) =>
    new Proxy(createContext(request, response), handler);
  provider.createContext = create;
}

/** The response modes that need a script of the OAuth library, with those that replace them. */
const INSTEAD_OF_FORM_POST = { form_post: 'query', 'form_post.jwt': 'query.jwt' } as const;

/**
 * Sends a response in the mode `form_post` by a redirect. Reason: a request object can ask for this
 * mode, and the OAuth library then sends even the refusal of the mode as its own page. Our
 * Content-Security-Policy forbids the script of that page, and `withholdRedirect`, which checks
 * redirects, does not see the URL to which the page sends the response. Upstream: searched
 * 2026-11-29, none found. Tests: test/api/oauth/oauth-edge.test.ts.
 */
function avoidFormPost(provider: Provider): void {
  const { responseModes } = inside(provider);
  for (const [mode, instead] of Object.entries(INSTEAD_OF_FORM_POST)) {
    const send = responseModes.get(instead);
    if (!send) continue; // the mode is not offered
    responseModes.set(mode, (ctx, redirectUri, payload) => {
      Object.assign(ctx.oidc.params ?? {}, { response_mode: instead });
      return send(ctx, redirectUri, payload);
    });
  }
}

/**
 * Replaces `ReplayDetection.unique`, which notices a proof that is used twice. Reason: the OAuth
 * library first reads and then writes, so that two concurrent requests could both use one proof.
 * Our function is one SQL statement, which only one of them passes. Upstream: searched 2026-11-25,
 * none found. Tests: test/api/oauth/once-only.test.ts (DPoP proofs and client assertions).
 */
function checkReplaysBy(provider: Provider, spend: SpendId): void {
  provider.ReplayDetection.unique = (issuer, jti, exp) =>
    spend(issuer, jti, new Date((exp + REPLAY_MARGIN) * 1000));
}

/**
 * Replaces `Client.prototype.compareClientSecret`, which checks the secret of a client. Reason: the
 * database holds only hashes, and a client may have several secrets. Upstream: #631, in which the
 * maintainer offers this method for it. Tests: test/api/oauth/applications.test.ts (rotation of
 * secrets).
 */
function compareSecretsByHash({ Client }: Provider): void {
  Client.prototype.compareClientSecret = compareClientSecret;
}

function compareClientSecret(this: { readonly clientSecret?: string }, actual: string): boolean {
  const presented = hashOpaqueToken(actual);
  return secretHashesOf(this.clientSecret).some(
    (hash) => hash.length === presented.length && timingSafeEqual(hash, presented),
  );
}

/**
 * The OAuth library's session of a browser, with the method that {@link nameSessionsOurselves}
 * replaces.
 */
interface NamedSession {
  sidFor(clientId: string, value?: string): string | undefined;
  authorizationFor(clientId: string, value?: string): object;
}

/**
 * Replaces `Session.prototype.sidFor`, so that the OAuth library puts no `sid` (session id) into
 * tokens. Reason: the library's `sid` belongs to a browser's cookie and one client, and devices
 * have none. Our own `sid` names the session that a logout ends, and the claims of the account
 * contain it. Upstream: searched 2026-11-26, none found. Tests:
 * test/api/oauth/logout-notices.test.ts.
 */
function nameSessionsOurselves({ Session }: Provider): void {
  const session = Session.prototype as unknown as NamedSession;
  session.sidFor = function (this: NamedSession, clientId, value) {
    this.authorizationFor(clientId, value);
    return undefined;
  };
}

/**
 * Returns the published URLs that may be the audience of a client assertion at an endpoint. The
 * parameter is the OAuth library's name of the endpoint.
 */
export type EndpointsOf = (route: string) => readonly string[];

/** Returns the audiences of client assertions that the OAuth library accepts in a request. */
type Audiences = (this: { readonly route: string }) => Set<string>;

/**
 * Extends `OIDCContext.prototype.clientJwtAuthExpectedAudience`. Reason: on the mutual-TLS listener
 * the OAuth library accepts only that listener's URLs, and not the published ones (RFC 8705 §5).
 * Upstream: searched 2026-11-25, none found; its types publish the method. Tests:
 * test/api/oauth/mutual-tls.test.ts.
 */
function expectPublishedEndpoints({ OIDCContext }: Provider, endpointsOf: EndpointsOf): void {
  const context = OIDCContext.prototype as { clientJwtAuthExpectedAudience: Audiences };
  const { clientJwtAuthExpectedAudience: expected } = context;
  context.clientJwtAuthExpectedAudience = function (this: { readonly route: string }) {
    return new Set([...expected.call(this), ...endpointsOf(this.route)]);
  };
}

/**
 * A rule that resolves to true if the user must be asked (the OAuth library calls that a prompt).
 */
type PromptRule = (ctx: KoaContextWithOIDC) => Promise<boolean>;

/**
 * The rule that decides if the user must touch the security key for a request. The time of the last
 * touch before the request is stored with the waiting request, so that the same touch does not
 * later count as a new one.
 */
interface TouchRule {
  readonly check: PromptRule;
  readonly details: (
    ctx: KoaContextWithOIDC,
  ) => Promise<{ readonly touched_before: number | null }>;
}

/**
 * The two rules that decide if a client admits its user. The user must be assigned to the client,
 * and a touch of a security key in the session must meet the conditions of the client.
 */
interface ReachRules {
  readonly isNotAssigned: PromptRule;
  readonly needsOtherTouch: PromptRule;
}

/**
 * The name of a prompt, which in the OAuth library is a reason to show a page to the user. The
 * reason here is that the user is not assigned to the client. The page leads back to the client.
 */
export const ASSIGNMENT_PROMPT = 'assignment';

/**
 * The name of a prompt, which in the OAuth library is a reason to show a page to the user. The
 * reason here is that the user's touch of the key does not meet the conditions of the client.
 */
export const CONDITION_PROMPT = 'condition';

/** The OAuth library's list of prompts, in the order in which it shows them. */
export type PromptPolicy = ReturnType<typeof interactionPolicy.base>;

/**
 * Returns the OAuth library's list of prompts, which are the reasons to show a page to the user.
 * Two rules for native clients are changed, and two prompts about users that a client does not
 * admit are added. Reason: for a native client the library asks for consent each time (RFC 8252
 * §8.6). For registered applications of the organization that is too often, and for `svc-cli` the
 * user touches the key instead. Upstream: #603 leads to the policy. Tests:
 * test/api/oauth/own-applications.test.ts, test/api/oauth/cli-authorization.test.ts,
 * test/api/oauth/access-authorization.test.ts.
 */
export function promptPolicy(needsNativeConsent: PromptRule, touch: TouchRule, reach: ReachRules) {
  const policy = interactionPolicy.base();
  const checks = policy.get('consent')?.checks;
  if (!checks) throw new Error('the library has no prompt for consent');
  const name = 'native_client_prompt';
  const description = 'native clients require End-User interaction';
  checks.remove(name);
  checks.add(
    new interactionPolicy.Check(name, description, 'interaction_required', needsNativeConsent),
  );
  policy
    .get('login')
    ?.checks.add(
      new interactionPolicy.Check(
        'fresh_touch',
        'the command line needs a fresh touch of the security key',
        'login_required',
        touch.check,
        touch.details,
      ),
    );
  policy.get('login')?.checks.add(AAL3_REQUESTED);
  policy.add(promptOf(ASSIGNMENT_PROMPT, NOT_ASSIGNED, reach.isNotAssigned), 1);
  policy.add(promptOf(CONDITION_PROMPT, UNMET_CONDITION, reach.needsOtherTouch), 2);
  return policy;
}

/**
 * Resolves to true if a rule of the prompt `login` asks for the login page. Reason: the OAuth
 * library loads the grant before it reads these rules, so that a request that ends without a login
 * would leave a stored grant behind. Upstream: searched 2026-11-29, none found; the policy is the
 * library's way. Tests: test/api/oauth/login-requirements.test.ts.
 */
export async function asksForLogin(
  policy: PromptPolicy,
  ctx: KoaContextWithOIDC,
): Promise<boolean> {
  for (const rule of policy.get('login')?.checks ?? []) {
    if (await rule.check(ctx)) return true;
  }
  return false;
}

/**
 * Makes a prompt of the OAuth library, which is a reason to show a page, with one rule. A request
 * that forbids pages gets the error `interaction_required`.
 */
function promptOf(name: string, description: string, check: PromptRule) {
  const rule = new interactionPolicy.Check(name, description, 'interaction_required', check);
  return new interactionPolicy.Prompt({ name }, rule);
}

/**
 * Shows the login page if `acr_values` names AAL3, an assurance level of NIST SP 800-63B, and the
 * session does not have it. Reason: the OAuth library never asks for a login because of
 * `acr_values` (RFC 9470 §5). The values are voluntary, so that after the login the request goes on
 * even without AAL3. Upstream: searched 2026-11-25, none found; the policy is the library's way.
 * Tests: test/api/oauth/step-up.test.ts.
 */
const AAL3_REQUESTED = new interactionPolicy.Check(
  'acr_values',
  'none of the requested ACRs could be obtained',
  ({ oidc: { params, session, result } }) => {
    const values = params?.['acr_values'];
    const isWanted = typeof values === 'string' && values.split(' ').includes(AAL3);
    return isWanted && session?.acr !== AAL3 && !result?.login;
  },
);

/** The OAuth library's session of a browser. */
export type LibrarySession = NonNullable<KoaContextWithOIDC['oidc']['session']>;

/**
 * Removes the account from the OAuth library's session, with the authorizations of clients in it.
 * Reason: the library rejects a session whose account changes. `touched` makes the library save the
 * session. Upstream: #752, where the library ends such a session. Tests:
 * test/api/oauth/login-requirements.test.ts.
 */
export function removeAccount(session: LibrarySession): void {
  if (session.accountId === undefined) return;
  for (const name of ['accountId', 'loginTs', 'acr', 'amr', 'authorizations'] as const) {
    delete session[name];
  }
  Object.assign(session, { touched: true });
}

/**
 * Replaces `invalid_request` by the error that RFC 6749 §5.2 demands. It is `unauthorized_client`
 * for a grant type that the client may not use, and `invalid_client` for a client that does not
 * authenticate. Reason: the OAuth library uses the wrong code, and only its English message tells
 * the cases apart. Upstream: #288 mended the same for other errors. Tests:
 * test/unit/features/oidc/library-patches.test.ts.
 */
export function correctErrorCode(ctx: KoaContextWithOIDC): void {
  const body = ctx.body as { error?: string; error_description?: string };
  const message = ctx.status === 400 ? (body.error_description ?? '') : '';
  if (message.endsWith('is not allowed for this client')) body.error = 'unauthorized_client';
  if (message === 'no client authentication mechanism provided') {
    body.error = 'invalid_client';
    ctx.status = 401;
  }
}

/**
 * Two values that make the OAuth library refuse a request with the right error. Reason: the library
 * ignores an unknown response mode, and it does not fetch request objects. The caller therefore
 * replaces them by these values, which the library refuses. Upstream: searched 2026-11-25, none
 * found. Tests: test/api/oauth/oauth-edge.test.ts.
 */
export const UNSUPPORTED_RESPONSE_MODE = 'unsupported';
export const UNREADABLE_REQUEST_OBJECT = 'unreadable';

const NOTICE = /^oidc-provider (?:NOTICE|WARNING): /;
const CONSOLE_METHODS = ['info', 'warn'] as const;

/**
 * The logger for the notices that the OAuth library prints; undefined until the first call of
 * {@link logNotices}. If several applications run in this process, as in tests, it is that of the
 * newest one.
 */
let noticeLogger: Logger | undefined;

/**
 * Writes the notices that the OAuth library prints to the console to the log instead. Reason: the
 * library prints them once at start-up, in its own format, and offers no hook. Other console output
 * is unchanged. Upstream: #305 leads to `console`. Tests:
 * test/unit/features/oidc/library-patches.test.ts.
 */
export function logNotices(logger: Logger): void {
  const isPatched = noticeLogger !== undefined;
  noticeLogger = logger;
  if (isPatched) return;
  for (const method of CONSOLE_METHODS) {
    // oxlint-disable-next-line no-console -- the OAuth library writes its notices here
    const original = console[method].bind(console);
    // oxlint-disable-next-line no-console -- the OAuth library writes its notices here
    console[method] = (...words: unknown[]) => {
      const [first] = words;
      if (typeof first === 'string' && NOTICE.test(first)) {
        noticeLogger?.debug(first.replace(NOTICE, ''));
      } else original(...words);
    };
  }
}
