import { hash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import {
  PINNED_ROOTS,
  trustAnchorFromPem,
} from '#domain/authenticators/attestation/trust-anchors.js';
import {
  issueAttestationLeaf,
  issueAuthority,
} from '../../../../src/demo/software-key/attestation-authority.js';
import { basicConstraints } from '../../../../src/demo/software-key/certificates.js';

const NOW = new Date('2026-01-15T12:00:00Z');

describe('the pinned roots', () => {
  it.each([
    [
      'CN=Yubico U2F Root CA Serial 457200631',
      '0fa1386f80eb8713263ae5c1d84deb455bdf08aea50ab05503cefee82b092d42',
      false,
    ],
    [
      'CN=Yubico FIDO Root CA Serial 450203556',
      '35f1a54b353bfb711e6d42adbeb76c0e9dead095018e6a94783ba2192fd6faad',
      false,
    ],
    [
      'CN=Yubico Attestation Root 1',
      '62760c6a6ef91679f454c8902b80fd009825b3f25da90f1fbace2ec6586cd5a8',
      true,
    ],
  ])('include %s by its fingerprint', (subject, sha256, fidoCaRequired) => {
    const root = PINNED_ROOTS.find(({ certificate }) => certificate.x509.subject === subject);
    expect(root && hash('sha256', root.certificate.x509.raw)).toBe(sha256);
    expect(root?.fidoCaRequired).toBe(fidoCaRequired);
  });

  it('are three and no more', () => {
    expect(PINNED_ROOTS).toHaveLength(3);
  });
});

describe('trustAnchorFromPem', () => {
  it('takes a root', () => {
    const root = issueAuthority('Test Root', NOW);
    expect(trustAnchorFromPem(root.pem)).toMatchObject({ fidoCaRequired: false });
  });

  it('refuses a leaf, a CA that may not sign certificates, and text that is not a certificate', () => {
    const root = issueAuthority('Test Root', NOW);
    const leaf = issueAttestationLeaf(Buffer.alloc(16), NOW, root);
    expect(() => trustAnchorFromPem(leaf.pem)).toThrow(/^not a certificate authority: C=SE/);
    const mute = issueAuthority('Mute', NOW, undefined, { extensions: [basicConstraints(true)] });
    expect(() => trustAnchorFromPem(mute.pem)).toThrow('not a certificate authority: CN=Mute');
    expect(() => trustAnchorFromPem('not PEM')).toThrow(Error);
  });
});
