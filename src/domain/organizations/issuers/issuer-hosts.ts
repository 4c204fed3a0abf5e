import type { JWK } from 'jose';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { QueryBatcher } from '#platform/database/statements/query-batcher.js';
import { isIssuerLabel, issuerOfLabel } from './issuer-label.js';
import { publishedIssuers } from './published-issuers.repository.js';

/** The token issuer of an organization, as its host publishes it to verifiers of tokens. */
export interface PublishedIssuer {
  /** The issuer identifier, which is the origin of the host. */
  readonly origin: string;
  /** The public keys of the issuer, the newest last. */
  readonly keys: readonly JWK[];
}

/**
 * Finds the token issuer of an organization by the label (first part) of its host name. Nothing is
 * cached. The statement that answers a request begins after the request arrives; simultaneous
 * requests share one statement. So if a label is released or a key is withdrawn, every replica
 * shows this as soon as the change is committed.
 */
export class IssuerHosts {
  readonly #baseUrl: string;
  readonly #batcher: QueryBatcher<string, readonly JWK[] | undefined>;

  constructor(baseUrl: string, manager: EntityManager) {
    this.#baseUrl = baseUrl;
    this.#batcher = new QueryBatcher((labels) => publishedIssuers(manager, labels));
  }

  /**
   * Returns true for a text that has the form of a label. Other texts need no look-up in the
   * database.
   */
  isLabel(text: string): boolean {
    return isIssuerLabel(text);
  }

  /** Finds the issuer that has a label now; undefined if none has it. */
  async find(label: string): Promise<PublishedIssuer | undefined> {
    const keys = await this.#batcher.load(label);
    return keys && { origin: issuerOfLabel(this.#baseUrl, label), keys };
  }
}
