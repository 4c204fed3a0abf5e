import { Inject, Injectable } from '@nestjs/common';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import {
  PendingLogins,
  type LoggedIn,
  type PendingLogin,
  type WaitingApplication,
} from '#domain/grants/pending-logins.js';
import { CONFIG, type Config } from '#platform/config/config.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { DeviceApprovals } from '../device/device-approvals.service.js';
import { epochSeconds } from '../protocol/claims.js';
import { Interactions } from './interactions.service.js';

/** Authorization requests and devices that wait for a login, ended without a page: certification test mode only. */
@Injectable()
export class OidcPendingLogins extends PendingLogins {
  readonly #devicePage: string;

  constructor(
    @Inject(CONFIG) config: Config,
    private readonly interactions: Interactions,
    private readonly devices: DeviceApprovals,
  ) {
    super();
    this.#devicePage = `${config.http.baseUrl}/device`;
  }

  override applicationOf(interaction: string): Promise<WaitingApplication | undefined> {
    return this.interactions.applicationOf(interaction);
  }

  override async complete(
    pending: PendingLogin,
    session: LoggedIn,
    origin: AuditOrigin,
  ): Promise<string> {
    if ('userCode' in pending) {
      await this.devices.approve(session.token, pending.userCode, origin);
      return this.#devicePage;
    }
    return this.interactions.finishLogin(pending.interaction, {
      login: { accountId: session.userId, ts: epochSeconds(session.authTime), amr: [] },
      consent: {}, // nobody is asked
    });
  }

  override async deny(pending: PendingLogin): Promise<string> {
    if ('userCode' in pending) {
      if (await this.devices.denyUnseen(pending.userCode)) return this.#devicePage;
      throw new DomainError('not_found', 'No device waits with this code.');
    }
    return this.interactions.finishLogin(pending.interaction, {
      error: 'access_denied',
      error_description: 'the login was refused',
    });
  }
}
