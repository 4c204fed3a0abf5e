/**
 * Only this file imports `fido2-lib`. The service uses its two ceremonies (WebAuthn §7.1, §7.2) and
 * its registry of attestation formats. The library accepts self-attestation, and bytes that two
 * parsers can read differently; it does not accept origins of native clients, which are not https.
 * So this service has its own attestation policy, its own checks of the bytes, and its own
 * verification of assertions of native clients.
 */
export { Fido2Lib } from 'fido2-lib';
