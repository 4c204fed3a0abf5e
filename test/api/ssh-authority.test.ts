import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import {
  existsSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Logger } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createKeyFile } from '#domain/ssh/authority/ca-key-file.js';
import { CertificateAuthority } from '#domain/ssh/authority/certificate-authority.service.js';
import { publicKeyBlob, publicKeyLine, writePrivateKey, sshFingerprint } from '@svc/openssh';
import {
  lastCertificates,
  publishAuthority,
} from '#domain/ssh/authority/ssh-authority.repository.js';
import { createTestDatabase } from '../support/database.js';

describe('the SSH certificate authority at start', () => {
  let database: Awaited<ReturnType<typeof createTestDatabase>>;
  let dataSource: DataSource;
  let folder: string;
  let keyPath: string;

  beforeEach(async () => {
    database = await createTestDatabase();
    dataSource = new DataSource({ type: 'postgres', url: database.url });
    await dataSource.initialize();
    folder = mkdtempSync(join(tmpdir(), 'svc-ssh-ca-'));
    keyPath = join(folder, 'data', 'ssh_ca_key');
  });
  afterEach(async () => {
    await dataSource.destroy();
    await database.drop();
    rmSync(folder, { recursive: true });
  });

  function start(caKeyPath = keyPath, caKey?: string): Promise<CertificateAuthority> {
    const ssh = {
      caKmsKeyIds: [],
      caKey,
      caKeyPath,
      principalsDomain: undefined,
      principals: new Set(['email'] as const),
      requireSecurityKey: false,
    };
    const relyingParty = { id: 'svc.example.com', name: 'svc', organizationName: 'svc' };
    return CertificateAuthority.open({ ssh, relyingParty }, dataSource);
  }

  async function value(statement: string): Promise<unknown> {
    const [row]: unknown[] = await dataSource.query(`SELECT (${statement}) AS value`);
    return row;
  }

  it('generates a missing key once, readable only for its owner, and leaves no other file', async () => {
    const first = await start();
    expect(statSync(keyPath).mode & 0o777).toBe(0o600);
    expect(statSync(join(folder, 'data')).mode & 0o777).toBe(0o700);
    expect(readdirSync(join(folder, 'data'))).toEqual(['ssh_ca_key']);
    expect(await value('SELECT fingerprint FROM ssh_authorities')).toEqual({
      value: first.fingerprint,
    });

    const again = await start();
    expect(again.publicKeyLine()).toBe(first.publicKeyLine());
    expect(first.publicKeyLine()).toMatch(/^ssh-ed25519 \S+ ssh-ca@svc\.example\.com$/);
  });

  it('refuses to start without its key file, and generates no new one', async () => {
    const { fingerprint } = await start();
    rmSync(keyPath);
    await expect(start()).rejects.toThrow(
      `SVC_SSH_CA_KEY_PATH: the file does not exist, but this database belongs to the SSH certificate authority ${fingerprint}`,
    );
    expect(existsSync(keyPath)).toBe(false);
  });

  it('refuses to start with another key, and names both fingerprints', async () => {
    const { fingerprint } = await start();
    const stranger = generateKeyPairSync('ed25519').privateKey;
    const failure = await start(keyPath, writePrivateKey(stranger, '')).catch(String);
    expect(failure).toMatch(/SVC_SSH_CA_KEY: holds the key SHA256:\S{43}, but this database/);
    expect(failure).toContain(fingerprint);
    expect(await value('SELECT fingerprint FROM ssh_authorities')).toEqual({ value: fingerprint });
  });

  it('takes the key from SVC_SSH_CA_KEY and writes no file', async () => {
    const { privateKey } = generateKeyPairSync('ed25519');
    const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
    const authority = await start(keyPath, pem);
    expect(existsSync(keyPath)).toBe(false);
    expect((await start(keyPath, writePrivateKey(privateKey, ''))).fingerprint).toBe(
      authority.fingerprint,
    );
  });

  it('adopts a key file that is older than the database', async () => {
    const own = join(folder, 'own_key');
    writeFileSync(own, writePrivateKey(generateKeyPairSync('ed25519').privateKey, ''));
    const { fingerprint } = await start(own);
    expect(await value('SELECT fingerprint FROM ssh_authorities')).toEqual({ value: fingerprint });
  });

  it('explains an invalid key file, and shows none of its content', async () => {
    const broken = join(folder, 'broken');
    writeFileSync(broken, 'not-a-key-but-a-secret');
    const failure = await start(broken).catch(String);
    expect(failure).toContain('SVC_SSH_CA_KEY_PATH: cannot be used: it is neither');
    expect(failure).not.toContain('secret');
    await expect(start(folder)).rejects.toThrow(/SVC_SSH_CA_KEY_PATH: .*EISDIR/);
  });

  it('is the same for ten starters at once', async () => {
    const started = await Promise.all(Array.from({ length: 10 }, () => start()));
    expect(new Set(started.map(({ fingerprint }) => fingerprint)).size).toBe(1);
  });

  it('is one of two starters that do not share a disk, and the other one fails', async () => {
    const results = await Promise.allSettled([
      start(join(folder, 'a', 'key')),
      start(join(folder, 'b', 'key')),
    ]);
    expect(results.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected']);
    expect(['a', 'b'].filter((disk) => existsSync(join(folder, disk)))).toHaveLength(1);
  });

  describe('with several keys', () => {
    const keys = () => Array.from({ length: 2 }, () => generateKeyPairSync('ed25519').privateKey);
    const text = (...of: readonly KeyObject[]) =>
      of.map((key) => writePrivateKey(key, '')).join('');
    const publicLine = (key: KeyObject) => publicKeyLine(publicKeyBlob(key), 'ca');
    const fingerprint = (key: KeyObject) => sshFingerprint(publicKeyBlob(key));
    const onRecord = () =>
      dataSource.query<{ fingerprint: string; published_at: Date; signs_since: Date | null }[]>(
        'SELECT fingerprint, published_at, signs_since FROM ssh_authorities ORDER BY published_at, signs_since',
      );

    it('signs with the first and publishes all, which the database records with their time', async () => {
      const [present, next] = keys() as [KeyObject, KeyObject];
      await start(keyPath, text(present));
      const both = await start(keyPath, `${text(present)}${publicLine(next)}\n`);
      expect(both.fingerprint).toBe(fingerprint(present));
      expect(both.publicKeyLines()).toEqual([
        both.publicKeyLine(),
        publicKeyLine(publicKeyBlob(next), 'ssh-ca@svc.example.com'),
      ]);
      expect(await onRecord()).toEqual([
        {
          fingerprint: fingerprint(present),
          published_at: expect.any(Date),
          signs_since: expect.any(Date),
        },
        { fingerprint: fingerprint(next), published_at: expect.any(Date), signs_since: null },
      ]);
    });

    it('signs with a key that was published before, and with no other', async () => {
      const [present, next] = keys() as [KeyObject, KeyObject];
      await start(keyPath, text(present));
      const refusal = /holds the key SHA256:\S{43}, but this database belongs to/;
      await expect(start(keyPath, text(next, present))).rejects.toThrow(refusal);
      expect(await onRecord()).toHaveLength(1); // a refused start publishes nothing
      await start(keyPath, text(present, next));
      const [, published] = await onRecord();
      const rotated = await start(keyPath, text(next, present));
      expect(rotated.fingerprint).toBe(fingerprint(next));
      const [, signing] = await onRecord();
      expect(signing?.published_at).toEqual(published?.published_at);
      expect(signing?.signs_since).toEqual(expect.any(Date));
      await start(keyPath, text(present, next)); // a key that has signed before may sign again
      await start(keyPath, text(next));
    });

    it('refuses a public key in the first place', async () => {
      const [present, next] = keys() as [KeyObject, KeyObject];
      await expect(start(keyPath, `${publicLine(next)}\n${text(present)}`)).rejects.toThrow(
        'SVC_SSH_CA_KEY: cannot be used: the first key signs, and it is a public key',
      );
    });

    it('records each key once for twenty replicas that publish it at once', async () => {
      const [present, next] = keys() as [KeyObject, KeyObject];
      await Promise.all(
        Array.from({ length: 20 }, () => start(keyPath, `${text(present)}${publicLine(next)}`)),
      );
      const rows = await onRecord();
      expect(rows.map((row) => row.fingerprint).toSorted()).toEqual(
        [present, next].map(fingerprint).toSorted(),
      );
      expect(rows.map((row) => row.signs_since !== null).toSorted()).toEqual([false, true]);
    });

    it('records a key once even without the lock, and keeps its first time', async () => {
      const [key] = keys() as [KeyObject];
      const print = fingerprint(key);
      const publish = () =>
        dataSource.transaction((tx) => publishAuthority(tx, print, publicKeyBlob(key)));
      await publish();
      const [first] = await onRecord();
      await Promise.all(Array.from({ length: 20 }, publish));
      expect(await onRecord()).toEqual([first]);
    });

    it('names the end of the last valid certificate of a key that is published no more', async () => {
      const [present, next] = keys() as [KeyObject, KeyObject];
      await start(keyPath, text(present, next));
      const certificate = (serial: number, hours: number, revoked = false) =>
        dataSource.query(
          `INSERT INTO ssh_certificates (serial, user_id, session_id, key_id, principals, public_key, ca_fingerprint, valid_after,
             valid_before, revoked_at, revoke_reason, revoked_by)
           SELECT $1, gen_random_uuid(), gen_random_uuid(), 'k', '{p}', 'f', $2, now(), now() + make_interval(hours => $3),
             CASE WHEN $4 THEN now() END, CASE WHEN $4 THEN 'test' END, CASE WHEN $4 THEN 'test' END`,
          [serial, fingerprint(present), hours, revoked],
        );
      await certificate(1, 2);
      await certificate(2, 5);
      await certificate(3, 7, true);
      await certificate(4, -1);
      await start(keyPath, text(next, present));
      const manager = dataSource.manager;
      const [last, ...others] = await lastCertificates(manager, [
        fingerprint(present),
        fingerprint(next),
      ]);
      expect(others).toEqual([]);
      const hours = ((last?.validBefore.getTime() ?? 0) - Date.now()) / 3_600_000;
      expect([last?.fingerprint, Math.round(hours)]).toEqual([fingerprint(present), 5]);

      const warnings: unknown[] = [];
      const warn = vi.spyOn(Logger.prototype, 'warn').mockImplementation((line: unknown) => {
        warnings.push(line);
      });
      try {
        await start(keyPath, text(next, present));
        expect(warnings).toEqual([]);
        await start(keyPath, text(next));
      } finally {
        warn.mockRestore();
      }
      expect(warnings).toEqual([expect.stringContaining(fingerprint(present))]);
      expect(warnings).toEqual([expect.stringContaining(last?.validBefore.toISOString() ?? '-')]);
    });

    it('lets a P-256 key sign, and generates no file beside it', async () => {
      const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
      const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
      const authority = await start(keyPath, pem);
      expect(authority.publicKeyLine()).toMatch(/^ecdsa-sha2-nistp256 \S+ ssh-ca@svc/);
      expect(existsSync(keyPath)).toBe(false);
    });
  });

  it('never overwrites a key file: of twenty writers at once all read the first', async () => {
    const texts = await Promise.all(
      Array.from({ length: 20 }, (_, index) => createKeyFile(keyPath, `key ${index}`)),
    );
    expect(new Set(texts)).toEqual(new Set([readFileSync(keyPath, 'utf8')]));
    expect(readdirSync(join(folder, 'data'))).toEqual(['ssh_ca_key']);
  });
});
