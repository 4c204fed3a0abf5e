import { execFileSync } from 'node:child_process';
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { localSigningKey } from '#domain/ssh/authority/signing-key.js';
import {
  publicKeyLine,
  parseSshPublicKey,
  type UserCertificate,
  signUserCertificate,
} from '@svc/openssh';
import { requires } from '../support/programs.js';
import { type LoginResult, SSHD_PROGRAMS, type Sshd, startSshd } from '../support/sshd.js';

/**
 * The file of authorized principals names alice@example.com for the account, and sshd trusts the
 * authority of the service.
 */
requires(...SSHD_PROGRAMS).describe('a real sshd', () => {
  const { privateKey } = generateKeyPairSync('ed25519');
  const authority = localSigningKey(privateKey);
  let sshd: Sshd;

  beforeAll(async () => {
    sshd = await startSshd({
      authorities: [publicKeyLine(authority.publicBlob, 'test authority')],
      principals: ['alice@example.com'],
    });
  });
  afterAll(() => sshd.stop());

  /** Generates a key with these arguments of ssh-keygen, and logs in with a certificate for it. */
  async function login(
    keygen: readonly string[],
    change: Partial<UserCertificate> = {},
    signer = authority,
  ): Promise<LoginResult> {
    const file = newKey(keygen);
    const certificate = await signUserCertificate(
      {
        subject: parseSshPublicKey(readFileSync(`${file}.pub`, 'utf8')),
        nonce: randomBytes(32),
        serial: 1n,
        keyId: 'alice@example.com@svc.example.com',
        principals: ['alice@example.com'],
        validAfter: secondsFromNow(-60),
        validBefore: secondsFromNow(600),
        ...change,
      },
      signer,
    );
    writeFileSync(`${file}-cert.pub`, `${certificate}\n`);
    return sshd.login(file, `${file}-cert.pub`);
  }

  function newKey(keygen: readonly string[]): string {
    const file = join(sshd.folder, randomBytes(8).toString('hex'));
    execFileSync('ssh-keygen', ['-q', '-t', ...keygen, '-N', '', '-f', file]);
    return file;
  }

  it.each([
    ['an Ed25519 key', ['ed25519']],
    ['an ECDSA P-256 key', ['ecdsa', '-b', '256']],
    ['an ECDSA P-521 key', ['ecdsa', '-b', '521']],
    ['an RSA key of 3072 bits', ['rsa', '-b', '3072']],
  ])('admits a certificate on %s', async (_, keygen) => {
    const result = await login(keygen);
    expect(result).toMatchObject({ accepted: true });
  });

  it('admits a certificate that names the principal among others', async () => {
    const result = await login(['ed25519'], { principals: ['alice', 'alice@example.com'] });
    expect(result).toMatchObject({ accepted: true });
  });

  it('refuses a certificate with another principal', async () => {
    const result = await login(['ed25519'], { principals: ['mallory@example.com'] });
    expect(result.accepted).toBe(false);
    expect(result.log).toMatch(/principal/);
  });

  it('refuses an expired certificate', async () => {
    const result = await login(['ed25519'], { validBefore: secondsFromNow(-1) });
    expect(result.accepted).toBe(false);
    expect(result.log).toContain('Certificate invalid: expired');
  });

  it('refuses a certificate that is not valid yet', async () => {
    const result = await login(['ed25519'], { validAfter: secondsFromNow(300) });
    expect(result.accepted).toBe(false);
    expect(result.log).toContain('Certificate invalid: not yet valid');
  });

  it('refuses a certificate of another authority', async () => {
    const { privateKey: foreign } = generateKeyPairSync('ed25519');
    const result = await login(['ed25519'], {}, localSigningKey(foreign));
    expect(result.accepted).toBe(false);
  });

  it('refuses a certificate that names the authority but has the signature of another', async () => {
    const { privateKey: foreign } = generateKeyPairSync('ed25519');
    const forged = { ...localSigningKey(foreign), publicBlob: authority.publicBlob };
    const result = await login(['ed25519'], {}, forged);
    expect(result.accepted).toBe(false);
  });

  it('refuses a plain key', async () => {
    const result = await sshd.login(newKey(['ed25519']));
    expect(result.accepted).toBe(false);
    expect(result.log).toContain('Permission denied');
  });
});

function secondsFromNow(seconds: number): Date {
  return new Date(Date.now() + seconds * 1000);
}
