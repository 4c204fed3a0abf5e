import { errors } from '../protocol/library.js';
import { OIDC_SCOPES, scopeWords } from '../protocol/scopes.js';
import type { SubjectToken } from './subject-token.js';

const OPENID_CONNECT: ReadonlySet<string> = new Set(OIDC_SCOPES);

/**
 * Returns the resource server of a new token, which is that of the exchanged token (the subject
 * token). An opaque subject token may also be exchanged for a token of a server that its grant
 * contains.
 *
 * @param targets the targets that the client names
 * @returns undefined for an opaque token without a resource server
 * @throws InvalidTarget if the client names several targets, or one for which the exchanged token
 *   is not valid
 */
export function targetOf(
  targets: readonly string[],
  { audience, grantedAt }: Pick<SubjectToken, 'audience' | 'grantedAt'>,
): string | undefined {
  const [target = audience, ...others] = new Set(targets);
  if (others.length > 0) throw new errors.InvalidTarget('name one resource at most');
  const isIts = target === audience;
  const isAgreed = audience === undefined && target !== undefined && grantedAt(target).length > 0;
  if (!isIts && !isAgreed) throw new errors.InvalidTarget('the subject token is not good there');
  return target;
}

/** The facts that limit the scopes of the new token in an exchange. */
export interface Bounds {
  readonly subject: Pick<SubjectToken, 'audience' | 'scopes' | 'grantedAt'>;
  /** The client that gets the new token. */
  readonly client: { readonly scope?: string | undefined };
  /** The resource server of the new token, with the scopes that the client registered. */
  readonly server: { readonly scopes: ReadonlySet<string>; identifier(): string } | undefined;
}

/**
 * Returns the scopes of the new token in an exchange: those of the exchanged token that the client
 * and the resource server allow.
 *
 * @param requested the requested scopes; an empty list stands for all allowed scopes
 * @throws InvalidScope for a requested scope that is not allowed
 */
export function narrowedScopes(
  requested: readonly string[],
  { subject, client, server }: Bounds,
): string[] {
  const registered = new Set(scopeWords(client.scope));
  const granted =
    server && subject.audience === undefined
      ? new Set(subject.grantedAt(server.identifier()))
      : undefined;
  const allowed = subject.scopes.filter(
    (scope) =>
      (registered.has(scope) || (server !== undefined && !OPENID_CONNECT.has(scope))) &&
      (server?.scopes.has(scope) ?? true) &&
      (granted?.has(scope) ?? true),
  );
  const beyond = requested.filter((scope) => !allowed.includes(scope));
  if (beyond.length > 0) {
    throw new errors.InvalidScope('beyond the subject token or this client', beyond.join(' '));
  }
  return requested.length > 0 ? [...requested] : allowed;
}
