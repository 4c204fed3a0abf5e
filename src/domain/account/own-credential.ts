import type { IssuanceEvent } from './own-events.repository.js';

/**
 * The kinds of credentials that are issued in the name of a user. `kubernetes`: a token for a
 * cluster. `oidc`: the tokens of another application.
 */
export const CREDENTIAL_KINDS = ['ssh', 'aws', 'github', 'kubernetes', 'oidc'] as const;

/** One of {@link CREDENTIAL_KINDS}. */
export type CredentialKind = (typeof CREDENTIAL_KINDS)[number];

/**
 * A credential that was issued in the name of a user, as the audit event of its issuance describes
 * it.
 */
export interface OwnCredential {
  readonly id: string;
  readonly kind: CredentialKind;
  readonly issuedAt: Date;
  /**
   * The expiry; null if the audit event has none, such as for a token of an application, which ends
   * with its grant.
   */
  readonly validUntil: Date | null;
  /**
   * The time at which the SSH certificate was revoked; null if it was not, and for any other kind
   * of credential.
   */
  readonly revokedAt: Date | null;
  /** The serial of an SSH certificate; null for any other kind of credential. */
  readonly serial: string | null;
  readonly principals: readonly string[];
  /**
   * The thing that the credential gives access to: a role of AWS, repositories, a cluster, or
   * scopes of an application. Null for an SSH certificate, or if the event names none.
   */
  readonly target: string | null;
  readonly clientId: string | null;
  readonly clientName: string | null;
  readonly ip: string | null;
  readonly userAgent: string | null;
  readonly requestId: string | null;
}

/** Reads the description of a credential from the audit event of its issuance. */
export function ownCredential(event: IssuanceEvent): OwnCredential {
  const { details } = event;
  const kind = kindOf(event);
  return {
    id: event.id,
    kind,
    issuedAt: event.createdAt,
    validUntil: timeOf(details['valid_before'] ?? details['expires_at']),
    revokedAt: event.revokedAt,
    serial: kind === 'ssh' ? textOf(details['serial']) : null,
    principals: kind === 'ssh' ? textsOf(details['principals']) : [],
    target: targetOf(kind, details),
    clientId: textOf(details['client_id']),
    clientName: event.clientName,
    ip: event.ip,
    userAgent: event.userAgent,
    requestId: event.requestId,
  };
}

/**
 * Returns true for an SSH certificate that hosts still accept at the given time, so that its user
 * can revoke it.
 */
export function isRevocable({ kind, validUntil, revokedAt }: OwnCredential, now: Date): boolean {
  return kind === 'ssh' && revokedAt === null && validUntil !== null && validUntil > now;
}

function kindOf({ type, details }: IssuanceEvent): CredentialKind {
  if (type === 'ssh_credential') return 'ssh';
  if (type === 'aws_credential') return 'aws';
  if (type === 'github_credential') return 'github';
  return textOf(details['application_id']) === null ? 'oidc' : 'kubernetes';
}

function targetOf(kind: CredentialKind, details: IssuanceEvent['details']): string | null {
  if (kind === 'aws') return textOf(details['role_arn']);
  if (kind === 'kubernetes') return textsOf(details['audience']).join(' ') || null;
  if (kind === 'oidc') return textOf(details['scope']);
  if (kind !== 'github') return null;
  const owner = textOf(details['owner']);
  const repositories = textsOf(details['repositories']);
  if (repositories.length === 0) return owner;
  return repositories.map((name) => `${owner}/${name}`).join(', ');
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}

function textsOf(value: unknown): string[] {
  const values: unknown[] = Array.isArray(value) ? value : [value];
  return values.filter((each) => typeof each === 'string');
}

function timeOf(value: unknown): Date | null {
  const time = typeof value === 'string' ? new Date(value) : undefined;
  return time === undefined || Number.isNaN(time.getTime()) ? null : time;
}
