import type { Request, Response } from 'express';
import type { Denied } from '#domain/access/issuance/issuance.repository.js';
import type { ArtifactKey } from '#domain/oauth/grants/artifacts.repository.js';
import type { RecordedConsent } from '#domain/oauth/clients/dynamic-clients.repository.js';
import type { LiveGrant } from '#domain/oauth/grants/live-grant.js';
import type { ResourceOwner } from '#domain/oauth/grants/resource-owner.js';
import type { KoaContextWithOIDC } from '../protocol/library.js';

/** Facts about one OAuth request that the hooks and adapters of the OAuth library share. */
export interface RequestContext {
  /**
   * The user of the grant or of the browser's session; null if a look-up found no user, and
   * undefined before the look-up.
   */
  resourceOwner?: ResourceOwner | null;
  /**
   * The grant that was looked up last, so that later steps need no second query. `found` is
   * undefined if no tokens may be issued for the grant any more.
   */
  grant?: { readonly id: string; readonly found: LiveGrant | undefined };
  /**
   * The look-up of the consent that the user gave to the client, if the client is an application of
   * the user's organization. It is undefined until a step needs the consent.
   */
  consent?: Promise<RecordedConsent | undefined>;
  /**
   * The token that this request exchanges (RFC 8693). The new grant ends with the grant of that
   * token.
   */
  subject?: { readonly grantId: string; readonly clientId: string };
  /**
   * The Kubernetes cluster that the new token is for. If no such cluster is registered, the id is
   * undefined.
   */
  cluster?: { readonly resource: string; readonly id: string | undefined };
  /**
   * True if a code was redeemed a second time so soon that the response to its first use may still
   * be on its way.
   */
  isReusedAtOnce?: boolean;
  /**
   * The time at which the user touched the key in the login that gave this request's code, in
   * seconds since 1970.
   */
  codeAuthTime?: number;
  /** The id of the session that this request opened for `svc-cli` by redeeming its code. */
  openedSession?: string;
  /**
   * The look-ups that began before the OAuth library asked for them. The key is the model (the
   * library's name for a kind of record) and the id. Each result is used once, so that a second
   * look-up sees the present state.
   */
  ahead?: Map<string, Promise<unknown>>;
  /**
   * The code or pushed request that this request has marked as used. The mark is removed if the key
   * service does not sign the tokens.
   */
  consumed?: ArtifactKey;
  /**
   * The tokens that this request has stored. If the key service does not sign them, the tokens are
   * revoked.
   */
  issued?: ArtifactKey[];
  /**
   * The reason why the client does not admit the user of an authorization request. An early check
   * may set it, but the statement that saves the grant makes the final decision.
   */
  refusedReach?: Denied | undefined;
  /**
   * The error that ends an authorization request, or a fault of the server in any OAuth request. It
   * is set even if the client does not receive the error.
   */
  authorizationError?: Error;
}

/**
 * The key under which the context is stored on its request. A WeakMap of all requests would cost
 * time in the garbage collector.
 */
const CONTEXT = Symbol('OAuth request context');
type RequestWithContext = KoaContextWithOIDC['req'] & { [CONTEXT]?: RequestContext };

/** An object of the OAuth library that has the HTTP request. */
export type HasRequest = Pick<KoaContextWithOIDC, 'req'>;

/** Returns the context of a request. It is the same object for all hooks of one request. */
export function requestContextOf({ req }: { readonly req: RequestWithContext }): RequestContext {
  return (req[CONTEXT] ??= {});
}

/**
 * Returns the OAuth library's context of the request that is being answered; undefined outside of a
 * request.
 */
export type CurrentContext = () => KoaContextWithOIDC | undefined;

/** Returns the Express request that the OAuth library was called with. */
export function requestOf(ctx: HasRequest): Request {
  return ctx.req as Request;
}

/** Returns the Express response that the OAuth library was called with. */
export function responseOf(ctx: Pick<KoaContextWithOIDC, 'res'>): Response {
  return ctx.res as Response;
}

/** The fields of a form; a field that came several times is a list. */
export type FormFields = Readonly<Record<string, string | readonly string[]>> | undefined;

/** Returns the fields of a form as a query. */
export function queryOf(fields: FormFields): URLSearchParams {
  return new URLSearchParams(
    Object.entries(fields ?? {}).flatMap(([name, values]) =>
      [values].flat().map((value): [string, string] => [name, value]),
    ),
  );
}

/**
 * Stores a look-up that has already begun, because the OAuth library will probably need its result
 * later in this request. Look-ups that run at the same time wait only once for the network between
 * service and database.
 */
export function lookAhead(request: HasRequest, model: string, id: string, found: Promise<unknown>) {
  found.catch(() => undefined); // the caller that takes the look-up sees its failure
  (requestContextOf(request).ahead ??= new Map()).set(`${model} ${id}`, found);
}

/**
 * Takes a look-up that {@link lookAhead} stored; undefined if there is none, or if it was already
 * taken.
 */
export function takeAhead(
  request: HasRequest | undefined,
  model: string,
  id: string,
): Promise<unknown> | undefined {
  const ahead = request && requestContextOf(request).ahead;
  const key = `${model} ${id}`;
  const found = ahead?.get(key);
  ahead?.delete(key);
  return found;
}
