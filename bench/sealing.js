import { generateKeyPairSync } from 'node:crypto';
import { DataSource } from 'typeorm';
import { AuditSealer } from '../dist/domain/audit/seal/sealer.js';
import { systemClock } from '../dist/platform/clock/clock.js';
import { localSigner } from '../dist/platform/crypto/signer.js';

/**
 * Seals all audit rows of a running server that are not sealed yet, in this process, by a key of
 * its own.
 *
 * @param database where the database of the server is reached
 * @returns `rows`, the number of rows that were sealed, and `key`, by which they were signed
 */
export async function sealAll({ user: username, ...database }) {
  const source = new DataSource({ type: 'postgres', username, ...database });
  const dataSource = await source.initialize();
  try {
    const signer = localSigner(generateKeyPairSync('ed25519').privateKey);
    const key = { name: 'bench.example/audit', signer };
    const sealer = new AuditSealer(dataSource, systemClock, key);
    const size = async () => {
      const [{ n }] = await dataSource.query('SELECT sum(size)::int AS n FROM audit_trees');
      return n ?? 0;
    };
    const first = await size();
    let rows = 0;
    for (let last = -1; rows !== last;) {
      last = rows;
      // Keeps the server from sealing at the same time. It begins a round only some time after the
      // last round, whose time is set to now.
      await dataSource.query('UPDATE audit_seal SET round_at = clock_timestamp()');
      await sealer.seal();
      rows = (await size()) - first;
    }
    return { rows, key };
  } finally {
    await dataSource.destroy();
  }
}
