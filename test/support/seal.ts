import { generateKeyPairSync } from 'node:crypto';
import type { DataSource } from 'typeorm';
import type { SealKey } from '#domain/audit/seal/checkpoint.js';
import { AuditSealer } from '#domain/audit/seal/sealer.js';
import { systemClock, type Clock } from '#platform/clock/clock.js';
import { localSigner } from '#platform/crypto/signer.js';

/** Makes a key that signs checkpoints. */
export function newSealKey(name = 'login.example.com/audit'): SealKey {
  return { name, signer: localSigner(generateKeyPairSync('ed25519').privateKey) };
}

/** Makes a sealer that works only if a test calls it. */
export function sealerOf(
  dataSource: DataSource,
  key = newSealKey(),
  clock: Clock = systemClock,
): AuditSealer {
  return new AuditSealer(dataSource, clock, key);
}
