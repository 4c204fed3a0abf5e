import { describe, expect, it } from 'vitest';
import { loadConfig } from '../../src/platform/config/load-config.js';
import { VERSION } from '../../src/platform/text/service-version.js';
import { startUpLine } from '../../src/start-up-line.js';

const ENVIRONMENT = {
  SVC_JWT_SECRET: 'a root secret only this test knows',
  SVC_DATA_DIR: '/var/lib/svc',
  SVC_IDPS: 'corp-one',
  SVC_IDP_CORP_ONE_TYPE: 'oidc',
  SVC_IDP_CORP_ONE_ISSUER: 'https://login.example.org/',
  SVC_IDP_CORP_ONE_CLIENT_ID: 'client',
  SVC_IDP_CORP_ONE_CLIENT_SECRET: 'the secret value',
};

describe('the line of a start', () => {
  const lineWith = (environment: Record<string, string>) =>
    startUpLine(loadConfig({ ...ENVIRONMENT, ...environment }).config, 3000);

  it('names the folder of the embedded PostgreSQL', () => {
    expect(lineWith({})).toBe(
      `svc-server ${VERSION}: http://localhost:3000 is served on port 3000; ` +
        'database: embedded PostgreSQL in /var/lib/svc; identity providers: corp-one',
    );
  });

  it('names the hosts and the name of another database, and no password', () => {
    const line = lineWith({ SVC_DATABASE_URL: 'postgres://svc:secret@one,two:5433/svc' });
    expect(line).toContain('database: PostgreSQL at one,two:5433/svc;');
    expect(line).not.toContain('secret');
  });
});
