import { Injectable } from '@nestjs/common';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { AuditLog } from '#domain/audit/audit.repository.js';
import { UserDirectory } from '#domain/directory/user-directory.service.js';
import type { ClientKind } from '#domain/oauth/clients/clients.repository.js';
import { displayHost, displayName } from '#domain/oauth/clients/display-name.js';
import type { SessionUser } from '#domain/sessions/session.js';
import { deleteSessionsOfClient } from '#domain/sessions/ended-sessions.repository.js';
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

/** An application that a user signed in to. */
export interface OwnApplication {
  readonly id: string;
  /** The name of the application on one line; the client id if it has no name. */
  readonly name: string;
  readonly kind: ClientKind;
  /** The hosts to which the application is redirected. */
  readonly hosts: readonly string[];
  readonly scopes: readonly string[];
  readonly since: Date;
  readonly lastUsedAt: Date | null;
  /** False for an application that the user consented to, and that has no access now. */
  readonly hasAccess: boolean;
}

/** The applications that a user signed in to. */
@Injectable()
export class OwnApplications {
  constructor(
    private readonly dataSource: DataSource,
    private readonly directory: UserDirectory,
    private readonly audit: AuditLog,
  ) {}

  /** Lists the applications of a user, by name. */
  async list(userId: string): Promise<OwnApplication[]> {
    const rows = await listOwnApplications(this.dataSource.manager, userId);
    return rows.map(ownApplication);
  }

  /**
   * Ends the access of an application to a user, in one transaction. If several requests do so at
   * once, exactly one succeeds.
   *
   * @throws DomainError not_found for a client without access to the user; account_inactive
   */
  async end(user: SessionUser, clientId: string, origin: AuditOrigin): Promise<EndedAccess> {
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
 * Returns the scopes of a grant from the payload of the OAuth library, which has one text for
 * OpenID Connect and one for each resource (RFC 8707).
 */
function scopesOf({ openid, resources }: Readonly<Record<string, unknown>>): string[] {
  const scope = (openid as { scope?: unknown } | undefined)?.scope;
  const texts = [scope, ...Object.values(resources ?? {})];
  return texts.flatMap((text) => (typeof text === 'string' ? text.split(' ') : [])).filter(Boolean);
}

function wordsOf(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((each) => typeof each === 'string') : [];
}
