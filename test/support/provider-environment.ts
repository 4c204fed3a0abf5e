import { generateKeyPairSync } from 'node:crypto';

/** The client that a service of the tests is at their identity provider. */
export const TEST_CLIENT = { clientId: 'svc', clientSecret: 'the secret of the client' };

/** The variables by which a service of the tests has a root secret, and their identity provider. */
export function providerEnvironment(issuer: string) {
  return {
    ...signingKeys(),
    SVC_JWT_SECRET: 'a root secret only this test knows',
    SVC_IDPS: 'demo',
    SVC_IDP_DEMO_TYPE: 'oidc',
    SVC_IDP_DEMO_ISSUER: issuer,
    SVC_IDP_DEMO_CLIENT_ID: TEST_CLIENT.clientId,
    SVC_IDP_DEMO_CLIENT_SECRET: TEST_CLIENT.clientSecret,
  };
}

let keys: Record<string, string> | undefined;

/** Keys that sign tokens, made once a process: an RSA key takes its time. */
function signingKeys(): Record<string, string> {
  const encoding = { type: 'pkcs8', format: 'pem' } as const;
  keys ??= {
    SVC_OIDC_SIGNING_KEY: generateKeyPairSync('ec', { namedCurve: 'P-256' })
      .privateKey.export(encoding)
      .toString(),
    SVC_OIDC_RSA_SIGNING_KEY: generateKeyPairSync('rsa', { modulusLength: 3072 })
      .privateKey.export(encoding)
      .toString(),
  };
  return keys;
}
