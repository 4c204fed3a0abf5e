import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { signUserCertificate, parseSshPublicKey, sshStrings } from '@svc/openssh';
import { startTestApp, type TestApp } from '../support/app.js';
import { kmsAdmin, useMotoCredentials } from '../support/kms.js';
import { LONGEST_RAW_MESSAGE, startKmsStandIn, type KmsStandIn } from '../support/kms-stand-in.js';
import { startMoto, type Moto } from '../support/moto.js';
import { requires } from '../support/programs.js';
import { rows } from '../support/rows.js';
import { SSHD_PROGRAMS, startSshd, type Sshd } from '../support/sshd.js';

/** The principals that may log in to the account of the tests. */
const USERS = ['ed25519', 'ecdsa', 'rsa', 'ada'].map((name) => `${name}@kms.example`);
const ADA = 'ada@kms.example';

const restore = useMotoCredentials();
afterAll(restore);

/** An application whose SSH authority has its key in KMS, and an sshd that trusts it. */
interface Chain {
  readonly app: TestApp;
  readonly sshd: Sshd;
}

async function startChain(endpoint: string, keyIds: string): Promise<Chain> {
  const app = await startTestApp({
    environment: { SVC_SSH_CA_KMS_KEY_ID: keyIds, AWS_ENDPOINT_URL_KMS: endpoint },
  });
  const authorities = (await app.client().get('/v1/credentials/ssh/ca')).text.trim().split('\n');
  return { app, sshd: await startSshd({ authorities, principals: USERS }) };
}

/**
 * Enrolls a user, and requests a certificate for a new SSH key. Returns the output of
 * `ssh-keygen -L` for it, and a function that logs in with it.
 */
async function certify({ app, sshd }: Chain, email: string, type = 'ed25519') {
  const { client } = await app.enrolled(email);
  const file = join(sshd.folder, `${type}-${email}`);
  execFileSync('ssh-keygen', ['-q', '-t', type, '-N', '', '-f', file]);
  const public_key = readFileSync(`${file}.pub`, 'utf8').trim();
  const { status, json } = await client.post('/v1/credentials/ssh', { public_key });
  expect(status).toBe(200);
  writeFileSync(`${file}-cert.pub`, `${json.certificate}\n`);
  const printed = execFileSync('ssh-keygen', ['-L', '-f', `${file}-cert.pub`], {
    encoding: 'utf8',
  });
  return { printed, logIn: () => sshd.login(file, `${file}-cert.pub`) };
}

/**
 * Checks that the service signs with the key in KMS, and that the database knows no other
 * authority. Also checks that the service made no key file.
 */
async function expectKeyInKmsAlone(app: TestApp): Promise<void> {
  const { json } = await app.client().get('/v1/credentials/ssh/ca', {
    headers: { accept: 'application/json' },
  });
  const [key] = json.keys;
  expect(key).toMatchObject({ signs: true, public_key: json.public_key });
  const recorded = await rows(app.dataSource, 'SELECT fingerprint FROM ssh_authorities');
  expect(recorded).toEqual([{ fingerprint: key.fingerprint }]);
  expect(existsSync(app.config.ssh.caKeyPath)).toBe(false);
}

requires(...SSHD_PROGRAMS, 'moto').describe('a real sshd and a P-256 authority in KMS', () => {
  let moto: Moto;
  let chain: Chain;
  beforeAll(async () => {
    moto = await startMoto();
    const keyId = await (await kmsAdmin(moto.endpoint)).create('ECC_NIST_P256');
    chain = await startChain(moto.endpoint, keyId);
  });
  afterAll(async () => {
    await chain.sshd.stop();
    await chain.app.close();
    await moto.close();
  });

  it.each(['ed25519', 'ecdsa', 'rsa'])(
    'let a user with a key of type %s log in by a certificate that KMS signed',
    async (type) => {
      const { printed, logIn } = await certify(chain, `${type}@kms.example`, type);
      expect(printed).toMatch(/Signing CA: ECDSA SHA256:\S+ \(using ecdsa-sha2-nistp256\)/);
      expect(await logIn()).toMatchObject({ accepted: true });
    },
  );

  it('record the key of a fresh database, and generate no file', async () => {
    await expectKeyInKmsAlone(chain.app);
  });
});

requires(...SSHD_PROGRAMS).describe('a real sshd and an Ed25519 authority in KMS', () => {
  let kms: KmsStandIn;
  let chain: Chain;
  beforeAll(async () => {
    kms = await startKmsStandIn();
    chain = await startChain(kms.endpoint, `${kms.create()},${kms.create()}`);
  });
  afterAll(async () => {
    await chain.sshd.stop();
    await chain.app.close();
    await kms.close();
  });

  it('let a user log in by a certificate that KMS signed over the raw message', async () => {
    const before = kms.messages.length;
    const { printed, logIn } = await certify(chain, ADA);
    expect(printed).toMatch(/Signing CA: ED25519 SHA256:\S+ \(using ssh-ed25519\)/);
    expect(await logIn()).toMatchObject({ accepted: true });
    expect(kms.messages.length).toBe(before + 1);
  });

  it('publish the second key, which signs nothing', async () => {
    const { text } = await chain.app.client().get('/v1/credentials/ssh/ca');
    expect(text.trim().split('\n')).toHaveLength(2);
  });

  it('sign the certificate of the longest key that is accepted, RSA with 16,384 bits', async () => {
    const { client } = await chain.app.enrolled(`${'l'.repeat(64)}@${longDomain(189)}`);
    const public_key = longestRsaLine();
    const { status, json } = await client.post('/v1/credentials/ssh', { public_key });
    expect([status, json.code]).toEqual([200, undefined]);
    const length = kms.messages.at(-1) ?? 0;
    expect(length).toBeGreaterThan(2500);
    expect(length).toBeLessThanOrEqual(LONGEST_RAW_MESSAGE);
    const more = await client.post('/v1/credentials/ssh', { public_key: longestRsaLine(16_392) });
    expect([more.status, more.json.code]).toEqual([400, 'invalid_public_key']);
  });

  it('sign no certificate of more bytes than KMS takes, at the end of every limit', async () => {
    const longest = `${'l'.repeat(64)}@${longDomain(189)}`;
    const sizes: number[] = [];
    const line = await signUserCertificate(
      {
        subject: parseSshPublicKey(longestRsaLine()),
        nonce: randomBytes(32),
        serial: 2n ** 53n - 1n,
        keyId: `${longest}@${longDomain(253)}`,
        principals: [longest, 'l'.repeat(32)],
        validAfter: new Date(),
        validBefore: new Date(),
        verifyRequired: true,
      },
      {
        publicBlob: sshStrings(['ssh-ed25519', Buffer.alloc(32, 1)]),
        async sign(message) {
          sizes.push(message.length);
          return Buffer.alloc(64);
        },
      },
    );
    expect(line).toMatch(/^ssh-rsa-cert/);
    expect(longest).toHaveLength(254);
    expect(sizes[0]).toBeLessThanOrEqual(LONGEST_RAW_MESSAGE);
  });
});

/** Returns a domain name with this number of characters. */
function longDomain(length: number): string {
  const labels = `${'d'.repeat(59)}.`.repeat(5);
  return `${labels.slice(0, length - '.example'.length).replace(/\.$/, 'd')}.example`;
}

/**
 * Returns the public key line of an RSA key with a modulus of so many bits. No private key belongs
 * to its random numbers.
 */
function longestRsaLine(bits = 16_384): string {
  const modulus = Buffer.concat([Buffer.of(0, 0xff), randomBytes(bits / 8 - 1)]);
  modulus[modulus.length - 1] = 0xff;
  const exponent = Buffer.concat([Buffer.of(0), Buffer.alloc(8, 0xff)]);
  return `ssh-rsa ${sshStrings(['ssh-rsa', exponent, modulus]).toString('base64')}`;
}
