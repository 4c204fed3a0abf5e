import { isIP } from 'node:net';
import { Injectable } from '@nestjs/common';
import { DataSource, type EntityManager } from 'typeorm';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { AuditLog } from '#domain/audit/audit.repository.js';
import { artifactId } from '#domain/grants/artifact.js';
import { DeviceCodesRepository } from '#domain/grants/device-codes.repository.js';
import type { ResourceOwner } from '#domain/grants/resource-owner.js';
import { GrantsRepository } from '#domain/grants/grants.repository.js';
import { CLI_CLIENT_ID } from '#domain/sessions/access-token.js';
import { RECENT_TOUCH } from '#domain/sessions/recent-touch.js';
import type { SessionOrigin } from '#domain/sessions/session.js';
import { Sessions } from '#domain/sessions/sessions.service.js';
import { hashOpaqueToken } from '#platform/crypto/opaque-token.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { epochSeconds } from '../protocol/claims.js';
import { newGrantId } from '../protocol/grant-id.js';
import { scopeOfCode } from './device-grant.js';
import { DeviceRequests, decided, type DeviceRequest } from './device-requests.service.js';
import { normalizeUserCode } from '../protocol/user-code.js';

/** A session that a grant hangs on, and when it ends. */
interface Ground {
  readonly id: string;
  readonly expiresAt: Date;
}

/** What becomes of a device that waits: a person approves it with a touch of their key, or refuses it. */
@Injectable()
export class DeviceApprovals {
  constructor(
    private readonly dataSource: DataSource,
    private readonly requests: DeviceRequests,
    private readonly codes: DeviceCodesRepository,
    private readonly grants: GrantsRepository,
    private readonly sessions: Sessions,
    private readonly audit: AuditLog,
  ) {}

  /**
   * Approves a device, once: whoever else tries is told that it was decided. The client gets the proof of the assertion that
   * the person made within the last minute.
   *
   * @param token of the browser's own session, hardware-verified or, in certification test mode, synthetic
   * @throws DomainError unauthenticated, insufficient_user_authentication, not_found and what {@link DeviceRequests.find} does
   */
  async approve(token: string | undefined, typed: string, origin: AuditOrigin): Promise<void> {
    const known = await this.#holder(token);
    const request = await this.#find(known.holder, typed);
    await this.dataSource.transaction(async (tx) => {
      const { userId } = known.holder;
      const holder = await this.grants.lockResourceOwnerOfBrowser(tx, userId, known.tokenHash);
      if (!holder) throw ended();
      const { hardwareVerified, authTime } = holder;
      if (hardwareVerified) {
        this.sessions.assertTouchedWithin(RECENT_TOUCH.own, authTime, { scheme: 'Bearer' });
      }
      const grantId = await this.#grant(tx, holder, request);
      const approval = {
        grantId: artifactId(grantId),
        userId,
        payload: payloadOf(grantId, holder, request),
      };
      if (!(await this.codes.approve(tx, request.id, approval))) throw decided();
      await this.audit.record(tx, {
        type: 'device_approved',
        actorId: userId,
        subjectId: userId,
        orgId: holder.orgId,
        origin,
        details: {
          client_id: request.client.clientId,
          scope: scopeOfCode(request.grant),
          device: { ip: request.device.ip, user_agent: request.device.userAgent },
        },
      });
    });
  }

  /** Refuses a device; no new assertion is needed for that. Errors as above. */
  async deny(token: string | undefined, typed: string): Promise<void> {
    const { holder } = await this.#holder(token);
    await this.#find(holder, typed);
    if (!(await this.denyUnseen(typed))) throw decided();
  }

  /** Refuses a device for nobody in particular: certification test mode only. False when there is none to refuse. */
  denyUnseen(typed: string): Promise<boolean> {
    return this.codes.refuse(this.dataSource.manager, normalizeUserCode(typed));
  }

  async #holder(token: string | undefined): Promise<{ holder: ResourceOwner; tokenHash: Buffer }> {
    const tokenHash = hashOpaqueToken(token ?? '');
    const [holder] = await this.grants.resourceOwnersOfBrowsers(this.dataSource.manager, [
      tokenHash,
    ]);
    if (!holder) throw ended();
    return { holder, tokenHash };
  }

  async #find(holder: ResourceOwner, typed: string): Promise<DeviceRequest> {
    const request = await this.requests.find(holder, typed);
    if (!request) throw new DomainError('not_found', 'No device waits with this code.');
    return request;
  }

  /** Writes the grant that the device's tokens will hang on; returns the library's id of it. */
  async #grant(tx: EntityManager, holder: ResourceOwner, request: DeviceRequest): Promise<string> {
    const { clientId } = request.client;
    const ground = await this.#ground(tx, holder, clientId, request.device);
    const id = newGrantId(ground.id);
    const { scopes, resources } = request.grant;
    const now = epochSeconds(new Date());
    const exp = epochSeconds(ground.expiresAt);
    const isWritten = await this.grants.write(tx, {
      id: artifactId(id),
      clientId,
      userId: holder.userId,
      sessionId: ground.id,
      expiresIn: exp - now,
      payload: {
        kind: 'Grant',
        accountId: holder.userId,
        clientId,
        iat: now,
        exp,
        ...(scopes.length > 0 && { openid: { scope: scopes.join(' ') } }),
        ...(resources.size > 0 && {
          resources: Object.fromEntries([...resources].map(([at, there]) => [at, there.join(' ')])),
        }),
      },
    });
    if (!isWritten) throw ended();
    return id;
  }

  /**
   * What the grant hangs on: the browser's session; but our command line has one of its own, which the browser's logout
   * leaves, and the removal of the key ends.
   */
  async #ground(
    tx: EntityManager,
    holder: ResourceOwner,
    clientId: string,
    device: DeviceRequest['device'],
  ): Promise<Ground> {
    if (clientId !== CLI_CLIENT_ID) return { id: holder.sessionId, expiresAt: holder.expiresAt };
    const { userId, authTime, amr, acr, authenticatorId } = holder;
    const proven = { userId, authTime, amr, acr, clientId };
    return this.sessions.open(
      tx,
      authenticatorId === null
        ? { level: 'synthetic', ...proven }
        : { level: 'verified', authenticatorId, ...proven },
      openedFrom(device),
    );
  }
}

/** The device that gets the session, and not the browser that approves it. An address that is none was not seen. */
function openedFrom({ ip, userAgent }: DeviceRequest['device']): SessionOrigin {
  const isAddress = ip !== null && isIP(ip) > 0 && !ip.includes('%');
  return { ip: isAddress ? ip : undefined, userAgent: userAgent.slice(0, 512) || undefined };
}

/** What the library's token endpoint expects in a code that was approved. */
function payloadOf(
  grantId: string,
  holder: ResourceOwner,
  { params, grant }: DeviceRequest,
): object {
  const scope = scopeOfCode(grant);
  return {
    accountId: holder.userId,
    grantId,
    authTime: epochSeconds(holder.authTime),
    ...(holder.acr !== null && { acr: holder.acr }),
    ...(holder.amr.length > 0 && { amr: holder.amr }),
    ...(scope !== '' && { scope }),
    ...(params.resource !== undefined && { resource: params.resource }),
  };
}

function ended(): DomainError {
  return new DomainError('unauthenticated', 'Log in with your security key first.');
}
