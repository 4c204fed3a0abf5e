import {
  parseCertificate,
  readAttestationObject,
  Refusal,
  trustAnchorFromPem,
  verifyAttestation,
  completeChain,
} from '@svc/webauthn-policy';
import { X509Certificate } from 'node:crypto';
import { DER } from '../../engine/structures.js';
import { attempt, rule, type FuzzTarget } from '../../engine/target.js';
import { FIDO_U2F, PACKED } from '../webauthn/ceremonies.js';

const LEAVES = [PACKED, FIDO_U2F].flatMap(({ attestationObject }) => {
  const x5c = readAttestationObject(attestationObject).statement.get('x5c') as Uint8Array[];
  return x5c.map((certificate) => Buffer.from(certificate));
});
const ROOTS = [PACKED, FIDO_U2F].map(({ rootPem }) => rootPem);
const ANCHORS = ROOTS.map((pem) => trustAnchorFromPem(pem));
const NONE = Buffer.alloc(0);

export const target: FuzzTarget = {
  parser: 'parseCertificate, completeChain',
  seeds: [...LEAVES, ...ROOTS.map((pem) => new X509Certificate(pem).raw)],
  dictionary: [
    Buffer.from('0603551d13', 'hex'),
    Buffer.from('0603551d0f', 'hex'),
    Buffer.from('060b2b0601040182e51c010104', 'hex'),
    Buffer.from('0101ff', 'hex'),
    Buffer.from('30030101ff', 'hex'),
    Buffer.from('03820101', 'hex'),
    'Yubico FIDO Attestation ',
  ],
  structure: DER,
  longest: 2048,
  run(input) {
    const read = attempt(() => parseCertificate(input), isRefusal);
    if (!read) return false;
    const { x509, basicConstraints, signsCertificates, extensions } = read;
    rule(x509.raw.length === input.length, 'bytes after the certificate are accepted');
    const isAuthority = basicConstraints?.ca === true && signsCertificates;
    // This checks one direction alone. In the other one, OpenSSL may also take a certificate of
    // version 1 for an authority, although it has no extensions.
    rule(!isAuthority || x509.ca, 'OpenSSL does not take it for an authority');
    rule(extensions.size === 0 || read.version === 3, 'extensions before version 3');
    attempt(() => completeChain(read, ANCHORS), isRefusal);
    rule(!isVerified(input), 'a statement with an empty signature is accepted');
    return true;
  },
};

const isRefusal = (error: unknown) => error instanceof Refusal;

function isVerified(certificate: Buffer): boolean {
  const credential = {
    authenticatorData: NONE,
    clientDataHash: NONE,
    rpIdHash: NONE,
    aaguid: Buffer.alloc(16),
    credentialId: NONE,
    publicKey: { x: NONE, y: NONE },
  };
  const trust = { anchors: ANCHORS, now: PACKED.now };
  const verify = () =>
    verifyAttestation({ format: 'packed', signature: NONE, x5c: [certificate] }, credential, trust);
  return attempt(verify, isRefusal) !== undefined;
}
