import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import {
  attestationObject,
  authenticatorData,
  encodeCbor,
  FLAG as SIMULATED,
} from '@svc/stand-ins/authenticator-messages';
import { SoftwareKey } from '@svc/stand-ins/software-key';
import {
  checkAuthenticatorData,
  FLAG,
  readAttestationObject,
  readAuthenticatorData,
  readCanonicalCbor,
  Refusal,
  registerAttestationFormats,
  trustAnchorFromPem,
  verifyAttestation,
  type AttestationFormat,
  type AttestedCredential,
  type FormatRegistry,
} from '@svc/webauthn-policy';

const MODEL = 'c0ffee00-5f70-4a7e-8e1d-50f7a4e0ce01';
const bytes = (text: string) => Buffer.from(text, 'base64url');

/**
 * Reads a registration from the test vectors. Returns the arguments of `verifyAttestation` for it,
 * and its client data.
 */
function vector(format: AttestationFormat) {
  const file = new URL(`../../../test/vectors/webauthn/${format}.json`, import.meta.url);
  const { now, rootPem, registration } = JSON.parse(readFileSync(file, 'utf8'));
  const object = readAttestationObject(bytes(registration.response.attestationObject));
  const data = readAuthenticatorData(object.authenticatorData, 'registration');
  const key = data.credential?.key as ReadonlyMap<number, Uint8Array>;
  const credential: AttestedCredential = {
    authenticatorData: object.authenticatorData,
    clientDataHash: hash('sha256', bytes(registration.response.clientDataJSON), 'buffer'),
    rpIdHash: data.rpIdHash,
    aaguid: data.credential!.aaguid,
    credentialId: data.credential!.credentialId,
    publicKey: { x: key.get(-2)!, y: key.get(-3)! },
  };
  const signature = object.statement.get('sig') as Uint8Array;
  const x5c = object.statement.get('x5c') as readonly Uint8Array[];
  const trust = { anchors: [trustAnchorFromPem(rootPem)], now: new Date(now) };
  const rawClientDataJson = bytes(registration.response.clientDataJSON);
  return { statement: { format, signature, x5c }, credential, trust, rawClientDataJson };
}

const flipped = (data: Uint8Array) => {
  const copy = Buffer.from(data);
  copy[copy.length - 1]! ^= 1;
  return copy;
};

describe.each(['packed', 'fido-u2f'] as const)('the policy on a %s attestation', (format) => {
  const { statement, credential, trust } = vector(format);
  const refusal = (changed: Partial<Parameters<typeof verifyAttestation>[0]>) => () =>
    verifyAttestation({ ...statement, ...changed }, credential, trust);

  it('accepts a path to an anchor, and returns the model of the certificate', () => {
    expect(verifyAttestation(statement, credential, trust)).toBe(MODEL);
  });

  it('refuses every other anchor, and none at all', () => {
    const other = trustAnchorFromPem(new SoftwareKey({ now: trust.now }).rootPem);
    for (const anchors of [[], [other]]) {
      expect(() => verifyAttestation(statement, credential, { ...trust, anchors })).toThrow(
        Refusal,
      );
    }
  });

  it('refuses a certificate outside its validity', () => {
    for (const now of [new Date('2000-01-01'), new Date('2999-01-01')]) {
      expect(() => verifyAttestation(statement, credential, { ...trust, now })).toThrow(Refusal);
    }
  });

  it('refuses self-attestation, a root in the chain, and a changed certificate', () => {
    expect(refusal({ x5c: [] })).toThrow('Self-attestation');
    const [root] = trust.anchors;
    expect(refusal({ x5c: [...statement.x5c, root!.certificate.x509.raw] })).toThrow(Refusal);
    expect(refusal({ x5c: statement.x5c.map(flipped) })).toThrow(Refusal);
  });

  it('refuses a signature over other data', () => {
    expect(refusal({ signature: flipped(statement.signature) })).toThrow(Refusal);
    const about = (changed: Partial<AttestedCredential>) => () =>
      verifyAttestation(statement, { ...credential, ...changed }, trust);
    expect(about({ clientDataHash: Buffer.alloc(32) })).toThrow('does not verify');
    expect(about({ aaguid: Buffer.alloc(16, 1) })).toThrow('disagree');
  });
});

describe('the strict parsers', () => {
  it('refuse CBOR in another spelling than that of CTAP2', () => {
    expect(readCanonicalCbor(encodeCbor(new Map([['a', 1]])))).toEqual([new Map([['a', 1]])]);
    for (const hex of ['1801', 'bf616101ff', 'a2616101616102', 'a161', '616180ff']) {
      expect(() => readCanonicalCbor(Buffer.from(hex, 'hex')), hex).toThrow(Refusal);
    }
  });

  it('refuse an attestation object with bytes or members too many', () => {
    const whole = attestationObject('none', new Map(), Buffer.alloc(37));
    expect(readAttestationObject(whole).format).toBe('none');
    expect(() => readAttestationObject(Buffer.concat([whole, Buffer.of(0)]))).toThrow(Refusal);
    expect(() => readAttestationObject(encodeCbor(new Map([['fmt', 'none']])))).toThrow(Refusal);
  });

  it('refuse passkeys that can be copied, reserved flags, and data that ends elsewhere', () => {
    const data = (flags: number) => authenticatorData('localhost', flags, 1);
    const check = (flags: number) => () => checkAuthenticatorData(data(flags), 'assertion');
    expect(check(SIMULATED.userPresent)).not.toThrow();
    for (const flag of [FLAG.backupEligible, FLAG.backedUp, FLAG.credential, FLAG.extensions]) {
      expect(check(SIMULATED.userPresent | flag), String(flag)).toThrow(Refusal);
    }
    expect(check(SIMULATED.userPresent | 0x02)).toThrow(Refusal);
  });
});

describe('the handlers for fido2-lib', () => {
  const added = new Map<string, Parameters<FormatRegistry['addAttestationFormat']>>();
  registerAttestationFormats({
    deleteAllAttestationFormats: () => added.clear(),
    addAttestationFormat: (...handler) => void added.set(handler[0], handler),
  });

  it('are the two formats of the policy and no other', () => {
    expect([...added.keys()]).toEqual(['packed', 'fido-u2f']);
  });

  it('refuse a statement without certificates, of another algorithm, or with a member too many', () => {
    const [, parse] = added.get('packed')!;
    const whole = { alg: -7, sig: Buffer.of(1), x5c: [Buffer.of(1)] };
    expect([...parse(whole).keys()]).toEqual(['alg', 'sig', 'x5c']);
    for (const changed of [{ x5c: undefined }, { alg: -257 }, { x: 1 }, { sig: 'text' }]) {
      expect(() => parse({ ...whole, ...changed })).toThrow(Refusal);
    }
  });

  it('write the decision only after the policy has accepted', async () => {
    const { statement, credential, trust, rawClientDataJson } = vector('packed');
    const [, , validate] = added.get('packed')!;
    const decision: { aaguid?: string | null } = {};
    const fields: Record<string, unknown> = {
      sig: statement.signature,
      x5c: statement.x5c,
      rawAuthnrData: credential.authenticatorData,
      rpIdHash: credential.rpIdHash,
      aaguid: credential.aaguid,
      credId: credential.credentialId,
      credentialPublicKeyJwk: {
        x: Buffer.from(credential.publicKey!.x).toString('base64url'),
        y: Buffer.from(credential.publicKey!.y).toString('base64url'),
      },
    };
    const ceremony = (anchors: typeof trust.anchors) =>
      ({
        request: { trust: { ...trust, anchors }, decision },
        clientData: new Map([['rawClientDataJson', rawClientDataJson]]),
        authnrData: new Map(Object.entries(fields)),
        audit: { journal: new Set<string>() },
      }) as unknown as ThisParameterType<typeof validate>;
    await expect(validate.call(ceremony([]))).rejects.toThrow(Refusal);
    expect(decision).toEqual({});
    await expect(validate.call(ceremony(trust.anchors))).resolves.toBe(true);
    expect(decision).toEqual({ aaguid: MODEL });
  });
});
