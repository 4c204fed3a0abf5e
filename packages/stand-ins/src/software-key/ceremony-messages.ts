/**
 * How strongly a ceremony asks the key to verify its user, by a PIN or a fingerprint (WebAuthn
 * Level 3 §5.8.6).
 */
export type PinDemand = 'required' | 'preferred' | 'discouraged';

/** A credential that the options of a WebAuthn ceremony list by its id. */
interface NamedCredential {
  /** The id of the credential in base64url. */
  readonly id: string;
}

/** The options of `navigator.credentials.create()` that a key reads (WebAuthn Level 3 §5.1.8). */
export interface CreateOptions {
  readonly challenge: string;
  readonly pubKeyCredParams: readonly { readonly type?: 'public-key'; readonly alg: number }[];
  readonly excludeCredentials: readonly NamedCredential[];
  readonly rp: { readonly id: string };
  readonly user: { readonly id: string; readonly name?: string | undefined };
  readonly authenticatorSelection: { readonly userVerification: PinDemand };
}

/** The options of `navigator.credentials.get()` that a key reads (WebAuthn Level 3 §5.1.9). */
export interface GetOptions {
  readonly challenge: string;
  readonly rpId: string;
  readonly allowCredentials: readonly NamedCredential[];
  readonly userVerification: PinDemand;
  /** The user handle of the account that the user chose, if the options name no credential. */
  readonly account?: string | undefined;
}

/** The members that the answers of `create()` and `get()` have in common. */
export interface CeremonyAnswer {
  /** The id of the credential in base64url. */
  readonly id: string;
  readonly rawId: string;
  readonly type: 'public-key';
  readonly clientExtensionResults: object;
}

/**
 * The answer of `navigator.credentials.create()` as JSON, with all bytes in base64url (WebAuthn
 * Level 3 §5.1).
 */
export interface KeyRegistration extends CeremonyAnswer {
  readonly authenticatorAttachment?: string;
  readonly response: {
    readonly clientDataJSON: string;
    readonly attestationObject: string;
    readonly transports: readonly string[];
  };
}

/**
 * The answer of `navigator.credentials.get()` as JSON, with all bytes in base64url (WebAuthn Level
 * 3 §5.1).
 */
export interface KeyAssertion extends CeremonyAnswer {
  readonly response: {
    readonly clientDataJSON: string;
    readonly authenticatorData: string;
    readonly signature: string;
    readonly userHandle?: string;
  };
}
