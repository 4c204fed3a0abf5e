/**
 * The module of each fuzz target, by the name of the target. The file of stored inputs in
 * test/fuzzing/corpus has the same name.
 */
export const TARGETS = {
  cbor: 'test/fuzzing/targets/webauthn/cbor.ts',
  attestation: 'test/fuzzing/targets/webauthn/attestation.ts',
  cose: 'test/fuzzing/targets/webauthn/cose.ts',
  certificate: 'test/fuzzing/targets/certificates/attestation-certificate.ts',
  'client-certificate': 'test/fuzzing/targets/certificates/client-certificate.ts',
  'subject-der': 'test/fuzzing/targets/certificates/subject-der.ts',
  'subject-text': 'test/fuzzing/targets/certificates/subject-text.ts',
  'ssh-key': 'test/fuzzing/targets/ssh/public-key.ts',
  'ssh-private-key': 'test/fuzzing/targets/ssh/private-key.ts',
  'ssh-certificate': 'test/fuzzing/targets/ssh/certificate.ts',
  'ssh-signature': 'test/fuzzing/targets/ssh/signature.ts',
  'ssh-attestation': 'test/fuzzing/targets/ssh/attestation-file.ts',
  krl: 'test/fuzzing/targets/ssh/revocation-list.ts',
  'scim-filter': 'test/fuzzing/targets/scim/filter.ts',
  'scim-path': 'test/fuzzing/targets/scim/path.ts',
  'scim-patch': 'test/fuzzing/targets/scim/patch.ts',
  'saml-response': 'test/fuzzing/targets/saml/response.ts',
  'saml-assertion': 'test/fuzzing/targets/saml/assertion.ts',
  'saml-metadata': 'test/fuzzing/targets/saml/metadata.ts',
  dpop: 'test/fuzzing/targets/http/dpop-proof.ts',
  cookies: 'test/fuzzing/targets/http/cookies.ts',
  authorization: 'test/fuzzing/targets/http/authorization.ts',
  'rust-log': 'test/fuzzing/targets/settings/log-filter.ts',
  otlp: 'test/fuzzing/targets/settings/otlp.ts',
} as const;

export type TargetName = keyof typeof TARGETS;

export const TARGET_NAMES = Object.keys(TARGETS) as readonly TargetName[];

/** The largest value of `longest` in any target, in bytes. */
export const BIGGEST_INPUT = 65_536;
