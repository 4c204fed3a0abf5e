import { Injectable } from '@nestjs/common';
import { DataSource, type EntityManager } from '#platform/database/statements/typeorm.js';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { AuditLog } from '#domain/audit/audit.repository.js';
import { expectedDenial } from '#domain/access/issuance/expected-denial.repository.js';
import type { Denied } from '#domain/access/issuance/issuance.repository.js';
import {
  isAboutReach,
  recordRefusedAccess,
} from '#domain/access/issuance/refused-access.repository.js';
import { refusedIssuance, type DeniedSession } from '#domain/access/issuance/refused-issuance.js';
import { artifactId } from '#domain/oauth/grants/artifact.js';
import {
  approveDevice,
  holdDeviceGrant,
  refuseDevice,
  tryUserCode,
  DEVICE_GRANT_IS_OFF,
  MOST_WRONG_TRIES,
} from '#domain/oauth/grants/device-codes.repository.js';
import {
  lockResourceOwnerOfBrowser,
  resourceOwnersOfBrowsers,
  writeGrant,
} from '#domain/oauth/grants/grants.repository.js';
import type { ResourceOwner } from '#domain/oauth/grants/resource-owner.js';
import { CLI_CLIENT_ID } from '#domain/sessions/access-token.js';
import { RECENT_TOUCH } from '#domain/sessions/recent-touch.js';
import { Sessions } from '#domain/sessions/sessions.service.js';
import { systemClock } from '#platform/clock/clock.js';
import { hashOpaqueToken } from '#platform/crypto/opaque-token.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { DEVICE_GRANT } from '#domain/oauth/applications/grant-types.js';
import { OidcProvider } from '../engine/oidc-provider.service.js';
import { epochSeconds } from '../protocol/claims.js';
import type { OwnMetadata } from '../protocol/client-metadata.js';
import { newGrantId } from '../protocol/grant-id.js';
import type { Client } from '../protocol/library.js';
import { normalizeUserCode } from '../protocol/user-code.js';
import { NotReached, refusedApplication, TOO_MANY_GRANTS } from '../request/refused-reach.js';
import {
  approvedPayload,
  deviceGrant,
  grantPayload,
  originOfDevice,
  scopeOfCode,
  type DeviceParameters,
  type DeviceRequest,
} from './device-request.js';
import { withTransactionRetry } from '#platform/database/statements/transaction-retry.js';

/**
 * The facts by which the error of a denied request at `/device` is chosen. The session is always
 * that of a browser, because a user approves a device in a browser, and can touch the key again
 * there.
 */
const BROWSER: DeniedSession = { isOfDevice: false, challenge: { scheme: 'Bearer' } };

/**
 * The code and text of the error if an application is not allowed to sign devices in. The function
 * {@link refusedIssuance} uses them if the SQL statement of the approval refuses with the reason
 * `withheld`.
 */
const WITHHELD = ['issuance_refused', 'This application may not sign devices in.'] as const;

/**
 * The limit of wrong codes in certification test mode: the largest number that the column (int4)
 * can have, which no test reaches.
 */
const NO_LIMIT = 2 ** 31 - 1;

/**
 * Finds, approves and refuses devices that wait for a user (RFC 8628 §3.3), by the code that the
 * user types.
 */
@Injectable()
export class Devices {
  constructor(
    private readonly dataSource: DataSource,
    private readonly oidcProvider: OidcProvider,
    private readonly sessions: Sessions,
    private readonly auditLog: AuditLog,
  ) {}

  /**
   * Finds the device of a user code.
   *
   * @returns undefined for a wrong code, which counts toward the user's limit of wrong codes
   * @throws DomainError rate_limited after too many wrong codes; unauthenticated if the user was
   *   removed meanwhile; invalid_state for a code that was approved or refused; issuance_refused
   *   for a client that may not use devices, or an organization that has switched the device grant
   *   off
   */
  async find(resourceOwner: ResourceOwner, typed: string): Promise<DeviceRequest | undefined> {
    const { manager } = this.dataSource;
    const most = this.oidcProvider.isCertification ? NO_LIMIT : MOST_WRONG_TRIES;
    const { userId } = resourceOwner;
    const userCode = normalizeUserCode(typed);
    const tried = await tryUserCode(manager, userId, userCode, most);
    if (tried.kind === 'wrong') return undefined;
    if (tried.kind === 'gone') throw loginNeeded();
    if (tried.kind === 'locked') throw tooManyWrongCodes(tried.retryAfter);
    const { id, clientId, payload, isDecided } = tried.request;
    if (isDecided) throw alreadyDecided();
    await this.#assertAllowed(manager, resourceOwner);
    const client = await this.#findClient(clientId);
    const { params, deviceInfo } = payload as unknown as StoredDeviceCode;
    const { ip = null, userAgent = '' } = deviceInfo ?? {};
    const grant = deviceGrant(params, client, resourceOwner, this.oidcProvider.ownAudiences);
    return { id, userCode, client, params, device: { ip, userAgent }, grant };
  }

  /**
   * Refuses a device if its user is not assigned to the application, and returns true, so that the
   * device gets its answer at once. For any other user it returns false and changes nothing,
   * because the approval makes the other checks later.
   */
  async refuseUnassigned(
    { sessionId, userId }: ResourceOwner,
    { client, userCode }: DeviceRequest,
    origin: AuditOrigin,
  ): Promise<boolean> {
    const denied = await expectedDenial(this.dataSource.manager, sessionId, client.clientId);
    if (denied?.denial !== 'not_assigned') return false;
    await this.#refuseUnreached(userId, { client, userCode }, denied, origin);
    return true;
  }

  /**
   * Approves a device. A second approval of the same code fails. The user's last touch of the key
   * must be less than a minute ago. The time of that touch becomes the login time in the tokens of
   * the client.
   *
   * @param token the browser's session, which a security key verified, or the synthetic one of
   *   certification test mode
   * @throws DomainError unauthenticated, insufficient_user_authentication, not_assigned, not_found,
   *   and the errors of {@link Devices.find}
   */
  async approve(token: string | undefined, typed: string, origin: AuditOrigin): Promise<void> {
    const { userId, tokenHash, request } = await this.#findFor(token, typed);
    try {
      await this.#approve({ userId, tokenHash, request }, origin);
    } catch (error) {
      if (!(error instanceof NotReached)) throw error;
      await this.#refuseUnreached(userId, request, error.denied, origin);
      throw refusedIssuance(error.denied, WITHHELD, BROWSER);
    }
  }

  /**
   * Approves a device in a transaction.
   * @throws NotReached if its application does not admit the user
   */
  #approve(
    { userId, tokenHash, request }: { userId: string; tokenHash: Buffer; request: DeviceRequest },
    origin: AuditOrigin,
  ): Promise<void> {
    return withTransactionRetry(this.dataSource, async (tx) => {
      const resourceOwner = await lockResourceOwnerOfBrowser(tx, userId, tokenHash);
      if (!resourceOwner) throw loginNeeded();
      const { hardwareVerified, authTime } = resourceOwner;
      if (hardwareVerified) {
        const touch = { authTime, isOfDevice: false };
        this.sessions.assertTouchedWithin(RECENT_TOUCH.own, touch, { scheme: 'Bearer' });
      }
      await this.#assertAllowed(tx, resourceOwner);
      const grantId = await this.#writeGrant(tx, resourceOwner, request);
      const payload = approvedPayload(grantId, resourceOwner, request);
      const approval = { grantId: artifactId(grantId), userId, payload };
      if (!(await approveDevice(tx, request.id, approval))) {
        throw alreadyDecided();
      }
      await this.#record(tx, resourceOwner, request, origin);
    });
  }

  /**
   * Records in the audit log that the application of a device does not admit the user. If the user
   * is not assigned to it, the device is also refused, so that its code cannot be used any more.
   */
  async #refuseUnreached(
    userId: string,
    { client, userCode }: Pick<DeviceRequest, 'client' | 'userCode'>,
    denied: Denied,
    origin: AuditOrigin,
  ): Promise<void> {
    await withTransactionRetry(this.dataSource, async (tx) => {
      if (denied.denial === 'not_assigned') await refuseDevice(tx, userCode);
      await recordRefusedAccess(tx, { userId }, refusedApplication(client), denied, origin);
    });
  }

  /**
   * Refuses a device. No new touch of the key is needed, because a refusal gives no access.
   * @throws DomainError unauthenticated without a session, not_found for a wrong code, and the
   *   errors of {@link Devices.find}
   */
  async refuse(token: string | undefined, typed: string): Promise<void> {
    await this.#findFor(token, typed);
    if (!(await this.refuseUnseen(typed))) throw alreadyDecided();
  }

  /**
   * Refuses the device with a code, without checking the user. Only certification test mode calls
   * it for a user that was not checked.
   * @returns false if no device waits with that code
   */
  refuseUnseen(typed: string): Promise<boolean> {
    const userCode = normalizeUserCode(typed);
    return refuseDevice(this.dataSource.manager, userCode);
  }

  /**
   * Finds the user of a browser's session, and the device with the code that the user typed.
   * @throws DomainError unauthenticated without a session, not_found for a wrong code, and the
   *   errors of {@link Devices.find}
   */
  async #findFor(token: string | undefined, typed: string) {
    const tokenHash = hashOpaqueToken(token ?? '');
    const { manager } = this.dataSource;
    const [user] = await resourceOwnersOfBrowsers(manager, [tokenHash]);
    if (!user) throw loginNeeded();
    const request = await this.find(user, typed);
    if (!request) throw new DomainError('not_found', 'No device waits with this code.');
    return { userId: user.userId, tokenHash, request };
  }

  /**
   * Checks that the organization allows devices to sign in (the device grant), and locks that
   * setting until the transaction ends.
   * @throws DomainError issuance_refused if the organization has switched the device grant off
   */
  async #assertAllowed(tx: EntityManager, { orgId }: ResourceOwner): Promise<void> {
    if (orgId === null || (await holdDeviceGrant(tx, orgId))) return;
    throw new DomainError('issuance_refused', DEVICE_GRANT_IS_OFF);
  }

  /**
   * Finds the OAuth client of a device.
   * @throws DomainError issuance_refused for a client without the device grant, and for a client
   *   that registered itself
   */
  async #findClient(clientId: string): Promise<Client & OwnMetadata> {
    const client: (Client & OwnMetadata) | undefined =
      await this.oidcProvider.provider.Client.find(clientId);
    if (!client?.grantTypeAllowed(DEVICE_GRANT) || client.svc_kind === 'dynamic') {
      throw new DomainError('issuance_refused', 'This application may not sign devices in.');
    }
    return client;
  }

  /**
   * Writes the grant to which the device's tokens belong.
   * @returns the id of the grant in the OAuth library's records
   */
  async #writeGrant(
    tx: EntityManager,
    resourceOwner: ResourceOwner,
    request: DeviceRequest,
    clock = systemClock,
  ): Promise<string> {
    const session = await this.#sessionOf(tx, resourceOwner, request);
    const id = newGrantId(session.id);
    const [iat, exp] = [clock.seconds(), epochSeconds(session.expiresAt)];
    const outcome = await writeGrant(tx, {
      id: artifactId(id),
      clientId: request.client.clientId,
      userId: resourceOwner.userId,
      sessionId: session.id,
      expiresIn: exp - iat,
      payload: grantPayload(request, resourceOwner, { iat, exp }),
    });
    if ('issued' in outcome) return id;
    if (outcome.denial === 'withheld') throw new DomainError('issuance_refused', TOO_MANY_GRANTS);
    throw isAboutReach(outcome) ? new NotReached(outcome) : loginNeeded();
  }

  /**
   * Returns the session to which the grant of a device belongs. For our command-line client it is a
   * new session, and for any other client that of the browser. The new session lasts an hour,
   * survives the browser's logout and ends with the removal of the key.
   */
  async #sessionOf(
    tx: EntityManager,
    resourceOwner: ResourceOwner,
    { client: { clientId }, device }: DeviceRequest,
  ): Promise<{ readonly id: string; readonly expiresAt: Date }> {
    if (clientId !== CLI_CLIENT_ID) {
      return { id: resourceOwner.sessionId, expiresAt: resourceOwner.expiresAt };
    }
    const { userId, authTime, amr, acr, authenticatorId } = resourceOwner;
    const login = { userId, authTime, amr, acr, clientId, isOfDevice: true };
    return this.sessions.open(
      tx,
      authenticatorId === null
        ? { level: 'synthetic', ...login }
        : { level: 'verified', authenticatorId, ...login },
      originOfDevice(device),
    );
  }

  async #record(
    tx: EntityManager,
    { userId, orgId }: ResourceOwner,
    { client: { clientId }, grant, device: { ip, userAgent } }: DeviceRequest,
    origin: AuditOrigin,
  ): Promise<void> {
    const device = { ip, user_agent: userAgent };
    await this.auditLog.record(tx, {
      type: 'device_approved',
      actorId: userId,
      subjectId: userId,
      orgId,
      origin,
      details: { client_id: clientId, scope: scopeOfCode(grant), device },
    });
  }
}

/** The members of a stored device code that this file reads. The OAuth library wrote the record. */
interface StoredDeviceCode {
  readonly params: DeviceParameters;
  readonly deviceInfo?: { readonly ip?: string | null; readonly userAgent?: string };
}

function tooManyWrongCodes(retryAfter: number): DomainError {
  const detail = `Too many wrong codes. Try again in ${retryAfter} s.`;
  return new DomainError('rate_limited', detail, { retryAfter });
}

function alreadyDecided(): DomainError {
  return new DomainError(
    'invalid_state',
    'This code was approved or refused already, or has expired. Start again on the device.',
  );
}

function loginNeeded(): DomainError {
  return new DomainError('unauthenticated', 'Log in with your security key first.');
}
