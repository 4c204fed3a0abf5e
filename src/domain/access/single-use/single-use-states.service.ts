import { createHash } from 'node:crypto';
import { Inject, Injectable } from '@nestjs/common';
import { EntityManager } from '#platform/database/statements/typeorm.js';
import { newUuid } from '#platform/clock/random.js';
import { CONFIG, type Config } from '#platform/config/config.js';
import { SealedTokens } from '#platform/crypto/sealed-tokens.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { spendToken } from './spent-tokens.repository.js';

/**
 * The seconds for which a spent state is remembered after its expiry. The clock of the database may
 * be ahead of that of a replica. Otherwise the clean-up could forget a spent state that the replica
 * still accepts.
 */
const REPLAY_MARGIN = 600;

/**
 * The text to which a sealed state is bound: it names the session, or the browser or client if
 * there is no session. Only the same session, browser or client can redeem the state.
 */
export interface StateBinding {
  readonly binding: string;
}

/**
 * Seals and redeems the `state` of a ceremony, such as an upstream login or the use of a security
 * key. A state is an encrypted token that is valid once, for a few minutes, for one purpose and one
 * session or browser. Sealing writes no row, so that many requests for a state cost no storage.
 */
@Injectable()
export class SingleUseStates {
  readonly #sealedTokens: SealedTokens;

  constructor(
    @Inject(CONFIG) config: Pick<Config, 'secrets'>,
    private readonly manager: EntityManager,
  ) {
    this.#sealedTokens = new SealedTokens(config);
  }

  /** Seals a payload into an encrypted state that can be redeemed once. */
  seal(
    purpose: string,
    payload: object,
    options: StateBinding & { readonly ttlSeconds: number },
  ): Promise<string> {
    const claims = { payload, jti: newUuid(), for: fingerprint(options.binding) };
    return this.#sealedTokens.seal(purpose, claims, options.ttlSeconds);
  }

  /**
   * Spends a state and returns its payload.
   *
   * @throws DomainError invalid_state for a state that is forged, expired, for another purpose,
   *   bound to another session or browser, or spent. The error is the same for all causes, because
   *   the cause would only help an attacker
   */
  async redeem<T>(purpose: string, token: string, { binding }: StateBinding): Promise<T> {
    const claims = await this.#sealedTokens.open(purpose, token);
    const { jti, exp } = claims ?? {};
    const fits = claims?.['for'] === fingerprint(binding);
    if (!claims || !fits || jti === undefined || exp === undefined) throw invalidState();
    // The state is spent before the caller reads the payload, so that a ceremony that fails
    // afterwards must start again with a new challenge.
    const forgotten = new Date((exp + REPLAY_MARGIN) * 1000);
    if (!(await spendToken(this.manager, jti, forgotten))) throw invalidState();
    return claims['payload'] as T;
  }
}

function fingerprint(binding: string): string {
  return createHash('sha256').update(binding).digest('base64url');
}

/**
 * Returns the error for a state that is not valid. The text is the same for every cause, because
 * the cause would only help an attacker.
 */
export function invalidState(): DomainError {
  return new DomainError(
    'invalid_state',
    'The state is invalid, expired or was used before. Start again.',
  );
}
