import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { systemRandom } from '@svc/stand-ins/clock';
import { codeOf } from '@svc/stand-ins/loopback-server';
import type { SoftwareKeyState } from '@svc/stand-ins/software-key';

const DEMO_DATA = z.object({
  /** The value of SVC_JWT_SECRET, unless the environment sets it. */
  rootSecret: z.string(),
  /**
   * The port of the identity provider. It stays the same if possible, because it is a part of the
   * issuer, to which the users and organizations of earlier runs belong.
   */
  identityProviderPort: z.int(),
  softwareKey: z.object({
    signCount: z.int(),
    credentials: z.array(
      z.object({
        id: z.string(),
        rpId: z.string(),
        userHandle: z.string(),
        userName: z.string().optional(),
        privateKey: z.string(),
      }),
    ),
  }),
  /** The value of SVC_METRICS_BEARER_TOKEN, unless the environment sets it. */
  metricsToken: z.string().optional(),
  /** The SCIM token with which the demo creates and deletes people in the tour's organization. */
  scimToken: z.string().optional(),
  /** The registration of the demo application in the tour's organization. */
  application: z
    .object({ port: z.int(), clientId: z.string(), clientSecret: z.string() })
    .optional(),
});

/**
 * The data that the demo stores in a file beside its database, so that the next run has the same
 * secrets, ports and keys.
 */
export interface DemoData extends Omit<z.output<typeof DEMO_DATA>, 'softwareKey'> {
  readonly softwareKey: SoftwareKeyState;
}

const FIRST_RUN = { identityProviderPort: 3001, softwareKey: { signCount: 0, credentials: [] } };

/**
 * Reads the data of an earlier run. In the first run the root secret is made at random, because the
 * service has no default for a secret.
 *
 * @throws Error if the file exists and cannot be read
 */
function readDemoData(dataDir: string): DemoData {
  const file = fileIn(dataDir);
  try {
    return DEMO_DATA.parse(JSON.parse(readFileSync(file, 'utf8')));
  } catch (cause) {
    if (codeOf(cause) === 'ENOENT') {
      return { rootSecret: systemRandom.token(), ...FIRST_RUN };
    }
    throw new Error(`${file} cannot be read: remove ${dataDir} to start again.`, { cause });
  }
}

/**
 * Writes the data to a file that only the user who runs the demo can read. The file is replaced by
 * one rename, so that it is never incomplete.
 */
function writeDemoData(dataDir: string, data: DemoData): void {
  const file = fileIn(dataDir);
  mkdirSync(dataDir, { recursive: true, mode: 0o711 });
  writeFileSync(`${file}.new`, JSON.stringify(data, null, 2), { mode: 0o600, flush: true });
  renameSync(`${file}.new`, file);
}

function fileIn(dataDir: string): string {
  return join(dataDir, 'demo.json');
}

/** The stored data of the demo. Each change is written to the file at once. */
export class StoredData {
  #current: DemoData;

  constructor(private readonly folder: string) {
    this.#current = readDemoData(folder);
  }

  get current(): DemoData {
    return this.#current;
  }

  write(changed: Partial<DemoData>): void {
    this.#current = { ...this.#current, ...changed };
    writeDemoData(this.folder, this.#current);
  }
}
