import { Inject, Injectable } from '@nestjs/common';
import { CONFIG, type Config } from '#platform/config/config.js';
import { openSecret, sealSecret } from '#platform/crypto/sealed-secret.js';
import { DataSource } from '#platform/database/statements/typeorm.js';
import { TokenSigningKeys } from '../token-signing/token-signing-keys.service.js';
import { SECURITY_EVENT_TYPE, securityEventClaims, type QueuedSignal } from './security-event.js';
import { listSealedHeaders, replaceSealedHeader } from './streams.repository.js';

/**
 * The purpose from which the encryption key for the Authorization headers of receivers is derived.
 */
const PURPOSE = 'Authorization header of a signal stream';

/** Signs security event tokens, and encrypts the Authorization headers of receivers for storage. */
@Injectable()
export class SignalTokens {
  constructor(
    @Inject(CONFIG) private readonly config: Pick<Config, 'http' | 'secrets'>,
    private readonly dataSource: DataSource,
    private readonly tokenSigningKeys: TokenSigningKeys,
  ) {}

  /**
   * Encrypts the Authorization headers under the present root secret, if only the previous root
   * secret decrypts them.
   */
  async sealAgain(): Promise<void> {
    if (this.config.secrets.previousRoot === undefined) return;
    const { manager } = this.dataSource;
    for (const { id, sealed } of await listSealedHeaders(manager)) {
      const opened = await openSecret(this.config.secrets, PURPOSE, sealed);
      if (!opened?.isOutdated) continue;
      await replaceSealedHeader(manager, id, {
        from: sealed,
        to: await this.sealHeader(opened.text),
      });
    }
  }

  /**
   * Signs a security event token by RS256, the only algorithm of the CAEP interoperability profile
   * (§2.6).
   */
  mint(signal: QueuedSignal): Promise<string> {
    const claims = securityEventClaims(this.config.http.baseUrl, signal);
    return this.tokenSigningKeys.sign('RS256', claims, SECURITY_EVENT_TYPE);
  }

  /** Encrypts the Authorization header of a receiver. */
  sealHeader(header: string): Promise<string> {
    return sealSecret(this.config.secrets, PURPOSE, header);
  }

  /**
   * Decrypts the Authorization header of a receiver; undefined if there is none.
   *
   * @throws Error if no root secret decrypts it
   */
  async openHeader(sealed: string | null): Promise<string | undefined> {
    if (sealed === null) return undefined;
    const opened = await openSecret(this.config.secrets, PURPOSE, sealed);
    if (!opened) throw new Error('the root secret does not open the Authorization header');
    return opened.text;
  }
}
