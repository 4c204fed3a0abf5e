import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ConfigProblems, loadConfig } from '#platform/config/load-config.js';
import { readTlsMaterial } from '#platform/tls/tls-material.js';
import { makeTemporaryDirectory, removeDirectory } from '../../support/temporary-directory.js';
import { makeTlsAuthority } from '../../support/tls-authority.js';

const own = makeTlsAuthority();
const other = makeTlsAuthority();
const base64 = (text: string) => Buffer.from(text).toString('base64');

const WORKING = {
  SVC_JWT_SECRET: 'a root secret only this test knows',
  SVC_IDPS: 'corp',
  SVC_IDP_CORP_TYPE: 'oidc',
  SVC_IDP_CORP_ISSUER: 'https://login.example.org/',
  SVC_IDP_CORP_CLIENT_ID: 'client',
  SVC_IDP_CORP_CLIENT_SECRET: 'the secret value',
  SVC_BASE_URL: 'https://keys.example.org',
  SVC_TLS_CERT: own.cert,
  SVC_TLS_KEY: own.key,
};

/** Returns the error lines of a refused configuration; an empty variable counts as unset. */
function problemsOf(changed: Readonly<Record<string, string>>): readonly string[] {
  try {
    loadConfig({ ...WORKING, ...changed });
  } catch (error) {
    if (error instanceof ConfigProblems) return error.problems;
    throw error;
  }
  return [];
}

describe('the certificate and its key', () => {
  let folder: string;
  const file = (name: string, text: string) => {
    const path = join(folder, name);
    writeFileSync(path, text);
    return path;
  };
  beforeAll(async () => {
    folder = await makeTemporaryDirectory();
  });
  afterAll(() => removeDirectory(folder));

  it.each([
    ['PEM', (_name: string, pem: string) => pem],
    ['base64 of PEM', (_name: string, pem: string) => base64(pem)],
    ['files', (name: string, pem: string) => file(name, pem)],
  ])('may be given as %s', (_form, give) => {
    const source = { cert: give('cert.pem', own.cert + own.ca), key: give('key.pem', own.key) };
    const { config } = loadConfig({
      ...WORKING,
      SVC_TLS_CERT: source.cert,
      SVC_TLS_KEY: source.key,
    });
    expect(config.http.tls).toEqual(source); // unchanged: a file is read again on SIGHUP
    const { cert, key, leaf } = readTlsMaterial(source);
    expect({ cert, key }).toEqual({ cert: own.cert + own.ca, key: own.key });
    expect(leaf.subject).toBe('CN=localhost');
  });

  it.each([
    ['SVC_TLS_CERT', 'SVC_TLS_KEY'],
    ['SVC_TLS_KEY', 'SVC_TLS_CERT'],
  ])('refuses %s alone, and names the missing variable', (set, missing) => {
    expect(problemsOf({ [missing]: '' })).toEqual([`${missing}: is required where ${set} is set`]);
  });

  it('must belong to each other, with the server’s own certificate first in its chain', () => {
    const refusal = ['SVC_TLS_KEY: is not the key of the first certificate in SVC_TLS_CERT'];
    expect(problemsOf({ SVC_TLS_KEY: other.key })).toEqual(refusal);
    expect(problemsOf({ SVC_TLS_CERT: own.ca + own.cert })).toEqual(refusal);
    expect(() => readTlsMaterial({ cert: own.cert, key: other.key })).toThrow(refusal[0]);
  });

  it('must have the type that their variable names', () => {
    expect(problemsOf({ SVC_TLS_CERT: own.key, SVC_TLS_KEY: own.cert })).toEqual([
      'SVC_TLS_CERT: must be PEM certificates, base64 of them, or a readable file',
      'SVC_TLS_KEY: must be a PEM private key, base64 of it, or a readable file',
    ]);
  });

  it('are named in the error and never quoted when a file becomes invalid later', () => {
    const cert = file('later.pem', own.cert);
    const key = file('later.key', own.key);
    writeFileSync(cert, own.cert.slice(0, 200));
    expect(() => readTlsMaterial({ cert, key })).toThrow(/^SVC_TLS_CERT: holds no certificate \(/);
    const missing = join(folder, 'planted-path');
    expect(() => readTlsMaterial({ cert: own.cert, key: missing })).toThrow(
      /^SVC_TLS_KEY: cannot be read \(ENOENT\)$/,
    );
  });
});

describe('TLS in the configuration', () => {
  it('makes the origin of the relying party the default public origin', () => {
    const { config } = loadConfig({ ...WORKING, SVC_BASE_URL: '', SVC_RP_ID: 'keys.example.org' });
    expect(config.http.baseUrl).toBe('https://keys.example.org');
    expect(config.relyingParty.id).toBe('keys.example.org');
  });

  it('requires one of the two variables, and an https origin', () => {
    expect(problemsOf({ SVC_BASE_URL: '' })).toEqual([
      'SVC_BASE_URL: is required with TLS, or else SVC_RP_ID',
    ]);
    expect(problemsOf({ SVC_BASE_URL: 'http://localhost:3000' })).toEqual([
      'SVC_BASE_URL: must be https with TLS',
    ]);
  });

  it('gives no warning about trusted proxies, since no proxy ends TLS', () => {
    expect(loadConfig(WORKING).warnings).toEqual([]);
  });

  it('puts the mutual-TLS listener on 8443, and trusts no authority by default', () => {
    expect(loadConfig(WORKING).config.http.mtls).toEqual({ port: 8443, clientCaCerts: [] });
    const settings = { SVC_MTLS_PORT: '9443', SVC_MTLS_CLIENT_CA_CERTS: own.ca + other.ca };
    const { port, clientCaCerts } = loadConfig({ ...WORKING, ...settings }).config.http.mtls;
    expect([port, clientCaCerts.length]).toEqual([9443, 2]);
    const without = loadConfig({ ...WORKING, ...settings, SVC_TLS_CERT: '', SVC_TLS_KEY: '' });
    expect(without.warnings).toEqual(
      expect.arrayContaining([
        'SVC_MTLS_PORT: has no effect without SVC_TLS_CERT and SVC_TLS_KEY',
        'SVC_MTLS_CLIENT_CA_CERTS: has no effect without SVC_TLS_CERT and SVC_TLS_KEY',
      ]),
    );
  });
});
