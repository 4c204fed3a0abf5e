import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { dirname, join, resolve } from 'node:path';
import { parseEnv } from 'node:util';
import { expect, it } from 'vitest';
import { Client as Database } from 'pg';
import { startDemoIdentityProvider } from '@svc/stand-ins/identity-provider';
import { SoftwareKey } from '@svc/stand-ins/software-key';
import { clientThroughProxy, startCollected } from '../support/collected-process.js';
import { startDebianPostgres } from '../support/debian-postgres.js';
import { freePort } from '../support/free-port.js';
import '../support/full-scale-only.js';
import { requires, SCHEMATHESIS } from '../support/programs.js';
import { makeTemporaryDirectory, removeDirectory } from '../support/temporary-directory.js';

const ROOT = resolve(import.meta.dirname, '../..');
const DEPLOY = join(ROOT, 'deploy');
const SCHEMA = join(ROOT, 'test/vectors/compose/compose-spec.json');

/** The part of a Compose file that the tests read. */
interface ComposeFile {
  readonly services: Readonly<
    Record<
      string,
      { readonly environment: Readonly<Record<string, string>>; readonly env_file?: string }
    >
  >;
}

/**
 * A Python program that parses YAML, validates it by a JSON schema, and prints the document and its
 * faults.
 */
const VALIDATE = `
import json, sys, yaml, jsonschema_rs
document = yaml.safe_load(sys.stdin)
validator = jsonschema_rs.validator_for(json.load(open(sys.argv[1])))
print(json.dumps({"document": document, "faults": [e.message for e in validator.iter_errors(document)]}))
`;

function validated(yaml: string): { document: ComposeFile; faults: string[] } {
  const python = join(dirname(SCHEMATHESIS), 'python');
  const { stdout, stderr } = spawnSync(python, ['-c', VALIDATE, SCHEMA], {
    input: yaml,
    encoding: 'utf8',
  });
  if (stdout === '') throw new Error(stderr);
  return JSON.parse(stdout) as { document: ComposeFile; faults: string[] };
}

/**
 * Replaces the variables of a value as Compose does: `${NAME}`, `${NAME:-default}`,
 * `${NAME:?text}`.
 */
function interpolated(value: string, variables: NodeJS.Dict<string>): string {
  return value.replaceAll(
    /\$\{(\w+)(?::([-?])([^}]*))?\}/g,
    (_, name: string, kind?: string, text?: string) => {
      const found = variables[name] ?? '';
      if (found === '' && kind === '?') throw new Error(text);
      return found === '' && kind === '-' ? (text ?? '') : found;
    },
  );
}

const composeFile = readFileSync(join(DEPLOY, 'compose.yaml'), 'utf8');

/**
 * Returns the environment that Compose gives to a service, from its file and the variables of
 * `.env`.
 */
function environmentOf(
  { services }: ComposeFile,
  name: string,
  dotEnv: NodeJS.Dict<string>,
): Record<string, string> {
  const { environment = {}, env_file: file } = services[name] ?? {};
  const own = Object.entries(environment).map(([variable, value]): [string, string] => [
    variable,
    interpolated(value, dotEnv),
  ]);
  const ofFile = file === '.env' ? (dotEnv as Record<string, string>) : {};
  return { ...ofFile, ...Object.fromEntries(own) };
}

/** Sets variables in the text of `example.env`, and throws if it has no line for one of them. */
function filledExample(values: Readonly<Record<string, string>>): NodeJS.Dict<string> {
  const example = readFileSync(join(DEPLOY, 'example.env'), 'utf8');
  const text = Object.entries(values).reduce((before, [name, value]) => {
    const after = before.replace(new RegExp(`^#?${name}=.*$`, 'm'), () => `${name}='${value}'`);
    if (after === before) throw new Error(`example.env does not have ${name}`);
    return after;
  }, example);
  return parseEnv(text);
}

requires('schemathesis').describe('the Compose file', () => {
  it('passes the public schema of Compose, and a wrong key does not', () => {
    expect(validated(composeFile).faults).toEqual([]);
    const planted = composeFile.replace('    restart: unless-stopped', '    restarts: always');
    expect(validated(planted).faults).not.toEqual([]);
  });

  it('refuses to start without the address and the password of the database', () => {
    const { document } = validated(composeFile);
    const needs = (dotEnv: NodeJS.Dict<string>) => () => environmentOf(document, 'svc', dotEnv);
    expect(needs({ SVC_BASE_URL: 'https://a.example' })).not.toThrow('SVC_BASE_URL');
    expect(needs({})).toThrow('SVC_BASE_URL is missing in .env');
    expect(() => environmentOf(document, 'db', {})).toThrow('POSTGRES_PASSWORD is missing');
  });
});

/**
 * The IP addresses for the host names of the services in the Compose network. Each is an address of
 * loopback that no other test uses, so that the services can have the ports of the Compose file.
 */
const ADDRESSES = { svc: '127.77.1.2', db: '127.77.1.3' };
const HOST = 'login.example.com';

requires('schemathesis', 'caddy', 'bwrap', 'postgresql').describe('the services of Compose', () => {
  it('as plain processes with its environment, a person logs in through Caddy', async () => {
    await using parts = new AsyncDisposableStack();
    const folder = await makeTemporaryDirectory();
    parts.defer(() => removeDirectory(folder));
    const hosts = join(folder, 'hosts');
    const names = Object.entries(ADDRESSES).map(([name, address]) => `${address} ${name}\n`);
    writeFileSync(hosts, `127.0.0.1 localhost\n${names.join('')}`);
    const network = ['--die-with-parent', '--dev-bind', '/', '/', '--ro-bind', hosts, '/etc/hosts'];
    const inNetwork = ['bwrap', ...network];

    const [https, http] = [await freePort(), await freePort()];
    const baseUrl = `https://${HOST}:${https}`;
    const client = { clientId: 'svc', clientSecret: 'a $secret #1' };
    const redirectUri = `${baseUrl}/oauth/callback`;
    const idp = await startDemoIdentityProvider({ ...client, redirectUri });
    parts.defer(() => idp.close());
    const { document } = validated(composeFile);
    const dotEnv = filledExample({
      SVC_BASE_URL: baseUrl,
      SVC_JWT_SECRET: 'a root secret that only this test knows',
      POSTGRES_PASSWORD: 'of-the-database',
      SVC_IDP_CORP_ISSUER: idp.issuer,
      SVC_IDP_CORP_CLIENT_ID: client.clientId,
      SVC_IDP_CORP_CLIENT_SECRET: client.clientSecret,
      SVC_BOOTSTRAP_ADMINS: 'ada@example.com',
      // `local_certs` is the setting of `example.env`. The others replace the ports and folders
      // that Caddy has in its container.
      CADDY_GLOBAL_OPTIONS: `local_certs\nskip_install_trust\nadmin off\nservers {\nprotocols h1 h2\n}\nhttp_port ${http}\ndefault_bind 127.0.0.1\nstorage file_system ${folder}/caddy`,
    });

    await startDatabase(parts, environmentOf(document, 'db', dotEnv));
    const key = new SoftwareKey();
    const ofService = environmentOf(document, 'svc', dotEnv);
    // These values exist only in a container: its network and its volume.
    for (const [name, inContainer, here] of [
      ['SVC_LISTEN_ADDR', '0.0.0.0:3000', `${ADDRESSES.svc}:3000`],
      ['SVC_TRUSTED_PROXIES', '172.31.251.4', '127.0.0.1'],
      ['SVC_DATA_DIR', '/data', join(folder, 'data')],
    ] as const) {
      expect(ofService[name]).toBe(inContainer);
      ofService[name] = here;
    }
    // This script replaces dist/main.js, because it also trusts the software key of the test.
    const script = join(ROOT, 'test/support/trusting-server.js');
    const service = startCollected(
      parts,
      [...inNetwork, process.execPath, script, key.rootPem],
      ofService,
      { cwd: folder },
    );
    copyFileSync(join(DEPLOY, 'Caddyfile'), join(folder, 'Caddyfile'));
    mkdirSync(join(folder, 'home'));
    const caddy = startCollected(
      parts,
      [...inNetwork, 'caddy', 'run', '--adapter', 'caddyfile', '--config', 'Caddyfile'],
      { ...environmentOf(document, 'caddy', dotEnv), HOME: join(folder, 'home') },
      { cwd: folder },
    );
    await service.until(() => /is served on port/.test(service.output()));
    const authority = join(folder, 'caddy/pki/authorities/local/root.crt');
    const isSigned = join(folder, `caddy/certificates/local/${HOST}/${HOST}.crt`);
    await caddy.until(() => existsSync(authority) && existsSync(isSigned));

    const browser = () => clientThroughProxy(parts, baseUrl, authority);
    const person = browser();
    const signedIn = await person.signIn('ada@example.com', '/', 'corp');
    expect(signedIn.status, service.output() + caddy.output()).toBe(200);
    expect((await person.enroll(key)).status).toBe(200);
    const again = browser();
    await again.signIn('ada@example.com', '/', 'corp');
    expect((await again.logIn(key)).status).toBe(200);
    expect((await again.get('/v1/keys')).json.keys).toHaveLength(1);
  });
});

/**
 * Starts PostgreSQL at the address of the service `db`, with the role and the password of Compose.
 */
async function startDatabase(
  parts: AsyncDisposableStack,
  environment: Readonly<Record<string, string>>,
): Promise<void> {
  const {
    POSTGRES_USER: role = '',
    POSTGRES_DB: name = '',
    POSTGRES_PASSWORD: password = '',
  } = environment;
  const postgres = await startDebianPostgres();
  parts.defer(() => postgres.stop());
  const database = new Database(postgres.url('postgres', 'postgres'));
  await database.connect();
  await database.query(
    `CREATE ROLE ${database.escapeIdentifier(role)} SUPERUSER LOGIN PASSWORD ${database.escapeLiteral(password)}`,
  );
  await database.query(`CREATE DATABASE ${database.escapeIdentifier(name)}`);
  const { rows } = await database.query<{ hba_file: string }>('SHOW hba_file');
  const file = rows[0]?.hba_file ?? '';
  writeFileSync(file, `host all ${role} all scram-sha-256\n${readFileSync(file, 'utf8')}`);
  await database.query('SELECT pg_reload_conf()');
  await database.end();
  const relay = createServer((from) => {
    const to = connect(postgres.port, '127.0.0.1');
    from.on('error', () => to.destroy()).pipe(to);
    to.on('error', () => from.destroy()).pipe(from);
  });
  relay.listen(5432, ADDRESSES.db);
  await once(relay, 'listening');
  parts.defer(() => void relay.close());
}
