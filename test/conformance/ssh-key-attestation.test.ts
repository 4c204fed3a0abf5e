import { generateKeyPairSync, randomBytes, sign, X509Certificate } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { parseCertificate, trustAnchorFromPem, type TrustAnchor } from '@svc/webauthn-policy';
import { parseSshPublicKey, sshString, uint32 } from '@svc/openssh';
import { verifyKeyAttestation, type ProvenKey } from '#domain/ssh/hardware-keys/key-attestation.js';
import { issueAuthority } from '@svc/stand-ins/attestation-authority';
import { encodeCbor, FLAG } from '@svc/stand-ins/authenticator-messages';
import { aaguidExtension, basicConstraints, extension } from '@svc/stand-ins/certificates';
import { AAGUID, aaguidBytes, leafSubject, NOW } from '../support/soft-key.js';
import { SecurityKeyVendor, type SshKeyTampering } from '../support/ssh-security-key.js';

const CHALLENGE = randomBytes(32);
const vendor = new SecurityKeyVendor(NOW);
const ANCHOR = trustAnchorFromPem(vendor.root.pem);
const UV = FLAG.userPresent | FLAG.userVerified;

/**
 * Makes an attestation with the given faults, and verifies it as a service that trusts the tests'
 * root certificate.
 */
function verify(
  tampering: SshKeyTampering = {},
  {
    anchors = [ANCHOR],
    now = NOW,
    of = vendor,
  }: { anchors?: TrustAnchor[]; now?: Date; of?: SecurityKeyVendor } = {},
): ProvenKey {
  const { publicKey, attestation } = of.newKey(CHALLENGE, tampering);
  const key = parseSshPublicKey(publicKey);
  return verifyKeyAttestation({ key, file: attestation, challenge: CHALLENGE }, { anchors, now });
}

/** Matches a refusal whose message matches the reason. Another error does not match. */
function refusal(reason: RegExp): object {
  return expect.objectContaining({ name: 'Refusal', message: expect.stringMatching(reason) });
}

describe('an attestation in the format of OpenSSH', () => {
  it.each(['ecdsa', 'ed25519'] as const)('proves a key of type %s-sk and its model', (type) => {
    expect(verify({ type })).toEqual({ aaguid: AAGUID, verifyRequired: false });
  });

  it('proves a key of a U2F device, and takes its model from the certificate alone', () => {
    expect(verify({ u2f: true })).toEqual({ aaguid: AAGUID, verifyRequired: false });
    expect(verify({ u2f: true, leaf: { extensions: [basicConstraints(false)] } })).toEqual({
      aaguid: null,
      verifyRequired: false,
    });
  });

  it.each([
    ['user verification and credProtect 3', UV, 3, true],
    ['user verification alone', UV, undefined, false],
    ['user verification and the credProtect of a resident key', UV, 2, false],
    ['credProtect 3 without user verification', FLAG.userPresent, 3, false],
  ])('shows verify-required by %s: %#', (_, flags, credProtect, verifyRequired) => {
    const asked = credProtect === undefined ? { flags } : { flags, credProtect };
    expect(verify(asked)).toEqual({ aaguid: AAGUID, verifyRequired });
  });

  it('never shows verify-required for a U2F key, which signs no flags', () => {
    expect(verify({ u2f: true, flags: UV, credProtect: 3 }).verifyRequired).toBe(false);
  });
});

/**
 * Returns a fault that replaces one field of the attestation file: 0 magic, 1 certificate, 2
 * signature, 3 authenticator data, 4 flags, 5 reserved.
 */
function field(index: number, value: Buffer): SshKeyTampering {
  return { fields: (honest) => honest.with(index, value) };
}

const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 });
const otherKey = generateKeyPairSync('ec', { namedCurve: 'P-256' });

const REFUSED: readonly (readonly [string, SshKeyTampering, RegExp])[] = [
  [
    'of the old format v00, without authenticator data',
    {
      fields: ([, certificate, signature, , flags, reserved]) =>
        [sshString('ssh-sk-attest-v00'), certificate, signature, flags, reserved] as Buffer[],
    },
    /old format ssh-sk-attest-v00.*OpenSSH 8\.4/,
  ],
  ['of another format', field(0, sshString('ssh-sk-attest-v02')), /not of format/],
  ['with empty authenticator data', field(3, sshString('')), /lacks the authenticator data/],
  [
    'with authenticator data that is no byte string',
    field(3, sshString(encodeCbor('text'))),
    /not one CBOR byte string/,
  ],
  [
    'with two CBOR items',
    field(3, sshString(Buffer.concat([encodeCbor(Buffer.alloc(37)), encodeCbor(1)]))),
    /not one CBOR byte string/,
  ],
  ['with reserved flags', field(4, uint32(1)), /reserved/],
  ['with a reserved string', field(5, sshString('x')), /reserved/],
  [
    'with trailing bytes',
    { fields: (honest) => [...honest, Buffer.of(0)] },
    /damaged: there are bytes after its end/,
  ],
  ['without a certificate, which attests itself', field(1, sshString('')), /attests only itself/],
  ['with a certificate that is no certificate', field(1, sshString('garbage')), /malformed/],
  [
    'with trailing bytes after the certificate',
    { certificate: (der) => Buffer.concat([der, Buffer.of(0)]) },
    /DER|malformed/,
  ],
  ['for another application in the key', { application: 'ssh:work' }, /another application/],
  ['for an application of the web', { application: 'https://example.com' }, /another application/],
  ['for another application in the signed data', { rpId: 'ssh:work' }, /another application/],
  ['without a touch', { flags: 0 }, /touch/],
  ['of a credential that can be copied', { flags: FLAG.userPresent | 0x08 }, /copied/],
  ['with a reserved flag', { flags: FLAG.userPresent | 0x02 }, /reserves/],
  [
    'signed by another key',
    { signer: (signed) => sign('sha256', signed, otherKey.privateKey) },
    /signature does not verify/,
  ],
  [
    'signed with another hash',
    { signer: (signed, leafKey) => sign('sha384', signed, leafKey) },
    /signature does not verify/,
  ],
  ['with an empty signature', field(2, sshString('')), /signature does not verify/],
  [
    'with an RSA attestation certificate',
    {
      leaf: { keys: rsa },
      signer: (signed) => sign('sha256', signed, rsa.privateKey),
    },
    /not on P-256/,
  ],
  ['whose AAGUID is not that of the certificate', { aaguid: Buffer.alloc(16, 7) }, /disagree/],
  [
    'without an AAGUID, against a certificate that has one',
    { aaguid: Buffer.alloc(16) },
    /signature does not verify/,
  ],
  [
    'whose certificate is a CA',
    { leaf: { extensions: [basicConstraints(true), aaguidExtension(aaguidBytes())] } },
    /is a CA/,
  ],
  [
    'whose certificate lacks the attestation unit',
    { leaf: { subject: leafSubject({ OU: 'Sales' }) } },
    /organizational unit/,
  ],
  [
    'whose certificate has an unknown critical extension',
    {
      leaf: { extensions: [extension('1.2.3.4', Buffer.of(5, 0), true)] },
    },
    /critical/,
  ],
  [
    'whose certificate has expired',
    { leaf: { notAfter: new Date(NOW.getTime() - 1000) } },
    /expired/,
  ],
  [
    'of an Ed25519 key, in the format of U2F',
    { type: 'ed25519', aaguid: Buffer.alloc(16) },
    /P-256 keys only/,
  ],
  [
    'with trailing bytes in the authenticator data',
    { authData: (honest) => Buffer.concat([honest, Buffer.of(0)]) },
    /does not end where/,
  ],
];

describe('an attestation is refused', () => {
  it.each(REFUSED)('%s', (_, tampering, reason) => {
    expect(() => verify(tampering)).toThrow(refusal(reason));
  });

  it('of a foreign root', () => {
    const foreign = new SecurityKeyVendor(NOW, 'Foreign Root');
    expect(() => verify({}, { of: foreign })).toThrow(
      refusal(/does not have the certificate of the issuer "CN=Foreign Root"/),
    );
    const namesake = new SecurityKeyVendor(NOW);
    expect(() => verify({}, { of: namesake })).toThrow(refusal(/not its signature/));
  });

  it('of a self-signed certificate', () => {
    const keys = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const subject = leafSubject({});
    const issuer = { ...vendor.root, subject, privateKey: keys.privateKey };
    const tampering = { issuer, leaf: { subject, keys } };
    expect(() => verify(tampering)).toThrow(refusal(/self-signed/));
  });

  it('of a root in the place of the certificate', () => {
    expect(() => verify({ certificate: () => vendor.root.der })).toThrow(refusal(/self-signed/));
  });

  it('over another challenge', () => {
    const { publicKey, attestation } = vendor.newKey(randomBytes(32));
    const presented = {
      key: parseSshPublicKey(publicKey),
      file: attestation,
      challenge: CHALLENGE,
    };
    expect(() => verifyKeyAttestation(presented, { anchors: [ANCHOR], now: NOW })).toThrow(
      refusal(/signature does not verify/),
    );
  });

  it('for another key of the same type, and of another type', () => {
    const { attestation } = vendor.newKey(CHALLENGE);
    for (const type of ['ecdsa', 'ed25519'] as const) {
      const key = parseSshPublicKey(vendor.newKey(CHALLENGE, { type }).publicKey);
      const presented = { key, file: attestation, challenge: CHALLENGE };
      expect(() => verifyKeyAttestation(presented, { anchors: [ANCHOR], now: NOW })).toThrow(
        refusal(/of another key/),
      );
    }
  });

  it('for a key that is not of a security key', () => {
    const { attestation } = vendor.newKey(CHALLENGE);
    const { publicKey } = generateKeyPairSync('ed25519');
    const point = Buffer.from(publicKey.export({ format: 'jwk' }).x ?? '', 'base64url');
    const blob = Buffer.concat([sshString('ssh-ed25519'), sshString(point)]);
    const key = parseSshPublicKey(`ssh-ed25519 ${blob.toString('base64')}`);
    const presented = { key, file: attestation, challenge: CHALLENGE };
    expect(() => verifyKeyAttestation(presented, { anchors: [ANCHOR], now: NOW })).toThrow(
      refusal(/"sk-"/),
    );
  });

  it('truncated at any length, or with a bit of any byte changed', () => {
    const { publicKey, attestation } = vendor.newKey(CHALLENGE, { flags: UV, credProtect: 3 });
    const key = parseSshPublicKey(publicKey);
    const check = (file: Buffer) => () =>
      verifyKeyAttestation({ key, file, challenge: CHALLENGE }, { anchors: [ANCHOR], now: NOW });
    expect(check(attestation)()).toMatchObject({ verifyRequired: true });
    for (let length = 0; length < attestation.length; length += 1) {
      expect(check(attestation.subarray(0, length))).toThrow(refusal(/./));
    }
    for (let at = 0; at < attestation.length; at += 1) {
      const changed = Buffer.from(attestation);
      changed[at] = (changed[at] ?? 0) ^ 0x01;
      expect(check(changed), `byte ${at}`).toThrow(refusal(/./));
    }
  });

  it('with a length that promises gigabytes', () => {
    const huge = Buffer.concat([
      sshString('ssh-sk-attest-v01'),
      uint32(0xffff_ffff),
      Buffer.alloc(64),
    ]);
    const key = parseSshPublicKey(vendor.newKey(CHALLENGE).publicKey);
    expect(() =>
      verifyKeyAttestation(
        { key, file: huge, challenge: CHALLENGE },
        { anchors: [ANCHOR], now: NOW },
      ),
    ).toThrow(refusal(/damaged/));
  });
});

describe('a chain of one certificate', () => {
  const middle = issueAuthority('Test Attestation Intermediate', NOW, vendor.root);
  const fido = issueAuthority('Yubico FIDO Attestation Test', NOW, middle);
  const piv = issueAuthority('Yubico PIV Attestation Test', NOW, middle);
  const known = (...authorities: (typeof middle)[]) =>
    authorities.map(({ der }) => parseCertificate(der));
  const anchor = (intermediates: TrustAnchor['intermediates']) =>
    trustAnchorFromPem(vendor.root.pem, { fidoCaRequired: true, intermediates });

  it('is completed with the intermediates of the anchor', () => {
    const anchors = [anchor(known(middle, fido, piv))];
    expect(verify({ issuer: fido }, { anchors })).toMatchObject({ aaguid: AAGUID });
  });

  it('is completed with the signer of two intermediates that have one name', () => {
    const twin = issueAuthority('Yubico FIDO Attestation Test', NOW, middle);
    for (const order of [known(middle, twin, fido), known(middle, fido, twin)]) {
      expect(verify({ issuer: fido }, { anchors: [anchor(order)] })).toMatchObject({
        aaguid: AAGUID,
      });
    }
  });

  it('is refused where an intermediate is missing, and the refusal names it', () => {
    expect(() => verify({ issuer: fido }, { anchors: [anchor(known(middle))] })).toThrow(
      refusal(/does not have the certificate of the issuer "CN=Yubico FIDO Attestation Test"/),
    );
    expect(() => verify({ issuer: fido }, { anchors: [anchor(known(fido))] })).toThrow(
      refusal(/does not have the certificate of the issuer "CN=Test Attestation Intermediate"/),
    );
  });

  it('is refused where the authority is not one of FIDO', () => {
    expect(() => verify({ issuer: piv }, { anchors: [anchor(known(middle, piv))] })).toThrow(
      refusal(/Yubico FIDO Attestation/),
    );
  });

  it('is refused where an authority only bears the name of the intermediate', () => {
    const impostor = issueAuthority('Yubico FIDO Attestation Test', NOW, middle);
    expect(() => verify({ issuer: impostor }, { anchors: [anchor(known(middle, fido))] })).toThrow(
      refusal(/not its signature/),
    );
  });

  it('is not completed with intermediates that end in no trusted root', () => {
    const foreign = new SecurityKeyVendor(NOW, 'Foreign Root');
    const theirs = issueAuthority('Yubico FIDO Attestation Foreign', NOW, foreign.root);
    const anchors = [anchor(known(theirs))];
    expect(() => verify({ issuer: theirs }, { anchors, of: foreign })).toThrow(
      refusal(/Foreign Root/),
    );
  });

  it('is not completed for a U2F key, whose path has one certificate', () => {
    const anchors = [anchor(known(middle, fido))];
    expect(() => verify({ issuer: fido, u2f: true }, { anchors })).toThrow(
      refusal(/exactly one certificate/),
    );
  });

  it('does not follow authorities that signed one another in a circle', () => {
    const keys = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const a = issueAuthority('A', NOW, { ...middle, ...keys, subject: [['CN', 'B']] });
    const b = issueAuthority('B', NOW, a, { keys });
    expect(new X509Certificate(a.der).verify(new X509Certificate(b.der).publicKey)).toBe(true);
    expect(() => verify({ issuer: b }, { anchors: [anchor(known(a, b))] })).toThrow(
      refusal(/too long/),
    );
  });
});
