import { spawnSync } from 'node:child_process';
import { accessSync, constants, existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { suite } from 'vitest';
import { debianPostgres } from './debian-postgres.js';
import { HELM_PROGRAMS } from './helm.js';
import { MOTO } from './moto.js';
import { findNode } from './node-versions.js';
import { OTLP_READER } from './otlp-reader.js';

/**
 * The program schemathesis, which makes requests from an OpenAPI document. `.ci/run` installs it.
 */
export const SCHEMATHESIS = '/opt/svc-test/schemathesis/bin/schemathesis';

/** The packages of the linters of an OpenAPI document. `.ci/run` installs them. */
export const API_LINT = '/opt/svc-test/api-lint/node_modules';

/**
 * The folder of `oapi-codegen`, with the Go modules and the build cache of the clients that it
 * generates (`.ci/api-go`).
 */
export const API_GO = '/opt/svc-test/api-go';

/** The program openapi-python-client. `.ci/run` installs it. */
export const OPENAPI_PYTHON_CLIENT =
  '/opt/svc-test/openapi-python-client/bin/openapi-python-client';

/** The Python of a virtual environment with Flask and Authlib. `.ci/run` installs it. */
export const AUTHLIB_PYTHON = '/opt/svc-test/authlib/bin/python';

/** The Python of a virtual environment with Paramiko and AsyncSSH. `.ci/run` installs it. */
export const SSH_LIBRARIES_PYTHON = '/opt/svc-test/ssh-libraries/bin/python';

/** The Python of a virtual environment with a grammar of PowerShell. `.ci/run` installs it. */
export const POWERSHELL_GRAMMAR_PYTHON = '/opt/svc-test/powershell/bin/python';

/**
 * The folder with a bare Debian, which a test can enter by chroot. `.ci/run` makes it by
 * debootstrap.
 */
export const DEBIAN_ROOT = '/opt/svc-test/debian-root';

/**
 * A copy of {@link DEBIAN_ROOT} with OpenSSH's client and the libraries that Node needs. `.ci/run`
 * makes it.
 */
export const DEBIAN_LAPTOP = '/opt/svc-test/debian-laptop';

/** The account that builds images without privileges. `.ci/run` makes it. */
export const IMAGE_BUILDER = 'svc-image';

/** The Python of Debian, which finds the packages of Debian. */
export const DEBIAN_PYTHON = '/usr/bin/python3';

/** The module of Apache that signs people in by OpenID Connect. */
export const MOD_AUTH_OPENIDC = '/usr/lib/apache2/modules/mod_auth_openidc.so';

/**
 * The folders in which programs are searched. The folders of daemons such as sshd are added,
 * because they are not on the PATH of an ordinary user.
 */
const DIRECTORIES = [...(process.env['PATH'] ?? '').split(':'), '/usr/sbin', '/sbin'];

/** Returns the absolute path of a program, or undefined when it is not installed. */
export function findProgram(name: string): string | undefined {
  return DIRECTORIES.map((directory) => join(directory, name)).find(isExecutable);
}

/** The programs and rights that a group of tests needs on this machine. */
export interface Requirement {
  /** The needs that this machine does not meet. */
  readonly missing: readonly string[];
  /**
   * The function `describe` of vitest, or `describe.skip` with a title that names what is missing.
   */
  describe(title: string, tests: () => void): void;
}

/**
 * Skips tests by name when a program of the machine is missing:
 *
 * requires('sshd', 'ssh').describe('a real sshd', () => { … });
 *
 * @param needs names on the PATH; `node@20` means a Node of that major version, `root` means that
 *   the tests run as root, `reachable` that the user `nobody` can read the checkout, `mounts` that
 *   a process may have mounts of its own, `moto` the stand-in for S3 and KMS, `schemathesis` the
 *   tester of an API by its description, `mod_auth_openidc` the module of Apache, `simplesamlphp`
 *   the identity provider of that name, `postgresql` a server of Debian, `authlib` the Python
 *   environment of that name, `the Go modules` those of `.ci/go`, `the OTLP reader` the program of
 *   `.ci/otlp`, `a Debian root` the folder that debootstrap made, `a Debian laptop` a copy of it
 *   with ssh, `python3-jwt` PyJWT of Debian, `helm` and `check-manifests` the programs of
 *   `.ci/helm`, `ssh-libraries` the Python environment with Paramiko and AsyncSSH, `redocly` and
 *   `spectral` the linters of an OpenAPI document, `oapi-codegen` and `openapi-python-client` the
 *   generators of clients, `svc-image` the account that builds images, with further users of its
 *   own, `the grammar of PowerShell` the Python environment with it
 */
export function requires(...needs: string[]): Requirement {
  const missing = needs.filter((need) => !isMet(need));
  const why = missing.length === 0 ? '' : ` (skipped: this needs ${missing.join(' and ')})`;
  return {
    missing,
    describe: (title, tests) => {
      suite.skipIf(missing.length > 0)(`${title}${why}`, () => {
        tests();
      });
    },
  };
}

function isMet(need: string): boolean {
  if (need === 'root') return process.getuid?.() === 0;
  if (need === 'mounts') return spawnSync('unshare', ['--mount', 'true']).status === 0;
  if (need === 'reachable') return nobodyReaches(import.meta.filename);
  if (need === 'mod_auth_openidc') return existsSync(MOD_AUTH_OPENIDC);
  if (need === 'the headers of OpenSSL') return existsSync('/usr/include/openssl/ec.h');
  if (need === 'moto') return isExecutable(join(dirname(MOTO), 'python'));
  if (need === 'postgresql') return debianPostgres() !== undefined;
  if (need === 'authlib') return isExecutable(AUTHLIB_PYTHON);
  if (need === 'the grammar of PowerShell') return isExecutable(POWERSHELL_GRAMMAR_PYTHON);
  if (need === 'ssh-libraries') return isExecutable(SSH_LIBRARIES_PYTHON);
  if (need === 'python3-jwt')
    return spawnSync(DEBIAN_PYTHON, ['-c', 'import jwt, cryptography']).status === 0;
  if (need === 'the Go modules')
    return existsSync('/opt/svc-test/go/pkg/mod/github.com/coreos/go-oidc');
  if (need === 'a Debian root') return existsSync(join(DEBIAN_ROOT, 'usr/bin/dpkg'));
  if (need === 'a Debian laptop') return existsSync(join(DEBIAN_LAPTOP, 'usr/bin/ssh'));
  if (need === IMAGE_BUILDER) return hasFurtherUsers(IMAGE_BUILDER);
  if (need === 'the OTLP reader') return existsSync(OTLP_READER);
  if (need === 'redocly') return existsSync(join(API_LINT, '@redocly/cli'));
  if (need === 'spectral') return existsSync(join(API_LINT, '@stoplight/spectral-cli'));
  if (need === 'oapi-codegen') return isExecutable(join(API_GO, 'oapi-codegen'));
  if (need === 'openapi-python-client') return isExecutable(OPENAPI_PYTHON_CLIENT);
  if (need === 'schemathesis') return isExecutable(join(dirname(SCHEMATHESIS), 'python'));
  if (need === 'simplesamlphp') return existsSync('/usr/share/simplesamlphp/www/index.php');
  if (need === 'helm' || need === 'check-manifests') return isExecutable(join(HELM_PROGRAMS, need));
  const major = /^node@(\d+)$/.exec(need)?.[1];
  return (major === undefined ? findProgram(need) : findNode(Number(major))) !== undefined;
}

/**
 * Returns true if an account may use further user ids in a user namespace (a line in
 * `/etc/subuid`).
 */
function hasFurtherUsers(account: string): boolean {
  const file = '/etc/subuid';
  return (
    existsSync(file) &&
    readFileSync(file, 'utf8')
      .split('\n')
      .some((line) => line.startsWith(`${account}:`))
  );
}

/** Checks that the user `nobody` can read a file: every parent folder must permit it. */
function nobodyReaches(file: string): boolean {
  if (process.getuid?.() !== 0) return true;
  const nobody = { uid: 65_534, gid: 65_534, cwd: '/' };
  return spawnSync('test', ['-r', file], nobody).status === 0;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
