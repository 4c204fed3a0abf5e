/**
 * This file alone imports `fido2-lib`. The service uses its two ceremonies (WebAuthn §7.1, §7.2)
 * and its registry of attestation formats. The library accepts self-attestation, https origins
 * only, and bytes that two parsers can read differently. So attestation policy, native assertions
 * and the checks of the bytes are this service's own code.
 */
export { Fido2Lib } from 'fido2-lib';
