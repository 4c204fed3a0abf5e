import { generateKeyPairSync, randomUUID, type KeyObject } from 'node:crypto';
import { DataSource } from 'typeorm';
import { vi } from 'vitest';
import { feedDelay } from '#domain/audit/feed/audit-feed.repository.js';
import { verifierOf, type SealKey } from '#domain/audit/seal/checkpoint.js';
import { listCheckpoints } from '#domain/audit/seal/checkpoints.repository.js';
import { readSealed, type SealedPlace } from '#domain/audit/sealed-export/sealed-export.js';
import { AuditSealer } from '#domain/audit/seal/sealer.js';
import { systemClock, type Clock } from '#platform/clock/clock.js';
import { localSigner } from '#platform/crypto/signer.js';
import { ExportCheck, type Beginning } from '../../packages/svc/src/audit/export-check.js';
import {
  parseCheckpoint,
  parseVerifier,
  type SignedCheckpoint,
} from '../../packages/svc/src/audit/signed-note.js';
import type { TestDatabase } from './database.js';
import { writeEvent } from './feed-reader.js';

/** The number of days for which events of each class are kept. Exports of the tests contain it. */
const RETENTION = { auth: 90, oauth: 90 };

/**
 * Begins a new epoch of the audit log, as the service does when it confirms another database
 * server. The new epoch says that commits from before it may be lost.
 */
export async function endEpoch(dataSource: DataSource): Promise<void> {
  await dataSource.transaction(async (tx) => {
    await tx.query("SELECT set_config('svc.audit_epoch', 'ends', true)");
    await tx.query(
      "UPDATE database_identity SET confirmed_at = confirmed_at + interval '1 microsecond'",
    );
  });
}

/** Opens a connection to a test's database without starting the application. */
export function connectTo({ url }: Pick<TestDatabase, 'url'>): Promise<DataSource> {
  return new DataSource({ type: 'postgres', url }).initialize();
}

/**
 * Returns the key that signs checkpoints: a private key, and the name by which verifiers know it.
 */
export function sealKey(privateKey: KeyObject, name: string): SealKey {
  return { name, signer: localSigner(privateKey) };
}

/**
 * The seal of the audit log in a test. It seals only if the test calls it, and it can verify the
 * result.
 */
export class TestSeal {
  constructor(
    private readonly dataSource: DataSource,
    readonly privateKey: KeyObject = generateKeyPairSync('ed25519').privateKey,
    readonly key: SealKey = sealKey(privateKey, 'login.example.com/audit'),
  ) {}

  /** The public key of the seal as a line, in the form that `svc audit` reads. */
  get verifier(): string {
    return verifierOf(this.key);
  }

  /** Creates a sealer, which seals the log as one replica does. */
  sealer(clock: Clock = systemClock): AuditSealer {
    return new AuditSealer(this.dataSource, clock, this.key);
  }

  /**
   * Waits until every event that was written can be sealed. Open transactions of other tests in the
   * same PostgreSQL delay that.
   */
  async settled(): Promise<void> {
    const isSettled = async () => (await feedDelay(this.dataSource.manager)) === 0;
    await vi.waitUntil(isSettled, { timeout: 90_000, interval: 5 });
  }

  /** Seals all events that were written since the last seal. */
  async seal(): Promise<void> {
    await this.settled();
    await this.sealer().seal();
  }

  /**
   * Writes events of a new organization, and seals after each of them, so that each has a
   * checkpoint (signed tree head) of its own.
   */
  async organization(events: number): Promise<{ readonly org: string; readonly ids: string[] }> {
    const org = randomUUID();
    const ids: string[] = [];
    for (let n = 0; n < events; n += 1) {
      ids.push(await writeEvent(this.dataSource, org));
      await this.seal();
    }
    return { org, ids };
  }

  /**
   * Returns the lines of the sealed export of one Merkle tree of the audit log.
   *
   * @param from the leaf with which the export begins
   */
  async export(tree: string, from: SealedPlace = { epoch: '0', index: 0 }): Promise<string[]> {
    const facts = { at: new Date().toISOString(), retention: RETENTION };
    const lines: string[] = [];
    for (let place: SealedPlace | undefined = from; place !== undefined;) {
      const part = await readSealed(this.dataSource.manager, tree, place, lines.length > 0, facts);
      lines.push(...part.lines);
      place = part.next;
    }
    return lines;
  }

  /**
   * Returns the checkpoints (signed tree heads) of a tree, as a witness outside of the service
   * stores them.
   */
  async checkpoints(tree: string): Promise<SignedCheckpoint[]> {
    const from = { epoch: '0', size: 0 };
    const found = await listCheckpoints(this.dataSource.manager, tree, from, 100_000);
    return found.map(({ note }) => parseCheckpoint(note)).filter((one) => one !== undefined);
  }

  /**
   * Verifies the lines of an export as `svc audit verify` does. Returns the check with its results.
   */
  check(
    lines: readonly string[],
    checkpoints: readonly SignedCheckpoint[],
    { now = Date.now(), from }: { readonly now?: number; readonly from?: Beginning } = {},
  ): ExportCheck {
    const key = parseVerifier(this.verifier);
    const check = new ExportCheck(checkpoints, key ? [key] : [], now, undefined, from);
    for (const line of lines) check.line(Buffer.from(line));
    check.end();
    return check;
  }
}
