/**
 * The sets by their names: the files that Stryker changes (`mutate`), and the tests that must
 * notice the changes.
 */
export const SETS = {
  policy: {
    mutate: [
      'packages/webauthn-policy/src/{attestation-policy,authenticator-data,attestation-object}.ts',
      'packages/webauthn-policy/src/{certificate-path,leaf-certificate}.ts',
    ],
    tests: ['packages/webauthn-policy/test/*.test.ts'],
  },
  models: {
    mutate: ['src/domain/keys/authenticators/model-policy.ts'],
    tests: ['test/unit/domain/keys/authenticators/model-policy.test.ts'],
  },
  decision: {
    mutate: ['src/domain/access/reach/decision.ts'],
    tests: ['test/unit/domain/access/decision.test.ts'],
  },
  narrowing: {
    mutate: ['src/features/oidc/token/narrowing.ts'],
    tests: ['test/unit/features/oidc/narrowing.test.ts'],
  },
  dpop: {
    mutate: ['src/domain/sessions/dpop/dpop-proof.ts'],
    tests: ['test/unit/domain/sessions/dpop-proof.test.ts'],
  },
};
