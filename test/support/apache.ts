import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { chmod, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { findProgram, MOD_AUTH_OPENIDC } from './programs.js';
import { makeTemporaryDirectory, removeDirectory } from './temporary-directory.js';

/** The values by which Apache is registered as a client of the service. */
export interface ApacheClient {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string;
}

/** A running Apache. */
export interface Apache {
  readonly url: string;
  /** Lists the requests that Apache has answered, each with its status, the oldest first. */
  answered(): readonly string[];
  stop(): Promise<void>;
}

const MODULES = ['mpm_event', 'authn_core', 'authz_core', 'authz_user', 'dir'];

/**
 * Starts Apache with mod_auth_openidc. `/app/` demands a sign-in, and `/app/callback?info=json`
 * shows the access token of the signed-in person. `/api/` accepts an access token that the service
 * reports as active.
 *
 * @param settings further lines of the configuration
 */
export async function startApache(
  { issuer, clientId, clientSecret }: ApacheClient,
  port: number,
  settings: readonly string[] = [],
): Promise<Apache> {
  const folder = await makeTemporaryDirectory();
  const url = `http://localhost:${port}`;
  await chmod(folder, 0o755);
  for (const name of ['app', 'api']) {
    await mkdir(join(folder, 'www', name), { recursive: true });
    writeFileSync(join(folder, 'www', name, 'index.html'), `This is ${name}.\n`);
  }
  const modules = MODULES.map(
    (name) => `LoadModule ${name}_module /usr/lib/apache2/modules/mod_${name}.so`,
  );
  const user = process.getuid?.() === 0 ? 'User www-data\nGroup www-data' : '';
  writeFileSync(
    join(folder, 'apache.conf'),
    `ServerRoot ${folder}
ServerName localhost
Listen 127.0.0.1:${port}
PidFile ${folder}/apache.pid
DefaultRuntimeDir ${folder}
Mutex posixsem
ErrorLog ${folder}/error.log
LogFormat "%m %U%q %>s" requests
CustomLog ${folder}/requests.log requests
LogLevel warn
${modules.join('\n')}
LoadModule auth_openidc_module ${MOD_AUTH_OPENIDC}
${user}
StartServers 1
MinSpareThreads 1
ThreadsPerChild 5
ServerLimit 1
MaxRequestWorkers 5
DocumentRoot ${folder}/www
OIDCProviderMetadataURL ${issuer}/.well-known/openid-configuration
OIDCClientID ${clientId}
OIDCClientSecret ${clientSecret}
OIDCProviderTokenEndpointAuth client_secret_basic
OIDCRedirectURI ${url}/app/callback
OIDCCryptoPassphrase only-of-this-test
OIDCScope "openid email"
OIDCRemoteUserClaim email
OIDCPKCEMethod S256
OIDCStateInputHeaders none
OIDCInfoHook access_token userinfo
OIDCOAuthServerMetadataURL ${issuer}/.well-known/oauth-authorization-server
OIDCOAuthClientID ${clientId}
OIDCOAuthClientSecret ${clientSecret}
OIDCOAuthTokenIntrospectionInterval -1
OIDCOAuthRemoteUserClaim sub
${settings.join('\n')}
<Location /app/>
  OIDCUnAuthAction auth true
  AuthType openid-connect
  Require valid-user
</Location>
<Location /api/>
  AuthType oauth20
  Require valid-user
</Location>
`,
  );
  const child = spawn(
    findProgram('apache2') ?? '',
    ['-D', 'FOREGROUND', '-f', join(folder, 'apache.conf')],
    { stdio: ['ignore', 'ignore', 'inherit'] },
  );
  const ended = once(child, 'close');
  while (!(await fetch(`${url}/api/`).catch(() => undefined))) {
    if (child.exitCode !== null)
      throw new Error(`Apache ended: ${readFileSync(join(folder, 'error.log'), 'utf8')}`);
    await delay(20);
  }
  return {
    url,
    answered: () => readFileSync(join(folder, 'requests.log'), 'utf8').split('\n').slice(0, -1),
    stop: async () => {
      child.kill('SIGTERM');
      await ended;
      await removeDirectory(folder);
    },
  };
}
