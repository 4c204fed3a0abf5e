import { Injectable } from '@nestjs/common';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { AuditLog } from '#domain/audit/audit.repository.js';
import { UserDirectory } from '#domain/directory/user-directory.service.js';
import type { ClientKind } from '#domain/oauth/clients/clients.repository.js';
import { displayHost, displayName } from '#domain/oauth/clients/display-name.js';
import type { SessionUser } from '#domain/sessions/session.js';
import { deleteSessionsOfClient } from '#domain/sessions/ended-sessions.repository.js';
import {
  revokeOwnCertificate,
  type RevokedOwnCertificate,
} from '#domain/ssh/own-certificates.repository.js';
import { withTransactionRetry } from '#platform/database/statements/transaction-retry.js';
import { DataSource } from '#platform/database/statements/typeorm.js';
import { DomainError } from '#platform/errors/domain-error.js';
import {
  countOwnAccess,
  endOwnGrants,
  listOwnApplications,
  type EndedAccess,
  type OwnApplicationRow,
} from './own-applications.repository.js';
import { ownCredential, type OwnCredential } from './own-credential.js';
import { listOwnIssuances, type EventRange } from './own-events.repository.js';
import { pageOf, type OwnPage } from './own-page.js';

/**
 * The pattern of the serial of an SSH certificate in a request. A serial is below 2^53, so it has
 * at most 16 digits.
 */
const SERIAL = /^\d{1,16}$/;

/** An application that a user signed in to. */
export interface OwnApplication {
  readonly id: string;
  /** The name of the application on one line; the client id if it has no name. */
  readonly name: string;
  readonly kind: ClientKind;
  /**
   * The hosts to which the browser returns after a sign-in to the application, so that the user
   * recognizes it.
   */
  readonly hosts: readonly string[];
  readonly scopes: readonly string[];
  readonly since: Date;
  readonly lastUsedAt: Date | null;
  /**
   * True if the application has a live grant of the user. False if the user only consented to the
   * application in the past.
   */
  readonly hasAccess: boolean;
}

/**
 * Lists and ends the access that others have in the name of a user: the issued credentials, and the
 * applications that the user signed in to.
 */
@Injectable()
export class OwnAccess {
  constructor(
    private readonly dataSource: DataSource,
    private readonly directory: UserDirectory,
    private readonly audit: AuditLog,
  ) {}

  /** Lists the credentials that were issued to a user, the newest first. */
  async credentials(userId: string, { after, limit }: EventRange): Promise<OwnPage<OwnCredential>> {
    const range = { after, limit: limit + 1 };
    const events = await listOwnIssuances(this.dataSource.manager, userId, range);
    const { items, next } = pageOf(events, limit);
    return { items: items.map(ownCredential), next };
  }

  /**
   * Revokes one live SSH certificate of a user. The next key revocation list names the certificate,
   * so that hosts refuse it.
   *
   * @throws DomainError not_found for a serial that is no live certificate of the user;
   *   account_inactive
   */
  async revokeCertificate(
    user: SessionUser,
    serial: string,
    origin: AuditOrigin,
  ): Promise<RevokedOwnCertificate> {
    return withTransactionRetry(this.dataSource, async (tx) => {
      await this.directory.lockActive(tx, user.id);
      const revoked = SERIAL.test(serial)
        ? await revokeOwnCertificate(tx, user.id, serial)
        : undefined;
      if (!revoked) throw new DomainError('not_found', 'You have no such live certificate.');
      await this.audit.record(tx, {
        type: 'ssh_certificate_revoked',
        actorId: user.id,
        subjectId: user.id,
        orgId: user.orgId,
        origin,
        details: { serial: revoked.serial, key_id: revoked.keyId },
      });
      return revoked;
    });
  }

  /** Lists the applications that a user signed in to, sorted by name. */
  async applications(userId: string): Promise<OwnApplication[]> {
    const rows = await listOwnApplications(this.dataSource.manager, userId);
    return rows.map(ownApplication);
  }

  /**
   * Ends the access that an application has in the name of a user, in one transaction. Of several
   * such requests at the same time, exactly one succeeds.
   *
   * @throws DomainError not_found for a client that has no access in the name of the user;
   *   account_inactive
   */
  async endApplication(
    user: SessionUser,
    clientId: string,
    origin: AuditOrigin,
  ): Promise<EndedAccess> {
    return withTransactionRetry(this.dataSource, async (tx) => {
      await this.directory.lockActive(tx, user.id);
      const live = await countOwnAccess(tx, user.id, clientId);
      const sessions = await deleteSessionsOfClient(tx, user.id, clientId);
      const hadConsent = await endOwnGrants(tx, user.id, clientId);
      const ended = { sessions, ...live };
      const hadAccess = hadConsent || sessions + live.grants + live.tokens > 0;
      if (!hadAccess)
        throw new DomainError('not_found', 'You have not signed in to this application.');
      await this.audit.record(tx, {
        type: 'oauth_access_ended',
        actorId: user.id,
        subjectId: user.id,
        orgId: user.orgId,
        origin,
        details: { client_id: clientId, ...ended },
      });
      return ended;
    });
  }
}

function ownApplication(row: OwnApplicationRow): OwnApplication {
  const { id, name, kind, redirectUris, grants, since, lastUsedAt } = row;
  return {
    id,
    name: displayName({ clientId: id, clientName: name ?? undefined }),
    kind,
    hosts: [...new Set(wordsOf(redirectUris).map(displayHost))].filter(Boolean).toSorted(),
    scopes: [...new Set((grants ?? []).flatMap(scopesOf))].toSorted(),
    since,
    lastUsedAt,
    hasAccess: grants !== null,
  };
}

/**
 * Returns all scopes of a grant. The payload that the OAuth library stores has one space-separated
 * text of scopes for OpenID Connect, and one for each resource (RFC 8707).
 */
function scopesOf({ openid, resources }: Readonly<Record<string, unknown>>): string[] {
  const scope = (openid as { scope?: unknown } | undefined)?.scope;
  const texts = [scope, ...Object.values(resources ?? {})];
  return texts.flatMap((text) => (typeof text === 'string' ? text.split(' ') : [])).filter(Boolean);
}

function wordsOf(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((each) => typeof each === 'string') : [];
}
