import { z } from 'zod';

/**
 * The ways in which a browser can communicate with a key (WebAuthn §5.8.4). Unknown ones from a
 * client are dropped.
 */
const TRANSPORTS = ['usb', 'nfc', 'ble', 'smart-card', 'hybrid', 'internal'] as const;

/**
 * A schema for base64url of `minimum` to `maximum` bytes. Only the canonical spelling is accepted,
 * with or without padding, because older clients send padding.
 */
const base64url = (minimum: number, maximum: number) =>
  z
    .string()
    .refine((text) => isCanonicalBase64url(text, minimum, maximum), {
      error: `must be base64url of ${minimum} to ${maximum} bytes`,
      abort: true,
    })
    .transform((text) => Buffer.from(text, 'base64url'));

function isCanonicalBase64url(text: string, minimum: number, maximum: number): boolean {
  const bytes = Buffer.from(text, 'base64url');
  const fits = bytes.length >= minimum && bytes.length <= maximum;
  const unpadded = text.replace(/={1,2}$/, '');
  const isPaddedRight = unpadded === text || text.length % 4 === 0;
  return fits && isPaddedRight && bytes.toString('base64url') === unpadded;
}

/** The schema of a credential id, which has 1 to 1023 bytes (WebAuthn §4). */
const credentialId = base64url(1, 1023);
const clientDataJSON = base64url(1, 4096);
const transports = z
  .array(z.string().max(32))
  .max(16)
  .default([])
  .transform((names) => TRANSPORTS.filter((name) => names.includes(name)));

const credentialOf = <Response extends z.ZodType>(response: Response) =>
  z
    .object({
      id: credentialId,
      rawId: credentialId,
      type: z.literal('public-key'),
      /**
       * Says if the key is built into the device (`platform`) or separate (`cross-platform`)
       * (WebAuthn §5.4.5).
       */
      authenticatorAttachment: z.string().max(32).nullish(),
      response,
    })
    .refine(({ id, rawId }) => id.equals(rawId), 'id and rawId must be the same');

/**
 * The schema of `RegistrationResponseJSON` (WebAuthn Level 3 §5.1). It decodes base64url and
 * limits every length.
 */
export const REGISTRATION_RESPONSE = credentialOf(
  z.object({ clientDataJSON, attestationObject: base64url(1, 16_384), transports }),
);

/**
 * The schema of `AuthenticationResponseJSON` (WebAuthn Level 3 §5.1). It decodes base64url and
 * limits every length.
 */
export const AUTHENTICATION_RESPONSE = credentialOf(
  z.object({
    clientDataJSON,
    authenticatorData: base64url(37, 2048),
    signature: base64url(1, 256),
    userHandle: base64url(0, 64).nullish(),
  }),
);

/**
 * An assertion (the signature of a security key in a login) as the client sent it, with its
 * base64url decoded and nothing verified.
 */
export type AuthenticationResponse = z.output<typeof AUTHENTICATION_RESPONSE>;

/**
 * A registration (the new credential of a security key) as the client sent it, with its base64url
 * decoded and nothing verified.
 */
export type RegistrationResponse = z.output<typeof REGISTRATION_RESPONSE>;

/** Says if a ceremony demands that the key verifies its user by a PIN or a fingerprint. */
export type UserVerification = 'required' | 'preferred' | 'discouraged';

/** A credential that the options of a ceremony name, with its id in base64url. */
export interface CredentialDescriptorJSON {
  readonly type: 'public-key';
  readonly id: string;
  readonly transports?: readonly string[];
}

/** `PublicKeyCredentialCreationOptionsJSON` (WebAuthn Level 3 §5.1.8), as this service fills it. */
export interface CreationOptionsJSON {
  readonly rp: { readonly id: string; readonly name: string };
  readonly user: { readonly id: string; readonly name: string; readonly displayName: string };
  readonly challenge: string;
  readonly pubKeyCredParams: readonly { readonly type: 'public-key'; readonly alg: number }[];
  readonly timeout: number;
  readonly excludeCredentials: readonly CredentialDescriptorJSON[];
  readonly authenticatorSelection: {
    readonly authenticatorAttachment: 'cross-platform';
    readonly residentKey: 'preferred';
    readonly requireResidentKey: boolean;
    readonly userVerification: UserVerification;
  };
  readonly attestation: 'direct';
  /** The kind of key that a browser offers first (WebAuthn Level 3 §5.8.7). */
  readonly hints: readonly ['security-key'];
}

/** `PublicKeyCredentialRequestOptionsJSON` (WebAuthn Level 3 §5.1.9), as this service fills it. */
export interface RequestOptionsJSON {
  readonly challenge: string;
  readonly timeout: number;
  readonly rpId: string;
  readonly allowCredentials: readonly CredentialDescriptorJSON[];
  readonly userVerification: UserVerification;
  readonly hints: readonly ['security-key'];
}

/** `RegistrationResponseJSON` as a client sends it; all bytes are in base64url. */
export interface RegistrationResponseJSON {
  readonly id: string;
  readonly rawId: string;
  readonly type: 'public-key';
  readonly authenticatorAttachment?: string;
  readonly response: {
    readonly clientDataJSON: string;
    readonly attestationObject: string;
    readonly transports: readonly string[];
  };
  readonly clientExtensionResults: object;
}

/** `AuthenticationResponseJSON` as a client sends it; all bytes are in base64url. */
export interface AuthenticationResponseJSON {
  readonly id: string;
  readonly rawId: string;
  readonly type: 'public-key';
  readonly response: {
    readonly clientDataJSON: string;
    readonly authenticatorData: string;
    readonly signature: string;
    readonly userHandle?: string;
  };
  readonly clientExtensionResults: object;
}
