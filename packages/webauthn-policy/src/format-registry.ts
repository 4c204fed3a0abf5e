import type { AttestationFormat, AttestationTrust } from './attestation-policy.js';

/** A Map with known keys, in which each key has its own type of value. */
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
 * The parsed attestation object of a registration. The parsers of this package's formats set `sig`
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
 * A registration while `fido2-lib` verifies it. It is `this` in the functions of an attestation
 * format, which write their result into it.
 */
export interface RegistrationCeremony {
  readonly request: RegistrationRequest;
  readonly clientData: FieldMap<{ readonly rawClientDataJson: ArrayBuffer }>;
  readonly authnrData: FieldMap<RegistrationFields>;
  readonly audit: {
    /**
     * The names of the verified members. The library `fido2-lib` refuses a registration with a
     * member that is not listed here.
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
   * The trusted roots. The caller of `fido2-lib` adds them to the request, because the library
   * passes the request to the functions of a format. So no global variable is needed.
   */
  readonly trust: AttestationTrust;
  /**
   * The result of the check of the attestation: the AAGUID (the UUID of the key's model) in the
   * certificate, or null if the certificate has none. The caller of `fido2-lib` adds an empty
   * object, and the function of the format fills it.
   */
  readonly decision: { aaguid?: string | null };
}

/**
 * The registry of attestation formats in `fido2-lib`: static methods of its class `Fido2Lib`. The
 * functions of a format get the registration as `this`.
 */
export interface FormatRegistry {
  deleteAllAttestationFormats(): void;
  addAttestationFormat(
    name: string,
    parse: (statement: Record<string, unknown>) => Map<string, unknown>,
    validate: (this: RegistrationCeremony) => Promise<true>,
  ): void;
}
