import type { ScimActor } from '#domain/directory/provisioning/scim-operation.js';
import { isScimTokenValid } from '#domain/directory/scim-tokens/scim-tokens.repository.js';
import { refusedScimToken } from '#domain/sessions/access-token.js';
import type { Clock } from '#platform/clock/clock.js';
import type { TenantWork } from '#platform/database/tenants/tenant-work.js';

/** The identity provider that sent a request, with the time at which its SCIM token was found. */
export interface ScimCaller extends ScimActor {
  /** The time of {@link Clock.monotonic} at which the access guard found the token. */
  readonly foundAt: number;
}

/** The milliseconds after a look-up of a SCIM token in which it is not looked up again. */
const FRESH = 100;

/**
 * Looks up the SCIM token of a request again if the request takes long: a bulk request has up to
 * 1,000 operations, and a client may send its body slowly. A token that was revoked meanwhile must
 * change nothing more.
 */
export class TokenChecks {
  /** The time of the last look-up, by request. */
  readonly #checkedAt = new WeakMap<ScimCaller, number>();

  constructor(
    private readonly tenantWork: TenantWork,
    private readonly clock: Clock,
  ) {}

  /** @throws DomainError unauthenticated for a token that has been revoked or has expired */
  async check(caller: ScimCaller): Promise<void> {
    const now = this.clock.monotonic();
    const { orgId, tokenId, foundAt } = caller;
    if (now - (this.#checkedAt.get(caller) ?? foundAt) < FRESH) return;
    const isValid = await this.tenantWork.bounded(orgId, (manager) =>
      isScimTokenValid(manager, orgId, tokenId),
    );
    if (!isValid) throw refusedScimToken();
    this.#checkedAt.set(caller, now);
  }
}
