import { readFileSync } from 'node:fs';

/**
 * The signed inputs in `test/vectors/fuzzing`. Their private keys were not kept, so that an
 * accepted input with another content is a forgery.
 */
interface SignedInputs {
  readonly now: string;
  readonly saml: {
    readonly publicKey: string;
    readonly response: string;
    readonly metadata: string;
  };
  readonly dpop: { readonly proof: string; readonly jkt: string };
  readonly clientCertificate: { readonly root: string; readonly leaf: string };
  readonly sshAttestation: {
    readonly root: string;
    readonly keys: readonly { readonly publicKey: string; readonly file: string }[];
  };
  readonly sshKeygen: {
    readonly files: readonly {
      readonly privateKey: string;
      readonly publicKey: string;
      readonly signature: string;
    }[];
    readonly pkcs8: string;
  };
}

export const INPUTS = JSON.parse(
  readFileSync('test/vectors/fuzzing/signed-inputs.json', 'utf8'),
) as SignedInputs;

/** A time at which all signed inputs are valid. */
export const NOW = new Date(INPUTS.now);
