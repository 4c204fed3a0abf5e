import { describe, expect, it } from 'vitest';
import { demoVariables, portOf } from '../src/variables.js';

const SECRETS = { rootSecret: 'a root secret', metricsToken: 'a token for metrics' };
const PROVIDER = { issuer: 'http://127.0.0.1:3001', clientId: 'svc-demo', clientSecret: 'secret' };

describe('the variables of the demo', () => {
  it.each([
    { asked: undefined, environment: {}, port: 3000 },
    { asked: 0, environment: { SVC_LISTEN_ADDR: '127.0.0.1:4000' }, port: 0 },
    { asked: undefined, environment: { SVC_LISTEN_ADDR: '[::1]:4000' }, port: 4000 },
    { asked: undefined, environment: { SVC_BASE_URL: 'http://localhost:4000' }, port: 4000 },
    {
      asked: undefined,
      environment: { SVC_LISTEN_ADDR: 'localhost:5000', SVC_BASE_URL: 'http://localhost:4000' },
      port: 5000,
    },
    { asked: undefined, environment: { SVC_BASE_URL: 'https://demo.example.com' }, port: 3000 },
    { asked: undefined, environment: { SVC_BASE_URL: 'nonsense' }, port: 3000 },
  ])('listens on $port for --port $asked and $environment', ({ asked, environment, port }) => {
    expect(portOf(environment, asked)).toBe(port);
  });

  it('replace a value of the demo by the one of the environment, but for the port', () => {
    const environment = { SVC_LISTEN_ADDR: '[::1]:4000', SVC_JWT_SECRET: 'another' };
    expect(demoVariables(environment, 3000, SECRETS, PROVIDER)).toMatchObject({
      SVC_BASE_URL: 'http://localhost:3000',
      SVC_LISTEN_ADDR: '[::1]:3000',
      SVC_JWT_SECRET: 'another',
      SVC_METRICS_BEARER_TOKEN: SECRETS.metricsToken,
      SVC_IDP_DEMO_ISSUER: PROVIDER.issuer,
    });
  });
});
