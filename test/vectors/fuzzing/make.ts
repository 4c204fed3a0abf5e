// Makes signed-inputs.json beside this file, from which the fuzzer makes its mutants:
// node --conditions=source --import ./test/support/typescript-hooks.js test/vectors/fuzzing/make.ts
// Keys and signatures are new each time; the clock stands still.
import { execFileSync } from 'node:child_process';
import { generateKeyPairSync, sign } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { exportJWK, calculateJwkThumbprint } from 'jose';
import {
  basicConstraints,
  issueCertificate,
  keyUsage,
} from '../../../packages/stand-ins/src/software-key/certificates.js';
import { metadataXml, newKey, PERSISTENT, responseXml, signed } from '../../support/saml-idp.js';
import { SecurityKeyVendor } from '../../support/ssh-security-key.js';

const now = new Date('2026-01-15T12:00:00.000Z');
const validity = { notBefore: new Date('2026-01-01'), notAfter: new Date('2046-01-01') };

function saml() {
  const key = newKey('P-256');
  const facts = {
    requestId: '_request',
    acsUrl: 'https://svc.example.com/saml/acs',
    audience: 'https://svc.example.com/saml/metadata',
    issuer: 'https://idp.example.com',
    nameId: 'ada-1',
    format: PERSISTENT,
    attributes: { mail: ['ada@example.com'] },
    assertionId: '_assertion',
    now: now.getTime(),
    conditions: '',
    confirmation: '',
    statement: '',
    qualifiers: '',
  };
  const metadata = metadataXml({
    entityId: facts.issuer,
    ssoUrl: 'https://idp.example.com/sso?tenant=7',
    certificate: newKey(2048).certificate,
    wantsSignedRequests: true,
  });
  return {
    publicKey: generatedPem(key.certificate),
    response: signed(responseXml(facts), key.privateKey, { algorithm: 'ecdsa-sha256' }),
    metadata,
  };
}

function generatedPem(certificate: string): string {
  return `-----BEGIN CERTIFICATE-----\n${certificate}\n-----END CERTIFICATE-----\n`;
}

async function dpop() {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const jwk = await exportJWK(publicKey);
  const header = { typ: 'dpop+jwt', alg: 'ES256', jwk };
  const payload = {
    jti: 'b1f6a9c2',
    iat: now.getTime() / 1000,
    htm: 'POST',
    htu: 'https://svc.example.com/v1/me',
    // the hash of the token `token`
    ath: 'PEaenWxYddN6Q_NT1PiOYfz4EsZu7jRXRlpAsNpBU-A',
  };
  const encoded = (part: object) => Buffer.from(JSON.stringify(part)).toString('base64url');
  const content = `${encoded(header)}.${encoded(payload)}`;
  const key = { key: privateKey, dsaEncoding: 'ieee-p1363' } as const;
  const signature = sign('sha256', Buffer.from(content), key).toString('base64url');
  return { proof: `${content}.${signature}`, jkt: await calculateJwkThumbprint(jwk) };
}

function clientCertificate() {
  const root = issueCertificate({
    ...validity,
    subject: [['CN', 'Client Root']],
    extensions: [basicConstraints(true), keyUsage('sign-certificates')],
  });
  const leaf = issueCertificate(
    {
      ...validity,
      subject: [
        ['C', 'SE'],
        ['O', 'Example AB'],
        ['CN', 'client-1'],
      ],
      extensions: [basicConstraints(false)],
    },
    root,
  );
  return { root: root.der.toString('base64'), leaf: leaf.der.toString('base64') };
}

function sshAttestation() {
  const vendor = new SecurityKeyVendor(now);
  const challenge = Buffer.alloc(32, 1);
  const keys = (['ecdsa', 'ed25519'] as const).map((type) => {
    const { publicKey, attestation } = vendor.newKey(challenge, { type });
    return { publicKey, file: attestation.toString('base64') };
  });
  return { root: vendor.root.pem, keys };
}

/** Makes private keys, and a signature of the text `content`, by ssh-keygen. */
function sshKeygen() {
  const folder = mkdtempSync(join(tmpdir(), 'svc-vectors-'));
  const keygen = (...args: string[]) => execFileSync('ssh-keygen', args, { cwd: folder });
  try {
    writeFileSync(join(folder, 'list'), 'content');
    const files = ['ed25519', 'ecdsa'].map((type) => {
      keygen('-q', '-t', type, '-N', '', '-C', '', '-f', type);
      rmSync(join(folder, 'list.sig'), { force: true });
      keygen('-Y', 'sign', '-q', '-n', 'file', '-f', type, 'list');
      return {
        privateKey: readFileSync(join(folder, type), 'utf8'),
        publicKey: readFileSync(join(folder, `${type}.pub`), 'utf8'),
        signature: readFileSync(join(folder, 'list.sig'), 'utf8'),
      };
    });
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    return { files, pkcs8: privateKey.export({ type: 'pkcs8', format: 'pem' }) };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const inputs = {
  now: now.toISOString(),
  saml: saml(),
  dpop: await dpop(),
  clientCertificate: clientCertificate(),
  sshAttestation: sshAttestation(),
  sshKeygen: sshKeygen(),
};
const file = new URL('signed-inputs.json', import.meta.url);
writeFileSync(file, `${JSON.stringify(inputs, null, 2)}\n`);
