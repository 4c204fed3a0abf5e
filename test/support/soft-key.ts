import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import type { Config } from '#platform/config/config.js';
import type { AaguidPolicy } from '#platform/config/table/shapes.js';
import { trustAnchorFromPem } from '@svc/webauthn-policy';
import {
  WebAuthnCeremonies,
  type VerifiedRegistration,
} from '#domain/keys/authenticators/webauthn-ceremonies.service.js';
import type {
  AuthenticationResponseJSON,
  RegistrationResponseJSON,
} from '#domain/keys/authenticators/ceremony/webauthn-json.js';
import { issueAttestationLeaf, issueAuthority } from '@svc/stand-ins/attestation-authority';
import {
  assertionSignature,
  attestationObject,
  attestationStatement,
  authenticatorData,
  clientDataJSON,
  FLAG,
  type SimulatedFormat,
} from '@svc/stand-ins/authenticator-messages';
import type { CertificateRequest, GeneratedCertificate, Name } from '@svc/stand-ins/certificates';
import { envelope } from '@svc/stand-ins/software-key';

export const ORIGIN = 'http://localhost:3000';
export const RP_ID = 'localhost';
export const NOW = new Date('2026-01-15T12:00:00Z');
export const CHALLENGE = Buffer.alloc(32, 0xc4);
export const USER_HANDLE = Buffer.from('0199d0c6-7c1e-7000-8000-000000000001');
/**
 * The AAGUID (model number) of a YubiKey 5 Series with NFC. The policy `yubikey-5` allows this
 * model, and the policy `fips-only` does not.
 */
export const AAGUID = 'fa2b99dc-9e39-4257-8f92-4a30d23c4118';

/**
 * Changes to the data of an otherwise correct ceremony (registration or assertion). A function gets
 * the correct value and returns the changed one.
 */
interface Tampering {
  /** Members that are set or replaced in the client data before these are hashed. */
  readonly clientData?: object;
  readonly rpId?: string;
  readonly flags?: number;
  readonly signCount?: number;
  /** Changes the authenticator data before signing. */
  readonly authData?: (honest: Buffer) => Buffer;
}

/** A certificate authority between the root and the leaf, and changes of its certificate. */
interface Intermediate extends Partial<CertificateRequest> {
  readonly name: string;
}

/** Changes to an otherwise correct registration. */
export interface RegistrationTampering extends Tampering {
  readonly format?: SimulatedFormat;
  /** The attestation format that the registration names. By default it is the real one. */
  readonly fmt?: string;
  /** The AAGUID in the authenticator data, 16 bytes. */
  readonly aaguid?: Buffer;
  readonly root?: Partial<CertificateRequest>;
  /** The intermediate authorities, beginning with the one below the root. */
  readonly intermediates?: readonly Intermediate[];
  readonly leaf?: Partial<CertificateRequest>;
  /**
   * The key that signs the leaf certificate. By default it is that of the issuer which the
   * certificate names.
   */
  readonly leafSigner?: KeyObject;
  readonly x5c?: (honest: Buffer[], root: Buffer) => Buffer[];
  readonly statement?: (honest: Map<string, unknown>) => Map<string, unknown>;
  readonly attestationObject?: (honest: Buffer) => Buffer;
}

/** Changes to an otherwise correct assertion. */
export interface AssertionTampering extends Tampering {
  /** The user handle in the response; null for a response without one. */
  readonly userHandle?: Buffer | null;
  readonly signature?: (honest: Buffer) => Buffer;
}

/** Returns a registration with the given changes, and the root of its attestation. */
export function registration(tampering: RegistrationTampering = {}): {
  credential: RegistrationResponseJSON;
  rootPem: string;
  credentialKey: KeyObject;
} {
  const format = tampering.format ?? 'packed';
  const { root, leaf, x5c } = chain(tampering);
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const aaguid = tampering.aaguid ?? (format === 'packed' ? aaguidBytes() : Buffer.alloc(16));
  const attested = { aaguid, credentialId: Buffer.alloc(32, 0x1d), publicKey };
  const clientData = tamperedClientData('webauthn.create', tampering);
  const honestAuthData = authenticatorData(
    tampering.rpId ?? RP_ID,
    tampering.flags ?? FLAG.userPresent,
    tampering.signCount ?? 1,
    attested,
  );
  const authData = tampering.authData?.(honestAuthData) ?? honestAuthData;
  const honestStatement = attestationStatement(
    format,
    leaf.privateKey,
    x5c,
    authData,
    clientData,
    attested,
  );
  const statement = tampering.statement?.(honestStatement) ?? honestStatement;
  const honestObject = attestationObject(tampering.fmt ?? format, statement, authData);
  const object = tampering.attestationObject?.(honestObject) ?? honestObject;
  const credential = {
    ...envelope(attested.credentialId),
    response: {
      clientDataJSON: clientData.toString('base64url'),
      attestationObject: object.toString('base64url'),
      transports: ['usb', 'nfc'],
    },
  };
  return { credential, rootPem: root.pem, credentialKey: privateKey };
}

/**
 * Returns an assertion with the given changes, and the values that the server has stored about the
 * key.
 */
export function assertion(tampering: AssertionTampering = {}): {
  credential: AuthenticationResponseJSON;
  credentialId: Buffer;
  publicKey: string;
} {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const credentialId = Buffer.alloc(32, 0x1d);
  const clientData = tamperedClientData('webauthn.get', tampering);
  const honest = authenticatorData(
    tampering.rpId ?? RP_ID,
    tampering.flags ?? FLAG.userPresent | FLAG.userVerified,
    tampering.signCount ?? 7,
  );
  const authData = tampering.authData?.(honest) ?? honest;
  const signature = assertionSignature(privateKey, authData, clientData);
  const userHandle = tampering.userHandle === undefined ? USER_HANDLE : tampering.userHandle;
  const credential = {
    ...envelope(credentialId),
    response: {
      clientDataJSON: clientData.toString('base64url'),
      authenticatorData: authData.toString('base64url'),
      signature: (tampering.signature?.(signature) ?? signature).toString('base64url'),
      ...(userHandle && { userHandle: userHandle.toString('base64url') }),
    },
  };
  return {
    credential,
    credentialId,
    publicKey: publicKey.export({ type: 'spki', format: 'pem' }).toString(),
  };
}

/** Verifies a registration with the given changes, as a server that trusts its attestation root. */
export function register(
  tampering: RegistrationTampering = {},
  trust: { readonly policy?: AaguidPolicy; readonly fidoCaRequired?: boolean } = {},
): Promise<VerifiedRegistration> {
  const { credential, rootPem } = registration(tampering);
  const server = ceremonies({ roots: [rootPem], ...trust });
  return server.verifyRegistration({ credential, challenge: CHALLENGE, now: NOW });
}

/** Matches a DomainError of status 400 with exactly this detail. */
export function refusal(detail: unknown, code = 'attestation_rejected'): object {
  return { name: 'DomainError', code, status: 400, detail };
}

/** Sets a flag in authenticator data in place, and returns the data. */
export function withFlag(authData: Buffer, flag: number): Buffer {
  authData.writeUInt8(authData.readUInt8(32) | flag, 32);
  return authData;
}

/** Creates the tested class `WebAuthnCeremonies`, which trusts the given attestation roots. */
export function ceremonies(
  options: {
    readonly roots?: readonly string[];
    readonly policy?: AaguidPolicy;
    readonly fidoCaRequired?: boolean;
    readonly origin?: string;
    readonly rpId?: string;
  } = {},
): WebAuthnCeremonies {
  const config: Pick<Config, 'relyingParty'> & { http: object; enrollment: object } = {
    http: { baseUrl: options.origin ?? ORIGIN },
    relyingParty: { id: options.rpId ?? RP_ID, name: 'svc', organizationName: 'svc' },
    enrollment: { allowedAaguids: options.policy ?? { kind: 'any' } },
  };
  const anchors = (options.roots ?? []).map((pem) =>
    trustAnchorFromPem(pem, { fidoCaRequired: options.fidoCaRequired ?? false }),
  );
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- only these slices are read
  return new WebAuthnCeremonies(config as Config, anchors);
}

/**
 * Returns a subject for an attestation certificate. It is correct (WebAuthn §8.2.1) except for the
 * given changes, and null removes an attribute.
 */
export function leafSubject(different: {
  C?: string | null;
  O?: null;
  OU?: string;
  CN?: string | null;
}): Name {
  const honest = { C: 'SE', O: 'Yubico AB', OU: 'Authenticator Attestation', CN: 'Test EE' };
  return (['C', 'O', 'OU', 'CN'] as const).flatMap((attribute) => {
    const value = { ...honest, ...different }[attribute];
    return value === null ? [] : [[attribute, value] as const];
  });
}

/** Returns the 16 bytes of an AAGUID, which is written as a UUID. */
export function aaguidBytes(uuid = AAGUID): Buffer {
  return Buffer.from(uuid.replaceAll('-', ''), 'hex');
}

function chain(tampering: RegistrationTampering): {
  root: GeneratedCertificate;
  leaf: GeneratedCertificate;
  x5c: Buffer[];
} {
  const root = issueAuthority('Test Attestation Root', NOW, undefined, tampering.root);
  const authorities = [root];
  for (const { name, ...overrides } of tampering.intermediates ?? []) {
    authorities.unshift(issueAuthority(name, NOW, authorities[0], overrides));
  }
  const [issuer = root] = authorities;
  const signer = { ...issuer, privateKey: tampering.leafSigner ?? issuer.privateKey };
  const leaf = issueAttestationLeaf(aaguidBytes(), NOW, signer, tampering.leaf);
  const honest = [leaf, ...authorities.slice(0, -1)].map(({ der }) => der);
  return { root, leaf, x5c: tampering.x5c?.(honest, root.der) ?? honest };
}

function tamperedClientData(
  type: 'webauthn.create' | 'webauthn.get',
  tampering: Tampering,
): Buffer {
  const honest = clientDataJSON(type, CHALLENGE.toString('base64url'), ORIGIN);
  if (!tampering.clientData) return honest;
  return Buffer.from(JSON.stringify({ ...JSON.parse(honest.toString()), ...tampering.clientData }));
}
