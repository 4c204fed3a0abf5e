import type {
  AttestationFormat,
  AttestationTrust,
} from '#domain/authenticators/attestation/attestation-policy.js';

/** What the declarations of `fido2-lib` leave out or get wrong, as its code has it (3.5.9). */
declare module 'fido2-lib' {
  /** A Map whose keys are known. */
  interface FieldMap<Fields> {
    get<Name extends keyof Fields>(name: Name): Fields[Name];
    has(name: string): boolean;
  }

  /** What authenticator data says in every ceremony (WebAuthn §6.1). */
  interface SignalFields {
    readonly counter: number;
    /** The names of the flags that are set. */
    readonly flags: ReadonlySet<string>;
  }

  /** The parsed attestation object of a registration; `sig` and `x5c` as our format's parser left them. */
  interface RegistrationFields extends SignalFields {
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

  /** A registration in the library's hands: `this` of an attestation format's functions, and their result. */
  interface RegistrationCeremony {
    readonly request: RegistrationRequest;
    readonly clientData: FieldMap<{ readonly rawClientDataJson: ArrayBuffer }>;
    readonly authnrData: FieldMap<RegistrationFields>;
    readonly audit: {
      /** The names of what has been looked at: the library fails a registration with a member nobody has. */
      readonly journal: Set<string>;
    };
  }

  interface RegistrationRequest {
    readonly rawId: ArrayBuffer;
    readonly response: {
      readonly clientDataJSON: ArrayBuffer;
      readonly attestationObject: ArrayBuffer;
    };
    /** Ours: the library hands the request on to the format's functions, so that trust is never a global. */
    readonly trust: AttestationTrust;
    /** Ours: where the format's function leaves its verdict; empty as long as nobody has judged. */
    readonly verdict: { aaguid?: string | null };
  }

  interface AssertionRequest {
    readonly rawId: ArrayBuffer;
    readonly response: {
      readonly clientDataJSON: ArrayBuffer;
      readonly authenticatorData: ArrayBuffer;
      readonly signature: ArrayBuffer;
      readonly userHandle: ArrayBuffer | undefined;
    };
  }

  interface Fido2Lib {
    attestationResult(
      request: RegistrationRequest,
      expected: ExpectedAttestationResult,
    ): Promise<RegistrationCeremony>;
    assertionResult(
      request: AssertionRequest,
      expected: ExpectedAssertionResult,
    ): Promise<{ readonly authnrData: FieldMap<SignalFields> }>;
  }

  namespace Fido2Lib {
    function deleteAllAttestationFormats(): void;
    function addAttestationFormat(
      name: string,
      parse: (statement: Record<string, unknown>) => Map<string, unknown>,
      validate: (this: RegistrationCeremony) => Promise<true>,
    ): void;
  }
}
