import type {
  FieldMap,
  FormatRegistry,
  RegistrationCeremony,
  RegistrationRequest,
  SignalFields,
} from '@svc/webauthn-policy';

/** Types of `fido2-lib` 3.5.9 that its declarations lack or get wrong. */
declare module 'fido2-lib' {
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
