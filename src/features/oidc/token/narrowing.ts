import { errors } from 'oidc-provider';
import { OIDC_SCOPES, scopeWords } from '../protocol/scopes.js';
import type { Subject } from './subject-tokens.service.js';

const OPENID_CONNECT: ReadonlySet<string> = new Set(OIDC_SCOPES);

/**
 * The resource server that a new token is for: that of the subject token. One that is for none may become one for a server that
 * its person agreed to.
 *
 * @param targets what the client names
 * @throws InvalidTarget
 */
export function targetOf(
  targets: readonly string[],
  { audience, grantedAt }: Pick<Subject, 'audience' | 'grantedAt'>,
): string | undefined {
  const [target = audience, ...others] = new Set(targets);
  if (others.length > 0) throw new errors.InvalidTarget('name one resource at most');
  const isIts = target === audience;
  const isAgreed = audience === undefined && target !== undefined && grantedAt(target).length > 0;
  if (!isIts && !isAgreed) throw new errors.InvalidTarget('the subject token is not good there');
  return target;
}

/** What bounds the scopes of a new token. */
export interface Bounds {
  readonly subject: Pick<Subject, 'audience' | 'scopes' | 'grantedAt'>;
  /** The client that gets it. */
  readonly client: { readonly scope?: string | undefined };
  /** The server it is for, as that client knows it. */
  readonly server: { readonly scopes: ReadonlySet<string>; identifier(): string } | undefined;
}

/**
 * The scopes of a new token: what the subject token has, and both the client and the server it is for may have too.
 *
 * @param asked none stands for all there are
 * @throws InvalidScope for any that is beyond that
 */
export function narrowedScopes(
  asked: readonly string[],
  { subject, client, server }: Bounds,
): string[] {
  const registered = new Set(scopeWords(client.scope));
  const granted =
    server && subject.audience === undefined
      ? new Set(subject.grantedAt(server.identifier()))
      : undefined;
  const within = subject.scopes.filter(
    (scope) =>
      (registered.has(scope) || (server !== undefined && !OPENID_CONNECT.has(scope))) &&
      (server?.scopes.has(scope) ?? true) &&
      (granted?.has(scope) ?? true),
  );
  const beyond = asked.filter((scope) => !within.includes(scope));
  if (beyond.length > 0) {
    throw new errors.InvalidScope('beyond the subject token or this client', beyond.join(' '));
  }
  return asked.length > 0 ? [...asked] : within;
}
