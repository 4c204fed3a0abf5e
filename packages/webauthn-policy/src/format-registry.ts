import type { AttestationFormat, AttestationTrust } from './attestation-policy.js';

/** A Map with a known set of keys, each with a type of value. */
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
 * The parsed attestation object of a registration. The parser of this package's formats sets `sig`
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
 * A registration while it is verified. It is `this` in the functions of an attestation format,
 * which write their result into it.
 */
export interface RegistrationCeremony {
  readonly request: RegistrationRequest;
  readonly clientData: FieldMap<{ readonly rawClientDataJson: ArrayBuffer }>;
  readonly authnrData: FieldMap<RegistrationFields>;
  readonly audit: {
    /**
     * The names of the verified members. The library refuses a registration with a member that is
     * not among them.
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
   * The trust anchors, which this service adds. The library passes the request to the functions of
   * a format, so that no global variable is needed.
   */
  readonly trust: AttestationTrust;
  /** The decision, which this service adds. The function of the format writes it. */
  readonly decision: { aaguid?: string | null };
}

/**
 * The registry of attestation formats: static methods of the class `Fido2Lib`. The functions of a
 * format get the registration as `this`.
 */
export interface FormatRegistry {
  deleteAllAttestationFormats(): void;
  addAttestationFormat(
    name: string,
    parse: (statement: Record<string, unknown>) => Map<string, unknown>,
    validate: (this: RegistrationCeremony) => Promise<true>,
  ): void;
}
