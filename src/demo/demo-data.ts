import { randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { codeOf } from './loopback/loopback-server.js';
import type { SoftwareKeyMemory } from './software-key/software-key.js';

const MEMORY = z.object({
  /** SVC_JWT_SECRET, unless the environment has one. */
  rootSecret: z.string(),
  /** Part of the issuer, which the people and organizations of earlier runs belong to. */
  identityProviderPort: z.int(),
  softwareKey: z.object({
    signCount: z.int(),
    credentials: z.array(
      z.object({
        id: z.string(),
        rpId: z.string(),
        userHandle: z.string(),
        privateKey: z.string(),
      }),
    ),
  }),
});

/** What the demo keeps beside its database, so that the next run goes on where this one ended. */
export interface Memory extends Omit<z.output<typeof MEMORY>, 'softwareKey'> {
  readonly softwareKey: SoftwareKeyMemory;
}

const FIRST_RUN = { identityProviderPort: 3001, softwareKey: { signCount: 0, credentials: [] } };

/**
 * Reads what an earlier run remembered. In the first run the root secret is random: no secret has a default.
 *
 * @throws Error when the file is there and cannot be read
 */
export function recall(dataDir: string): Memory {
  const file = fileIn(dataDir);
  try {
    return MEMORY.parse(JSON.parse(readFileSync(file, 'utf8')));
  } catch (cause) {
    if (codeOf(cause) === 'ENOENT') {
      return { rootSecret: randomBytes(32).toString('base64url'), ...FIRST_RUN };
    }
    throw new Error(`${file} cannot be read: remove ${dataDir} to begin anew.`, { cause });
  }
}

/** Writes it down, whole or not at all, readable by its owner alone. */
export function remember(dataDir: string, memory: Memory): void {
  const file = fileIn(dataDir);
  mkdirSync(dataDir, { recursive: true, mode: 0o711 });
  writeFileSync(`${file}.new`, JSON.stringify(memory, null, 2), { mode: 0o600, flush: true });
  renameSync(`${file}.new`, file);
}

function fileIn(dataDir: string): string {
  return join(dataDir, 'demo.json');
}
