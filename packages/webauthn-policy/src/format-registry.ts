import type { AttestationFormat, AttestationTrust } from './attestation-policy.js';

/** A Map whose keys are known. */
export interface FieldMap<Fields> {
  get<Name extends keyof Fields>(name: Name): Fields[Name];
  has(name: string): boolean;
}

/** The fields of authenticator data in every ceremony (WebAuthn §6.1). */
export interface SignalFields {
  readonly counter: number;
  /** The names of the flags that are set. */
  readonly flags: ReadonlySet<string>;
}

/**
 * The parsed attestation object of a registration; the parser of this service's format sets `sig`
 * and `x5c`.
 */
export interface RegistrationFields extends SignalFields {
  readonly fmt: AttestationFormat;
  readonly sig: Uint8Array;
  readonly x5c: readonly Uint8Array[];
  readonly rawAuthnrData: ArrayBuffer;
  readonly rpIdHash: ArrayBuffer;
  readonly aaguid: ArrayBuffer;
  readonly credId: ArrayBuffer;
  readonly credentialPublicKeyJwk: { readonly x: string; readonly y: string };
  readonly credentialPublicKeyPem: string;
}

/**
 * A registration during verification: `this` in the functions of an attestation format, and their
 * result.
 */
export interface RegistrationCeremony {
  readonly request: RegistrationRequest;
  readonly clientData: FieldMap<{ readonly rawClientDataJson: ArrayBuffer }>;
  readonly authnrData: FieldMap<RegistrationFields>;
  readonly audit: {
    /**
     * The names of the verified members. The library fails a registration with an unverified
     * member.
     */
    readonly journal: Set<string>;
  };
}

export interface RegistrationRequest {
  readonly rawId: ArrayBuffer;
  readonly response: {
    readonly clientDataJSON: ArrayBuffer;
    readonly attestationObject: ArrayBuffer;
  };
  /**
   * Added by this service: the library passes the request to the format's functions, so that
   * trust is not a global.
   */
  readonly trust: AttestationTrust;
  /** Added by this service: the format's function writes its decision here. */
  readonly decision: { aaguid?: string | null };
}

/**
 * The registry of attestation formats, as the static side of `fido2-lib` has it. The functions of
 * a format get the registration as `this`.
 */
export interface FormatRegistry {
  deleteAllAttestationFormats(): void;
  addAttestationFormat(
    name: string,
    parse: (statement: Record<string, unknown>) => Map<string, unknown>,
    validate: (this: RegistrationCeremony) => Promise<true>,
  ): void;
}
