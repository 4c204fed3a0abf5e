import { Logger } from '@nestjs/common';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { noteExpiringTokens } from './api-tokens.repository.js';

/** The number of days before the expiry of an API token in which the log warns of the expiry. */
const DAYS = 7;

const security = new Logger('security');

/**
 * Logs a warning about each API token that expires within a week and has no successor, once for
 * each token. After the expiry, the program that uses the token can read nothing and rotate no SCIM
 * token.
 */
export async function warnOfExpiry(tx: EntityManager): Promise<void> {
  for (const { id, orgId, name, expiresAt } of await noteExpiringTokens(tx, DAYS)) {
    security.warn({ apiTokenId: id, orgId, name, expiresAt }, 'an API token expires soon');
  }
}
