/**
 * The server with which our OAuth core is compared: `oidc-provider` by itself, with its store in
 * memory, on Node's own HTTP server.
 */
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { Provider } from 'oidc-provider';
import { FIXED } from '../dist/features/oidc/engine/fixed-options.js';
import { logNotices } from '../dist/features/oidc/engine/library-patches.js';

const [clientsFile] = process.argv.slice(2);
const clients = JSON.parse(readFileSync(clientsFile, 'utf8'));

const server = createServer();
await new Promise((resolve) => {
  server.listen(0, '127.0.0.1', resolve);
});
const baseUrl = `http://127.0.0.1:${server.address().port}`;

logNotices({ debug: () => undefined });
// The same endpoints, claims, algorithms and features as our server has, without our hooks.
const provider = new Provider(baseUrl, {
  routes: FIXED.routes,
  scopes: ['openid', 'profile', 'email'],
  responseTypes: FIXED.responseTypes,
  claims: FIXED.claims,
  acrValues: FIXED.acrValues,
  clientAuthMethods: FIXED.clientAuthMethods,
  enabledJWA: FIXED.enabledJWA,
  clients,
  jwks: {
    keys: [privateJwk('ec', { namedCurve: 'P-256' }), privateJwk('rsa', { modulusLength: 3072 })],
  },
  cookies: { keys: [randomBytes(32).toString('base64url')] },
  interactions: { url: (_ctx, { uid }) => `/interaction/${uid}` },
  findAccount: (_ctx, accountId) => ({ accountId, claims: () => claimsOf(accountId) }),
  loadExistingGrant: grantEverything,
  issueRefreshToken: () => false,
  expiresWithSession: () => false,
  pkce: { required: () => true },
  features: {
    devInteractions: { enabled: false },
    clientCredentials: { enabled: true },
    claimsParameter: { enabled: true },
    introspection: {
      enabled: true,
      allowedPolicy: (_ctx, client, token) => token.clientId === client.clientId,
    },
    jwtIntrospection: { enabled: true },
    revocation: { enabled: true },
    registration: { enabled: true },
    registrationManagement: { enabled: true },
    requestObjects: { enabled: true },
    jwtResponseModes: { enabled: true },
    pushedAuthorizationRequests: { enabled: true },
    deviceFlow: { enabled: true },
    dPoP: { enabled: true, nonceSecret: randomBytes(32), requireNonce: () => false },
    fapi: {
      enabled: true,
      profile: (_ctx, client) => (client?.requirePushedAuthorizationRequests ? '2.0' : undefined),
    },
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo: (_ctx, resource) => ({
        scope: 'read',
        audience: resource,
        accessTokenFormat: 'jwt',
        accessTokenTTL: 300,
        jwt: { sign: { alg: 'ES256' } },
      }),
      defaultResource: () => undefined,
      useGrantedResource: () => false,
    },
  },
  ttl: {
    ...FIXED.ttl,
    AccessToken: 3600,
    DeviceCode: 600,
    Grant: 8 * 3600,
    Session: 8 * 3600,
  },
});
const answer = provider.callback();
server.on('request', (request, response) => {
  if (request.url.startsWith('/interaction/')) void logIn(request, response);
  else void answer(request, response);
});
process.on('disconnect', () => {
  server.close();
  server.closeAllConnections();
});
process.send({ baseUrl });

/** Logs a new user in at each login request, without asking for anything. */
async function logIn(request, response) {
  const accountId = randomBytes(16).toString('hex');
  await provider.interactionFinished(request, response, {
    login: { accountId, acr: FIXED.acrValues[0], amr: ['hwk'] },
  });
}

/**
 * Grants every requested scope without asking for consent, as our server does for an organization's
 * own application.
 */
async function grantEverything({ oidc }) {
  const grant = new oidc.provider.Grant({
    clientId: oidc.client.clientId,
    accountId: oidc.session.accountId,
  });
  grant.addOIDCScope([...oidc.requestParamOIDCScopes].join(' '));
  await grant.save();
  return grant;
}

function claimsOf(sub) {
  return {
    sub,
    email: `${sub}@bench.example`,
    email_verified: true,
    name: 'A user',
    hardware_verified: true,
    hardware_aaguid: '00000000-0000-0000-0000-000000000000',
    auth_time: Math.floor(Date.now() / 1000),
    amr: ['hwk'],
    acr: FIXED.acrValues[0],
  };
}

function privateJwk(type, options) {
  return {
    ...generateKeyPairSync(type, options).privateKey.export({ format: 'jwk' }),
    use: 'sig',
    kid: type,
  };
}
