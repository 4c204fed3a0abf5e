export { registerAttestationFormats } from './fido2-lib-handlers.js';
export { readAttestationObject, type AttestationObject } from './attestation-object.js';
export {
  ATTESTATION_FORMATS,
  ES256,
  verifyAttestation,
  type AttestationFormat,
  type AttestationStatement,
  type AttestationTrust,
  type AttestedCredential,
} from './attestation-policy.js';
export {
  checkAuthenticatorData,
  FLAG,
  readAuthenticatorData,
  type AttestedCredentialData,
  type AuthenticatorData,
} from './authenticator-data.js';
export { readCanonicalCbor } from './canonical-cbor.js';
export { parseCertificate, type ParsedCertificate } from './certificate.js';
export { completeChain } from './certificate-path.js';
export type {
  FieldMap,
  FormatRegistry,
  RegistrationCeremony,
  RegistrationRequest,
  SignalFields,
} from './format-registry.js';
export { Refusal } from './refusal.js';
export { trustAnchorFromPem, type TrustAnchor } from './trust-anchor.js';
