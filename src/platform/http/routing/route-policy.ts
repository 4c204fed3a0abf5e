import type { ZodType } from 'zod';
import type { ErrorCode } from '#platform/errors/catalogue.js';

/**
 * The ways to read a body. `json` and `scim` read JSON; `form` and `fields` read a form, in which
 * only `fields` allows a name to occur twice. `raw` keeps the bytes of a JSON text, because a
 * signature covers them. `none` reads no body at all.
 */
export type BodyKind = 'json' | 'scim' | 'form' | 'fields' | 'raw' | 'none';

/** The rule of a route about the body of its requests. */
export interface BodyRule {
  readonly kind: BodyKind;
  /** The largest size of the body in bytes. It also limits a body that the route does not read. */
  readonly max: number;
}

/**
 * The scripts and pages that may use a route. `api`: scripts of any origin read its responses.
 * `ui`: our own pages and those of SVC_CORS_ORIGINS. `navigation`: no script; a browser opens the
 * response as a page of its own.
 */
export type Audience = 'api' | 'ui' | 'navigation';

/** The formats of errors: three for programs, and HTML for people. */
export type ErrorFormat = 'problem' | 'oauth' | 'scim' | 'html';

/**
 * The origins from which a browser may send a write. `own`: our own origin, if a cookie
 * authenticates the request. `strict`: our own origin in every case. `ui`: as `own`, and the
 * origins of SVC_CORS_ORIGINS. `any`: every origin, since the route reads no cookie.
 */
export type OriginRule = 'own' | 'strict' | 'ui' | 'any';

/**
 * The rule about the caller of a route. Its `session` decides the type that `@Caller()` gives.
 *
 * - `none`: the service looks up no session, and there is no caller.
 * - `optional`: a live session, or undefined if the request carries no token.
 * - `any`: a live session, with or without a login by security key.
 * - `verified`: a live session in which the user logged in with a security key.
 * - `provisioner`: the identity provider of an organization, by its SCIM token.
 * - `client`: an OAuth client itself, by a token of the client credentials grant (RFC 6749 §4.4)
 *   that has the scope of the rule.
 * - `program`: a program of an organization, by its API token that has the scope of the rule.
 */
export type AuthRule =
  | (Unscoped & { readonly session: 'none' | 'optional' | 'any'; readonly origin: OriginRule })
  | (Unscoped & { readonly session: 'provisioner'; readonly origin: 'any' })
  | {
      readonly session: 'client' | 'program';
      readonly origin: 'any';
      readonly scope: string;
      readonly touchedWithinSeconds?: undefined;
      readonly headerOnly: true;
    }
  | {
      readonly session: 'verified';
      readonly origin: OriginRule;
      /**
       * The OAuth scope that an access token needs. A route without a scope accepts no OAuth access
       * token.
       */
      readonly scope?: string;
      /**
       * The largest age, in seconds, of the last touch of the security key. If the last touch is
       * older, the response is a step-up challenge (RFC 9470 §3).
       */
      readonly touchedWithinSeconds?: number;
      /**
       * True for a route at which a cookie does not authenticate. A browser would send the cookie
       * with a GET that a page of any origin caused.
       */
      readonly headerOnly?: boolean;
    };

interface Unscoped {
  readonly scope?: undefined;
  readonly touchedWithinSeconds?: undefined;
  readonly headerOnly?: undefined;
}

/**
 * The responses of a route by status. A Zod schema describes a JSON body, a record of media types
 * describes other bodies, and null means no body.
 */
export type Answers = Readonly<Record<number, ZodType | MediaTypes | null>>;

/** Bodies by media type: a Zod schema if the body is JSON, otherwise a text or bytes. */
export type MediaTypes = Readonly<Record<string, ZodType | 'text' | 'binary'>>;

/**
 * The ways in which an OAuth client authenticates on a route that reads no session. They are: as
 * the client itself (RFC 6749 §2.3), by an access token, or by a registration token.
 */
export type ClientProof = 'client' | 'accessToken' | 'registrationToken';

/**
 * The parts of a request that no decorator of the handler validates. The route describes them only
 * for `/openapi.json`.
 */
export interface AskedParts {
  readonly body?: ZodType;
  readonly query?: ZodType;
  /** The parameters of the path, with their meaning. */
  readonly path?: Readonly<Record<string, string>>;
  /** The headers that the route reads, with their meaning. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The way in which an OAuth client authenticates; undefined if the route demands none. */
  readonly proof?: ClientProof;
}

/** The rule of a route that everyone may call: it reads no session and no cookie. */
export const PUBLIC = { session: 'none', origin: 'any' } as const satisfies AuthRule;

/**
 * The moment at which a route decides about the rate limit and the caller of a request. If the
 * route has a caller and this process does not know the token from before, it is always `first`.
 *
 * - `first`: before the handler runs.
 * - `within`: the statement of the handler decides about both, in addition to its own work.
 * - `beside`: the handler only reads, and it reads while both are decided. Nothing of what it reads
 *   is sent before that.
 */
export type AdmissionMoment = 'first' | 'within' | 'beside';

/**
 * The name of a tier of the rate limit. A route belongs to one tier, or is `unlimited`, which means
 * that it has no rate limit. `platform/rate-limit` has the rate of each tier.
 */
export type TierName = 'authentication' | 'issuance' | 'general';

/**
 * The rules of a route, which the steps before the router, the guards and the error renderer apply.
 */
export interface RoutePolicy {
  readonly tier: TierName | 'unlimited';
  readonly body: BodyRule;
  readonly audience: Audience;
  /**
   * The format of errors. `negotiated`: the request's `Accept` decides between HTML and a problem
   * document.
   */
  readonly errors: ErrorFormat | 'negotiated';
  readonly auth: AuthRule;
  /** The moment at which the rate limit and the caller are decided. */
  readonly admission: AdmissionMoment;
  /**
   * The hosts at which the route answers. `any`: every host, since health probes know the service
   * by its IP address alone.
   */
  readonly hosts: 'own' | 'any';
  /** True if the route also answers at the hosts of tenants, which serve no other route. */
  readonly tenantHosts: boolean;
  /**
   * True if the plain HTTP listener, which is open beside the TLS listener, answers the route
   * itself instead of redirecting to https.
   */
  readonly plainHttp: boolean;
  /**
   * True if HEAD works like GET. False if a GET has an effect, such as the use of a code that is
   * valid once.
   */
  readonly head: boolean;
  /**
   * True if a rate-limited request of the route gets the earliest free moment to try again, and not
   * the moment after all other waiting requests. It is for routes that remove access, because
   * access lasts while such a request waits.
   */
  readonly goesFirst: boolean;
  /**
   * A status that this route adds to those that always count as a failed attempt to authenticate
   * (`platform/rate-limit/failed-attempt.ts`). Failed attempts are counted for each network of
   * clients.
   */
  readonly failureStatus: number | undefined;
  /**
   * True if the route may insert a row for a request without a user or an authenticated client.
   * These rows count against the limit of the client's network. The code that inserts a row calls
   * `noteRow`.
   */
  readonly anonymousRows: boolean;
  /**
   * True if OAuth protects the route. A 401 of the route then names the metadata of the protected
   * resource (RFC 9728 §5.1).
   */
  readonly protectedResource: boolean;
  /**
   * True if the route serves the metadata of a protected resource (RFC 9728 §3), which a 401 of
   * that resource names.
   */
  readonly resourceMetadata: boolean;
  /** A summary of one line for the API reference. */
  readonly summary: string;
  /**
   * The name of the operation in `/openapi.json`, which never changes. It is a verb and a noun in
   * camel case, such as `listMembers`. Generators of clients make the names of functions from it.
   */
  readonly operation: string;
  /** The responses of the route when it succeeds, by status, for `/openapi.json`. */
  readonly answers: Answers;
  /** The errors of the route beyond those that follow from its other rules, for `/openapi.json`. */
  readonly refusals: readonly ErrorCode[];
  /** The parts of a request that no decorator of the handler validates, for `/openapi.json`. */
  readonly asks: AskedParts;
  /** `strict`: a query parameter that the route does not know is refused. `open`: it is ignored. */
  readonly query: 'strict' | 'open';
  /** The query parameters of the route, as the schema of its handler names them. */
  readonly parameters: readonly string[];
}

const KIB = 1024;

/**
 * The policy of a request that no route takes, if no module declares rules for its path. The policy
 * of each route is this one with changes.
 */
export const UNMATCHED_POLICY: RoutePolicy = {
  tier: 'unlimited',
  body: { kind: 'none', max: 256 * KIB },
  audience: 'api',
  errors: 'negotiated',
  auth: PUBLIC,
  admission: 'first',
  hosts: 'own',
  tenantHosts: false,
  plainHttp: false,
  head: true,
  goesFirst: false,
  failureStatus: undefined,
  anonymousRows: false,
  protectedResource: false,
  resourceMetadata: false,
  summary: '',
  operation: '',
  answers: {},
  refusals: [],
  asks: {},
  query: 'open',
  parameters: [],
};

/** Changes to a policy: rules that replace those of a more general policy. */
export type PolicyChanges = Partial<Omit<RoutePolicy, 'body' | 'parameters'>> & {
  readonly body?: Partial<BodyRule>;
};

/** Applies changes to a policy in their order, the most general first. */
export function withChanges(
  policy: RoutePolicy,
  ...changes: readonly (PolicyChanges | undefined)[]
): RoutePolicy {
  return changes.reduce<RoutePolicy>(
    (base, change) => ({ ...base, ...change, body: { ...base.body, ...change?.body } }),
    policy,
  );
}

/**
 * Returns the policy of a request whose path has routes, but none with its method. The request
 * reaches no handler, so the rules about handlers are those of {@link UNMATCHED_POLICY}.
 */
export function asUnmatched(policy: RoutePolicy): RoutePolicy {
  const { auth, admission, goesFirst, failureStatus, anonymousRows, ...more } = UNMATCHED_POLICY;
  const { head, summary, operation, answers, refusals, asks, parameters } = more;
  const rest = { head, summary, operation, answers, refusals, asks, parameters };
  const rules = { auth, admission, goesFirst, failureStatus, anonymousRows };
  return withChanges(policy, { body: { kind: 'none' }, ...rules, ...rest });
}
