import { generateKeyPairSync, type KeyObject } from 'node:crypto';

/** The credentials of the service as a client of the tests' identity provider. */
export const TEST_CLIENT = { clientId: 'svc', clientSecret: 'the secret of the client' };

/**
 * Returns the environment variables of a service in a test: its secrets, its signing keys and its
 * identity provider.
 */
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

/**
 * Returns the environment variables for identity providers in addition to that of {@link
 * providerEnvironment}.
 */
export function furtherProviderEnvironment(
  slugs: readonly string[],
  providers: readonly { readonly issuer: string }[],
): Record<string, string> {
  const variables = slugs.flatMap((slug, index) => {
    const prefix = `SVC_IDP_${slug.toUpperCase()}`;
    return [
      [`${prefix}_TYPE`, 'oidc'],
      [`${prefix}_ISSUER`, providers[index]?.issuer ?? ''],
      [`${prefix}_CLIENT_ID`, TEST_CLIENT.clientId],
      [`${prefix}_CLIENT_SECRET`, TEST_CLIENT.clientSecret],
    ];
  });
  return { SVC_IDPS: ['demo', ...slugs].join(','), ...Object.fromEntries(variables) };
}

/** The environment variable by which all processes of a test run get the same signing keys. */
const SHARED_KEYS = 'TEST_SIGNING_KEYS';

/**
 * Returns the environment variables with the keys that sign tokens. Only the first process of a
 * test run generates the keys, because generating an RSA key takes time.
 */
export function signingKeys(): Record<string, string> {
  process.env[SHARED_KEYS] ??= JSON.stringify({
    SVC_OIDC_SIGNING_KEY: pemOf(generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey),
    SVC_OIDC_RSA_SIGNING_KEY: pemOf(generateKeyPairSync('rsa', { modulusLength: 3072 }).privateKey),
  });
  return JSON.parse(process.env[SHARED_KEYS]) as Record<string, string>;
}

function pemOf(key: KeyObject): string {
  return key.export({ type: 'pkcs8', format: 'pem' }).toString();
}
