import { createHash } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { EntityManager } from 'typeorm';
import { newUuid } from '#platform/clock/random.js';
import { SealedTokens } from '#platform/crypto/sealed-tokens.service.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { SpentTokensRepository } from './spent-tokens.repository.js';

/** Whom a state was made for: the secret of the session, or else of the browser, that asked for it. */
export interface StateBinding {
  readonly binding: string;
}

/**
 * The `state` of a ceremony: an opaque, sealed token that is good once, for a few minutes, for one purpose and for
 * the session or browser that asked for it. Making one writes nothing, so that asking for many costs no storage.
 */
@Injectable()
export class SingleUseStates {
  constructor(
    private readonly manager: EntityManager,
    private readonly tokens: SealedTokens,
    private readonly spent: SpentTokensRepository,
  ) {}

  /** Seals a payload into a state for one use. */
  seal(
    purpose: string,
    payload: object,
    options: StateBinding & { readonly ttlSeconds: number },
  ): Promise<string> {
    const claims = { payload, jti: newUuid(), for: fingerprint(options.binding) };
    return this.tokens.seal(purpose, claims, options.ttlSeconds);
  }

  /**
   * Spends a state and returns its payload.
   *
   * @throws DomainError invalid_state when it is forged, expired, of another purpose, bound to another session or
   *   browser, or spent already: one answer for all, since the difference only helps an attacker
   */
  async redeem<T>(purpose: string, token: string, { binding }: StateBinding): Promise<T> {
    const claims = await this.tokens.open(purpose, token);
    const { jti, exp } = claims ?? {};
    const fits = claims?.['for'] === fingerprint(binding);
    if (!claims || !fits || jti === undefined || exp === undefined) throw invalidState();
    // Spent before it is looked at any further: a failed ceremony must start over with a new challenge.
    if (!(await this.spent.spend(this.manager, jti, new Date(exp * 1000)))) throw invalidState();
    return claims['payload'] as T;
  }
}

function fingerprint(binding: string): string {
  return createHash('sha256').update(binding).digest('base64url');
}

/** The one answer to a state that is not good here, whatever is wrong with it. */
export function invalidState(): DomainError {
  return new DomainError(
    'invalid_state',
    'The state is invalid, expired or was used before. Start again.',
  );
}
