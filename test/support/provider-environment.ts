/** The client that a service of the tests is at their identity provider. */
export const TEST_CLIENT = { clientId: 'svc', clientSecret: 'the secret of the client' };

/** The variables by which a service of the tests has a root secret, and their identity provider. */
export function providerEnvironment(issuer: string) {
  return {
    SVC_JWT_SECRET: 'a root secret only this test knows',
    SVC_IDPS: 'demo',
    SVC_IDP_DEMO_TYPE: 'oidc',
    SVC_IDP_DEMO_ISSUER: issuer,
    SVC_IDP_DEMO_CLIENT_ID: TEST_CLIENT.clientId,
    SVC_IDP_DEMO_CLIENT_SECRET: TEST_CLIENT.clientSecret,
  };
}
