import { describe, expect, it } from 'vitest';
import type { Environment } from '#platform/config/environment.js';
import { demoConfiguration } from '../../../src/demo/configuration.js';
import { makeTlsAuthority } from '../../support/tls-authority.js';

const PROVIDER = { issuer: 'http://127.0.0.1:3001', clientId: 'svc-demo', clientSecret: 'secret' };
const SECRET = 'a root secret of this run and no other';

const SECRETS = { rootSecret: SECRET, metricsToken: 'a token for metrics' };

/** Returns the configuration that the demo gets from these environment variables on port 3000. */
const configure = (environment: Environment) =>
  demoConfiguration(environment, 3000, SECRETS, PROVIDER).config;

describe('the configuration of the demo', () => {
  it('starts without any variable', () => {
    expect(configure({})).toMatchObject({
      http: {
        baseUrl: 'http://localhost:3000',
        listen: { host: '127.0.0.1', port: 3000 },
        trustedProxies: ['127.0.0.0/8', '::1/128'],
      },
      database: { url: undefined, dataDir: './data-demo' },
      secrets: { root: SECRET },
      upstream: { providers: [{ slug: 'demo', issuer: PROVIDER.issuer }] },
      log: { filter: 'warn,token-signing=error,errors=error' },
    });
  });

  it('lets the environment override every default, identity providers included', () => {
    const config = configure({
      SVC_BASE_URL: 'http://localhost:4000',
      SVC_DATA_DIR: '/elsewhere',
      SVC_IDPS: 'corp',
      SVC_IDP_CORP_TYPE: 'oidc',
      SVC_IDP_CORP_ISSUER: 'https://idp.example.com',
      SVC_IDP_CORP_CLIENT_ID: 'id',
      SVC_IDP_CORP_CLIENT_SECRET: 'secret',
      RUST_LOG: 'debug',
    });
    expect(config).toMatchObject({
      http: { baseUrl: 'http://localhost:4000' },
      database: { dataDir: '/elsewhere' },
      ssh: { caKeyPath: '/elsewhere/ssh_ca_key' },
      log: { filter: 'debug' },
    });
    expect(config.upstream.providers.map(({ slug }) => slug)).toEqual(['corp']);
  });

  it.each(['[::]:3000', '0.0.0.0:3000', '192.0.2.1:3000', ':3000'])(
    'refuses to listen on %s',
    (address) => {
      expect(() => configure({ SVC_LISTEN_ADDR: address })).toThrow(
        'SVC_LISTEN_ADDR: must be a loopback address',
      );
    },
  );

  it.each([
    'https://demo.example.com',
    'http://192.0.2.1:3000',
    'http://localhost.example.com:3000',
    'http://127.0.0.1.example.com',
    'http://localhost@example.com',
    'http://[::ffff:127.0.0.1]:3000',
    'localhost:3000',
    '',
  ])('refuses the base URL %j in one line: anyone can make a software key', (baseUrl) => {
    const attempt = () => configure({ SVC_BASE_URL: baseUrl, SVC_SESSION_HOURS: 'many' });
    expect(attempt).toThrow(/^SVC_BASE_URL: must be a loopback address[^\n]*$/);
  });

  it('refuses a TLS certificate, with which the service would listen on every address', () => {
    const { cert, key } = makeTlsAuthority();
    const tls = { SVC_TLS_CERT: cert, SVC_TLS_KEY: key, SVC_RP_ID: 'localhost' };
    expect(() => configure({ ...tls, SVC_BASE_URL: 'https://localhost' })).toThrow(
      'SVC_TLS_CERT: the demo serves plain HTTP, on loopback alone',
    );
  });
});
