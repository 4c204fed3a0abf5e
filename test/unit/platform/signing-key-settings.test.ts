import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { ConfigProblems, loadConfig } from '#platform/config/load-config.js';

const WORKING = {
  SVC_JWT_SECRET: 'a root secret only this test knows',
  SVC_IDPS: '',
  SVC_CERTIFICATION_TEST_TOKEN: 'a token that only the conformance suite knows',
};
const EC_PROBLEM = 'SVC_OIDC_SIGNING_KEY: must be P-256 keys in PEM, a private one first';
const RSA_PROBLEM =
  'SVC_OIDC_RSA_SIGNING_KEY: must be RSA keys of 3072 bits or more in PEM, a private one first';

interface PemPair {
  readonly secret: string;
  readonly published: string;
}

function pem({ privateKey, publicKey }: { privateKey: KeyObject; publicKey: KeyObject }): PemPair {
  return {
    secret: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    published: publicKey.export({ type: 'spki', format: 'pem' }).toString(),
  };
}

const newEc = (namedCurve = 'P-256') => pem(generateKeyPairSync('ec', { namedCurve }));
const newRsa = (modulusLength: number) => pem(generateKeyPairSync('rsa', { modulusLength }));

const load = (environment: Record<string, string>) =>
  loadConfig({ ...WORKING, ...environment }).config.oidc.signingKeys;

function problemsOf(environment: Record<string, string>): readonly string[] {
  try {
    load(environment);
    return [];
  } catch (error) {
    if (error instanceof ConfigProblems) return error.problems;
    throw error;
  }
}

describe('SVC_OIDC_SIGNING_KEY and SVC_OIDC_RSA_SIGNING_KEY', () => {
  let ec: PemPair;
  let rsa: PemPair;
  beforeAll(() => {
    ec = newEc();
    rsa = newRsa(3072);
  });

  it('are split into PEM blocks, the signing key first', () => {
    const next = newEc();
    const past = newEc();
    expect(
      load({
        SVC_OIDC_SIGNING_KEY: ec.secret + next.published + past.secret,
        SVC_OIDC_RSA_SIGNING_KEY: rsa.secret,
      }),
    ).toEqual({
      ec: [ec.secret, next.published, past.secret].map((block) => block.trim()),
      rsa: [rsa.secret.trim()],
    });
  });

  it('may be base64 of PEM, or the path of a PEM file', () => {
    const folder = mkdtempSync(join(tmpdir(), 'svc-signing-'));
    const file = join(folder, 'ec.pem');
    writeFileSync(file, ec.secret);
    const expected = [ec.secret.trim()];
    expect(load({ SVC_OIDC_SIGNING_KEY: file }).ec).toEqual(expected);
    const encoded = Buffer.from(ec.secret).toString('base64');
    expect(load({ SVC_OIDC_SIGNING_KEY: encoded }).ec).toEqual(expected);
    rmSync(folder, { recursive: true });
  });

  it.each<[what: string, value: () => string]>([
    ['a key of another curve', () => newEc('P-384').secret],
    ['another curve of the same size', () => newEc('secp256k1').secret],
    ['an RSA key', () => rsa.secret],
    ['an Ed25519 key', () => pem(generateKeyPairSync('ed25519')).secret],
    ['a public key first', () => ec.published + ec.secret],
    ['a second key of another curve', () => ec.secret + newEc('P-384').published],
    ['a second key that is cut short', () => ec.secret + ec.published.slice(0, -30)],
    ['a key with a passphrase', () => encrypted()],
    ['a file that is not there', () => '/nowhere/ec.pem'],
  ])('for ES256 refuses %s, in one line without the value', (_what, value) => {
    expect(problemsOf({ SVC_OIDC_SIGNING_KEY: value() })).toEqual([EC_PROBLEM]);
  });

  it.each<[what: string, value: () => string]>([
    ['2048 bits', () => newRsa(2048).secret],
    ['a second key of 2048 bits', () => rsa.secret + newRsa(2048).published],
    ['an EC key', () => ec.secret],
    ['a public key alone', () => rsa.published],
  ])('for RS256 refuses %s, in one line without the value', (_what, value) => {
    expect(problemsOf({ SVC_OIDC_RSA_SIGNING_KEY: value() })).toEqual([RSA_PROBLEM]);
  });
});

function encrypted(): string {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const cipher = { cipher: 'aes-256-cbc', passphrase: 'x' };
  return privateKey.export({ type: 'pkcs8', format: 'pem', ...cipher }).toString();
}
