import { generateKeyPairSync } from 'node:crypto';
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
import { setTimeout as sleep } from 'node:timers/promises';
import { DataSource } from 'typeorm';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createKeyFile } from '#domain/ssh-certificates/authority/ca-key-file.js';
import { CertificateAuthority } from '#domain/ssh-certificates/authority/certificate-authority.service.js';
import { writePrivateKey } from '#domain/ssh-certificates/openssh/private-key.js';
import { SshAuthorityRepository } from '#domain/ssh-certificates/authority/ssh-authority.repository.js';
import { createTestDatabase } from '../support/database.js';

const repository = new SshAuthorityRepository();

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
      caKey,
      caKeyPath,
      principals: new Set(['email'] as const),
      requireSecurityKey: false,
    };
    const relyingParty = { id: 'svc.example.com', name: 'svc', organizationName: 'svc' };
    return CertificateAuthority.open({ ssh, relyingParty }, dataSource, repository);
  }

  async function value(statement: string): Promise<unknown> {
    const [row]: unknown[] = await dataSource.query(`SELECT (${statement}) AS value`);
    return row;
  }

  async function next(): Promise<bigint> {
    const [row]: { value: string }[] = await dataSource.query(
      `SELECT nextval('ssh_certificate_serial') AS value`,
    );
    return BigInt(row?.value ?? 0);
  }

  function move(milliseconds: number): Promise<void> {
    return dataSource.transaction((tx) => repository.moveSerialForward(tx, milliseconds));
  }

  it('generates a missing key once, readable only for its owner, and leaves no other file', async () => {
    const first = await start();
    expect(statSync(keyPath).mode & 0o777).toBe(0o600);
    expect(statSync(join(folder, 'data')).mode & 0o777).toBe(0o700);
    expect(readdirSync(join(folder, 'data'))).toEqual(['ssh_ca_key']);
    expect(await value('SELECT fingerprint FROM ssh_authority')).toEqual({
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
    expect(await value('SELECT fingerprint FROM ssh_authority')).toEqual({ value: fingerprint });
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
    expect(await value('SELECT fingerprint FROM ssh_authority')).toEqual({ value: fingerprint });
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

  it('never overwrites a key file: of twenty writers at once all read the first', async () => {
    const texts = await Promise.all(
      Array.from({ length: 20 }, (_, index) => createKeyFile(keyPath, `key ${index}`)),
    );
    expect(new Set(texts)).toEqual(new Set([readFileSync(keyPath, 'utf8')]));
    expect(readdirSync(join(folder, 'data'))).toEqual(['ssh_ca_key']);
  });

  describe('serials', () => {
    it('begin at the current milliseconds of the clock', async () => {
      const before = BigInt(Date.now());
      await start();
      const serial = await next();
      expect(serial).toBeGreaterThan(before);
      expect(serial).toBeLessThanOrEqual(BigInt(Date.now()) + 1n);
    });

    it('move forward at a start, beyond serials that a restored backup lost', async () => {
      await move(1_000_000);
      expect(await next()).toBe(1_000_001n);
      await move(2_000_000);
      expect(await next()).toBe(2_000_001n);
    });

    it('never move back with the clock', async () => {
      await move(2_000_000);
      await next();
      await move(1_000_000);
      await move(2_000_000);
      expect(await next()).toBe(2_000_002n);
    });

    it('are not drawn by running replicas while a start moves them', async () => {
      await move(1_000_000);
      const { drawn } = await dataSource.transaction(async (tx) => {
        await repository.moveSerialForward(tx, 2_000_000);
        const waiting = next();
        expect(await Promise.race([waiting, sleep(300, 'still waiting')])).toBe('still waiting');
        return { drawn: waiting };
      });
      expect(await drawn).toBe(2_000_001n);
    });

    it('are never issued twice while replicas start', async () => {
      const now = Date.now();
      await move(now);
      const serials: bigint[] = [];
      const issue = async (): Promise<void> => {
        for (let round = 0; round < 50; round += 1) serials.push(await next());
      };
      const restart = async (): Promise<void> => {
        for (let round = 0; round < 20; round += 1) await move(now + 7 * round);
      };
      await Promise.all([issue(), issue(), restart(), issue(), restart()]);
      expect(new Set(serials).size).toBe(150);
    });
  });
});
