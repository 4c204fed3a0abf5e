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
 * The path of schemathesis, which generates requests from an OpenAPI document. `.ci/run` installs
 * it.
 */
export const SCHEMATHESIS = '/opt/svc-test/schemathesis/bin/schemathesis';

/** The folder of the linters for OpenAPI documents. `.ci/run` installs them. */
export const API_LINT = '/opt/svc-test/api-lint/node_modules';

/**
 * The folder of `oapi-codegen`, with the Go modules and the build cache of the clients that it
 * generates (`.ci/api-go`).
 */
export const API_GO = '/opt/svc-test/api-go';

/** The path of openapi-python-client, which generates API clients. `.ci/run` installs it. */
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
 * A copy of {@link DEBIAN_ROOT} that also has OpenSSH's client and the libraries that Node needs.
 * `.ci/run` makes it.
 */
export const DEBIAN_LAPTOP = '/opt/svc-test/debian-laptop';

/** The account that builds images without privileges. `.ci/run` makes it. */
export const IMAGE_BUILDER = 'svc-image';

/** The Python of Debian, which finds the Python packages of Debian. */
export const DEBIAN_PYTHON = '/usr/bin/python3';

/** The path of the Apache module mod_auth_openidc, by which people sign in. */
export const MOD_AUTH_OPENIDC = '/usr/lib/apache2/modules/mod_auth_openidc.so';

/**
 * The folders in which {@link findProgram} searches. It adds those of system programs such as sshd,
 * which are not on the PATH of an ordinary user.
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
   * Declares a group of tests, as vitest's `describe` does. If a need is missing, the tests are
   * skipped, and the title says so.
   */
  describe(title: string, tests: () => void): void;
}

/**
 * Skips tests if this machine lacks a program or a right that they need:
 *
 * requires('sshd', 'ssh').describe('a real sshd', () => { … });
 *
 * @param needs names of programs on the PATH, or one of these names:
 * - `node@20`: a Node of that major version
 * - `root`: the tests run as root
 * - `reachable`: the user `nobody` can read the checkout
 * - `mounts`: a process may have mounts of its own
 * - `moto`: the stand-in for Amazon S3 and AWS KMS
 * - `postgresql`: a PostgreSQL server from Debian
 * - `schemathesis`, `redocly` and `spectral`: programs that test or check an OpenAPI document
 * - `oapi-codegen` and `openapi-python-client`: generators of API clients
 * - `mod_auth_openidc`: the Apache module
 * - `simplesamlphp`: the identity provider SimpleSAMLphp
 * - `authlib`, `ssh-libraries` and `the grammar of PowerShell`: virtual environments of Python
 * - `python3-jwt`: PyJWT from Debian
 * - `the headers of OpenSSL`: the files for compiling a C program with OpenSSL
 * - `the Go modules` and `the OTLP reader`: the results of `.ci/go` and `.ci/otlp`
 * - `helm` and `check-manifests`: the programs of `.ci/helm`
 * - `a Debian root` and `a Debian laptop`: {@link DEBIAN_ROOT} and {@link DEBIAN_LAPTOP}
 * - `svc-image`: {@link IMAGE_BUILDER}, with further user ids of its own
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

/**
 * Returns true if the user `nobody` can read a file. For that, every parent folder must permit it.
 */
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
