import type { Request, Response } from 'express';
import type { KoaContextWithOIDC } from 'oidc-provider';
import type { ResourceOwner } from '#domain/grants/resource-owner.js';
import type { LiveGrant } from '#domain/grants/live-grant.js';

/** What a request was found to be about, for the hooks of the library that cannot ask by themselves. */
export interface Exchange {
  /** Who is behind the grant or the browser's session; null once it was found that nobody is. */
  holder?: ResourceOwner | null;
  /** The grant that it found last; its end in the same request takes it from here. */
  grant?: { readonly id: string; readonly found: LiveGrant | undefined };
  /** The token that this request exchanges (RFC 8693): what it gives ends with the grant of that token. */
  subject?: { readonly grantId: string; readonly clientId: string };
  /** That a code came again while whoever was first may still be waiting for their answer. */
  isReusedAtOnce?: boolean;
  /** The error that ends an authorization request, whether the client is told or not. */
  authorizationError?: Error;
}

/** Kept on the request itself: a WeakMap of every request in flight is work for the garbage collector. */
const EXCHANGE = Symbol('OAuth exchange');
type Known = KoaContextWithOIDC['req'] & { [EXCHANGE]?: Exchange };

/** The notes of a request: one object from its first hook to its last. */
export function exchangeOf({ req }: { readonly req: Known }): Exchange {
  return (req[EXCHANGE] ??= {});
}

/** The request as Express knows it: the library was called with it. */
export function requestOf(ctx: Pick<KoaContextWithOIDC, 'req'>): Request {
  return ctx.req as Request;
}

/** The response as Express knows it. */
export function responseOf(ctx: Pick<KoaContextWithOIDC, 'res'>): Response {
  return ctx.res as Response;
}
