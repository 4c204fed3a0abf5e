import { Logger } from '@nestjs/common';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { noteExpiringTokens } from './api-tokens.repository.js';

/** The days before the end of an API token at which the log names it. */
const DAYS = 7;

const security = new Logger('security');

/**
 * Names each API token in the log `security`, once, that expires within a week and has no
 * successor, because the program that uses it then reads and rotates nothing more.
 */
export async function warnOfExpiry(tx: EntityManager): Promise<void> {
  for (const { id, orgId, name, expiresAt } of await noteExpiringTokens(tx, DAYS)) {
    security.warn({ apiTokenId: id, orgId, name, expiresAt }, 'an API token expires soon');
  }
}
