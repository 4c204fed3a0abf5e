import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../free-port.js';
import type { Answer, Client } from '../client.js';
import { makeSigningCertificate } from './certificate.js';
import { comeBack, readForm, unescapeHtml, type Landed } from './saml-browser.js';
import { ALG, NAME_ID } from './saml-names.js';

/** The folder in which Debian installs SimpleSAMLphp. */
const INSTALLED = '/usr/share/simplesamlphp';

/** The only account of the provider. */
export const PHP_USER = { name: 'ada', password: 'lovelace', email: 'ada@php.example' } as const;

/** A running SimpleSAMLphp as a SAML identity provider. */
export interface SimpleSamlPhp {
  /**
   * The URL `http://127.0.0.1:{port}`. To a browser it is another site than that of `localhost`.
   */
  readonly origin: string;
  readonly entityId: string;
  readonly metadataUrl: string;
  /** Registers a service provider by its metadata, which SimpleSAMLphp parses itself. */
  trust(serviceProviderMetadata: string): Promise<void>;
  close(): Promise<void>;
}

/** Options of the provider. */
export interface SimpleSamlPhpOptions {
  /**
   * True if the metadata contain `WantAuthnRequestsSigned`, and a request without a signature is
   * refused.
   */
  readonly wantsSignedRequests?: boolean;
  /** The format of the NameID for the service provider; by default that of an e-mail address. */
  readonly nameIdFormat?: string;
}

/** Starts Debian's SimpleSAMLphp as an identity provider, in the server that PHP contains. */
export async function startSimpleSamlPhp(
  options: SimpleSamlPhpOptions = {},
): Promise<SimpleSamlPhp> {
  const directory = await mkdtemp(join(tmpdir(), 'svc-php-'));
  await chmod(directory, 0o711);
  const port = await freePort();
  const origin = `http://127.0.0.1:${port}`;
  const entityId = `${origin}/idp`;
  await writeConfiguration(directory, origin, options.wantsSignedRequests ?? false);
  const child = spawn(
    'php',
    [
      '-d',
      // {@link trust} replaces a PHP file while the server runs, so compiled code must not be
      // cached.
      'opcache.enable=0',
      '-S',
      `127.0.0.1:${port}`,
      '-t',
      join(INSTALLED, 'www'),
      join(directory, 'router.php'),
    ],
    { stdio: 'ignore', detached: true, env: environment(directory) },
  );
  const ended = once(child, 'close');
  const close = async () => {
    // PHP's server has worker processes, so this kills its whole process group.
    if (child.exitCode === null && child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
    await ended;
    await rm(directory, { recursive: true, force: true, maxRetries: 10 });
  };
  const metadataUrl = `${origin}/saml2/idp/metadata.php`;
  while (!(await answers(metadataUrl))) {
    if (child.exitCode !== null) throw new Error('php ended before it answered');
    await new Promise((resolve) => {
      setTimeout(resolve, 50);
    });
  }
  return {
    origin,
    entityId,
    metadataUrl,
    trust: (metadata) => trust(directory, metadata, options.nameIdFormat ?? NAME_ID.email),
    close,
  };
}

function environment(directory: string): NodeJS.ProcessEnv {
  return {
    PATH: process.env['PATH'] ?? '',
    SIMPLESAMLPHP_CONFIG_DIR: join(directory, 'config'),
    PHP_CLI_SERVER_WORKERS: '3',
  };
}

/** Writes the configuration of an identity provider with one user and no service provider. */
async function writeConfiguration(
  directory: string,
  origin: string,
  wantsSignedRequests: boolean,
): Promise<void> {
  for (const name of ['config', 'metadata', 'cert', 'log', 'sessions', 'temporary', 'data'])
    await mkdir(join(directory, name));
  const { key, cert } = makeSigningCertificate('SimpleSAMLphp of the tests');
  const files = {
    'cert/idp.key': key,
    'cert/idp.crt': cert,
    'router.php': ROUTER,
    'config/config.php': configuration(directory, origin),
    'config/authsources.php': `<?php
$config = ['people' => ['exampleauth:UserPass', '${PHP_USER.name}:${PHP_USER.password}' => [
  'uid' => ['${PHP_USER.name}'], 'mail' => ['${PHP_USER.email}'], 'displayName' => ['Ada Lovelace'],
]]];
`,
    'metadata/saml20-idp-hosted.php': `<?php
$metadata['${origin}/idp'] = [
  'host' => '__DEFAULT__',
  'privatekey' => 'idp.key',
  'certificate' => 'idp.crt',
  'auth' => 'people',
  'signature.algorithm' => '${ALG.rsaSha256}',
  ${wantsSignedRequests ? "'redirect.validate' => true, 'validate.authnrequest' => true," : ''}
  'NameIDFormat' => ['${NAME_ID.email}', '${NAME_ID.persistent}'],
  'attributes.NameFormat' => 'urn:oasis:names:tc:SAML:2.0:attrname-format:basic',
  'authproc' => [
    3 => ['class' => 'saml:AttributeNameID', 'attribute' => 'mail', 'Format' => '${NAME_ID.email}'],
    4 => ['class' => 'saml:AttributeNameID', 'attribute' => 'uid', 'Format' => '${NAME_ID.persistent}'],
  ],
];
`,
  };
  for (const [name, content] of Object.entries(files))
    await writeFile(join(directory, name), content);
}

function configuration(directory: string, origin: string): string {
  return `<?php
$config = [
  'baseurlpath' => '${origin}/',
  'certdir' => '${directory}/cert/',
  'loggingdir' => '${directory}/log/',
  'datadir' => '${directory}/data/',
  'tempdir' => '${directory}/temporary',
  'metadatadir' => '${directory}/metadata/',
  'attributenamemapdir' => '/etc/simplesamlphp/attributemap/',
  'secretsalt' => 'a salt of the tests',
  'auth.adminpassword' => 'a password of the tests',
  'technicalcontact_name' => 'Tests',
  'technicalcontact_email' => 'tests@php.example',
  'timezone' => 'UTC',
  'logging.level' => SimpleSAML\\Logger::INFO,
  'logging.handler' => 'file',
  'enable.saml20-idp' => true,
  'module.enable' => ['exampleauth' => true, 'core' => true, 'saml' => true],
  'session.cookie.secure' => false,
  'session.cookie.samesite' => null,
  'language.cookie.secure' => false,
  'language.cookie.samesite' => null,
  'language.available' => ['en'],
  'language.default' => 'en',
  'store.type' => 'phpsession',
  'session.phpsession.savepath' => '${directory}/sessions',
  'metadata.sources' => [['type' => 'flatfile']],
  'authproc.idp' => [],
  'errorreporting' => false,
  'showerrors' => true,
];
`;
}

/**
 * A script for PHP's built-in server, which would look for a file `/module.php/core/x.php`. The
 * script runs `module.php`, and passes the rest of the path to it.
 */
const ROUTER = `<?php
$path = rawurldecode(parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH));
$root = $_SERVER['DOCUMENT_ROOT'];
if (!preg_match('#^(/[A-Za-z0-9/_-]+\\.php)(/.*)?$#', $path, $parts)) return false;
if (!is_file($root . $parts[1])) return false;
$_SERVER['SCRIPT_NAME'] = $parts[1];
$_SERVER['SCRIPT_FILENAME'] = $root . $parts[1];
$_SERVER['PHP_SELF'] = $path;
if (isset($parts[2])) $_SERVER['PATH_INFO'] = $parts[2];
else unset($_SERVER['PATH_INFO']);
chdir(dirname($root . $parts[1]));
require $root . $parts[1];
return true;
`;

/**
 * Converts the metadata of a service provider by SimpleSAMLphp's parser, as an administrator would.
 * Writes the result into the configuration.
 */
async function trust(directory: string, metadata: string, nameIdFormat: string): Promise<void> {
  const script = `
require '${INSTALLED}/lib/_autoload.php';
$parsed = SimpleSAML\\Metadata\\SAMLParser::parseString(stream_get_contents(STDIN))->getMetadata20SP();
$parsed['NameIDFormat'] = '${nameIdFormat}';
echo "<?php\\n$" . "metadata[" . var_export($parsed['entityid'], true) . "] = " . var_export($parsed, true) . ";\\n";
`;
  const { status, stdout, stderr } = spawnSync('php', ['-r', script], {
    input: metadata,
    encoding: 'utf8',
    env: environment(directory),
  });
  if (status !== 0 || !stdout.startsWith('<?php'))
    throw new Error(`SimpleSAMLphp cannot read the metadata: ${stdout}${stderr}`);
  await writeFile(join(directory, 'metadata/saml20-sp-remote.php'), stdout);
}

async function answers(url: string): Promise<boolean> {
  try {
    return (await fetch(url)).ok;
  } catch {
    return false;
  }
}

/**
 * Signs the user in as a browser does: follows redirects, fills in the form of the provider if it
 * shows one, and posts the response.
 */
export async function signInAtSimpleSamlPhp(client: Client, slug: string): Promise<Landed> {
  const asked = await client.follow(`/login?provider=${slug}&redirect_to=%2Faccount%2Fkeys`);
  let page: Answer = asked;
  // If the provider still has a session from an earlier sign-in, it does not ask for the password.
  if (page.text.includes('name="password"')) {
    const state = /name="AuthState" value="([^"]*)"/.exec(page.text)?.[1] ?? '';
    const fields = new URLSearchParams({
      username: PHP_USER.name,
      password: PHP_USER.password,
      AuthState: unescapeHtml(state),
    });
    page = await client.post(asked.url.href, fields.toString(), {
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
    });
    const location = page.headers.get('location');
    if (location !== null) page = await client.follow(new URL(location, asked.url).href);
  }
  const { action, form } = readForm(page.text);
  if (action !== `${client.baseUrl}/saml/acs`)
    throw new Error(`SimpleSAMLphp did not answer: ${page.status} ${page.text}`);
  return comeBack(client, form);
}
