import { generateKeyPairSync } from 'node:crypto';
import { expect, it } from 'vitest';
import { isCheckpointOf, signCheckpoint, verifierOf } from '#domain/audit/seal/checkpoint.js';
import { parseCheckpoint } from '../../../../packages/svc/src/audit/signed-note.js';
import { sealKey } from '../../../support/seal.js';

it('a text behind the signature makes a checkpoint none, for the service as for svc audit', async () => {
  const key = sealKey(generateKeyPairSync('ed25519').privateKey, 'login.example.com/audit');
  const place = { tree: '01890000-0000-7000-8000-000000000001', epoch: '3', size: 7 };
  const note = await signCheckpoint(key, { ...place, root: Buffer.alloc(32), at: new Date() });
  const texts = [note, `${note}— witness.example.com/one AAAA\n`, `${note}\nmore`, `${note}more\n`];
  const isRead = texts.map((text) => isCheckpointOf(text, place, [verifierOf(key)]));
  expect(isRead).toEqual([true, true, false, false]);
  expect(texts.map((text) => parseCheckpoint(text) !== undefined)).toEqual(isRead);
});
