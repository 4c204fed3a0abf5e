import { spawn } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join, resolve } from 'node:path';
import { generateKeyPair, exportJWK, calculateJwkThumbprint, decodeJwt, SignJWT } from 'jose';
import { randomUUID } from 'node:crypto';
import type { EnrolledUser, TestApp } from './app.js';
import { newAddress, type Answer } from './client.js';
import { postForm } from './oauth-flow.js';
import { makeTemporaryDirectory, removeDirectory } from './temporary-directory.js';

/** The bundle of the `svc` command. The start of every test run builds it from the sources. */
export const SVC_BUNDLE = resolve(import.meta.dirname, '../../dist/svc.mjs');

/**
 * The path of an executable that the tests run in place of the script; undefined for the script.
 * The executable must have the changed byte that permits NODE_OPTIONS, because the tests load
 * scripts by that variable.
 */
const EXECUTABLE = process.env['SVC_TEST_EXECUTABLE'];

/** Returns the program and the first argument that run the command in a file. */
export function commandWords(file: string, node = process.execPath): [string, ...string[]] {
  return EXECUTABLE === undefined ? [node, file] : [file];
}

/** The exit status and the output of the command. */
export interface CommandEnd {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** The options of a run. By default it has no input and no further variables. */
export interface RunOptions {
  readonly input?: string;
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** The program of Node that runs the command; by default that of the tests. */
  readonly node?: string;
  readonly cwd?: string;
  /** A function that gets the running process, so that a test can write to it or stop it. */
  readonly started?: (child: ReturnType<typeof spawn>) => void;
}

/**
 * A home folder with the `svc` command in `~/.local/bin/svc`, as /install.sh would install it. Its
 * requests come from an IP address of their own, so that no two tests share a rate limit.
 */
export class SvcHome {
  /** The client IP address that the requests have in X-Forwarded-For. */
  readonly address = newAddress();

  private constructor(readonly path: string) {}

  static async create(): Promise<SvcHome> {
    const home = new SvcHome(await makeTemporaryDirectory());
    mkdirSync(join(home.path, '.local/bin'), { recursive: true });
    if (EXECUTABLE === undefined) {
      copyFileSync(SVC_BUNDLE, home.program);
      chmodSync(home.program, 0o755);
    } else symlinkSync(EXECUTABLE, home.program); // a copy would take 150 MB of memory
    writeFileSync(home.#preload, forwardedFor(home.address));
    return home;
  }

  /** The path of the installed command. */
  get program(): string {
    return join(this.path, '.local/bin/svc');
  }

  /** All environment variables of the command, so that no variable of the host changes a test. */
  get env(): Record<string, string> {
    return {
      HOME: this.path,
      PATH: `${join(this.path, '.local/bin')}:${process.env['PATH'] ?? ''}`,
      NODE_OPTIONS: `--require=${this.#preload}`,
      TERM: 'xterm',
      LANG: 'C.UTF-8',
      TZ: 'UTC',
    };
  }

  /** Returns the path of a file in the folder where the command keeps its secrets for a server. */
  state(app: Pick<TestApp, 'baseUrl'>, ...names: string[]): string {
    const { protocol, host } = new URL(app.baseUrl);
    const folder = `${protocol === 'http:' ? 'http_' : ''}${host.replaceAll(':', '_')}`;
    return join(this.path, '.local/state/svc', folder, ...names);
  }

  get config(): string {
    return join(this.path, '.config/svc/config.json');
  }

  /** Runs the command without a terminal. */
  run(args: readonly string[], options: RunOptions = {}): Promise<CommandEnd> {
    const [program, ...first] = commandWords(this.program, options.node);
    return runProgram(program, [...first, ...args], {
      ...options,
      env: { ...this.env, ...options.env },
    });
  }

  /** Runs the command in a pseudo-terminal of script(1). All output is in `stdout`. */
  runInTerminal(args: readonly string[], options: RunOptions = {}): Promise<CommandEnd> {
    const words = commandWords(this.program, options.node);
    const line = [...words, ...args].map((word) => `'${word.replaceAll("'", `'\\''`)}'`);
    return runProgram('script', ['-qec', line.join(' '), '/dev/null'], {
      ...options,
      env: { ...this.env, ...options.env },
    });
  }

  /**
   * Logs a user in by the FIDO2 grant of `svc-cli` with a new DPoP key, and stores the login as the
   * command would. With the scope `svc:admin`, it is the login of an admin. Returns the token and
   * its key.
   */
  async logIn(app: TestApp, user: EnrolledUser, scope = 'openid email svc:credentials') {
    const { privateKey, publicKey } = await generateKeyPair('ES256', { extractable: true });
    const publicJwk = await exportJWK(publicKey);
    const proof = await new SignJWT({ htm: 'POST', htu: `${app.baseUrl}/oauth/token` })
      .setJti(randomUUID())
      .setIssuedAt()
      .setProtectedHeader({ alg: 'ES256', typ: 'dpop+jwt', jwk: publicJwk })
      .sign(privateKey);
    const answer = await fido2Token(app, user, scope, proof);
    if (answer.status !== 200) throw new Error(`the login failed: ${answer.text}`);
    const { access_token: token, expires_in: seconds } = answer.json;
    this.writeState(app, 'dpop-key.json', await exportJWK(privateKey));
    const expires = new Date(Date.now() + seconds * 1000).toISOString();
    const isAdmin = scope.split(' ').includes('svc:admin');
    this.writeState(app, isAdmin ? 'admin-token.json' : 'token.json', {
      access_token: token,
      scope: answer.json.scope,
      expires_at: expires,
      user: { id: userOf(answer.json.id_token), email: 'test@example.com' },
    });
    this.useServer(app);
    return { token: String(token), jkt: await calculateJwkThumbprint(publicJwk), privateKey };
  }

  /**
   * Writes a file into the command's folder for a server, with the file modes that the command
   * uses.
   */
  writeState(app: Pick<TestApp, 'baseUrl'>, name: string, document: object | string): void {
    mkdirSync(this.state(app), { recursive: true, mode: 0o700 });
    const text = typeof document === 'string' ? document : JSON.stringify(document);
    writeFileSync(this.state(app, name), text, { mode: 0o600 });
  }

  /** Writes the URL of the application into `config.json`, unless the file exists. */
  useServer(app: Pick<TestApp, 'baseUrl'>): void {
    mkdirSync(join(this.path, '.config/svc'), { recursive: true, mode: 0o700 });
    const config = { server: app.baseUrl, servers: [app.baseUrl] };
    if (!existsSync(this.config))
      writeFileSync(this.config, JSON.stringify(config), { mode: 0o600 });
  }

  remove(): Promise<void> {
    return removeDirectory(this.path);
  }

  get #preload(): string {
    return join(this.path, 'forwarded-for.cjs');
  }
}

/**
 * Returns the user id in an ID token, or `test` if there is no ID token because the scope `openid`
 * was not requested.
 */
function userOf(idToken: unknown): string {
  return typeof idToken === 'string' ? (decodeJwt(idToken).sub ?? 'test') : 'test';
}

/**
 * Runs a program and waits for its end. Meanwhile the test's application can still answer requests.
 */
export function runProgram(
  program: string,
  args: readonly string[],
  { input, env, cwd, started }: RunOptions = {},
): Promise<CommandEnd> {
  return new Promise((done, fail) => {
    const child = spawn(program, args, { env, ...(cwd === undefined ? {} : { cwd }) });
    const output = { stdout: '', stderr: '' };
    child.stdout.on('data', (chunk) => (output.stdout += String(chunk)));
    child.stderr.on('data', (chunk) => (output.stderr += String(chunk)));
    child.once('error', fail);
    child.once('close', (status) => done({ status, ...output }));
    child.stdin.on('error', () => {});
    if (input !== undefined || started === undefined) child.stdin.end(input ?? '');
    started?.(child);
  });
}

/**
 * Logs in by the FIDO2 grant of `svc-cli` with the user's security key, and returns the response.
 */
async function fido2Token(
  app: TestApp,
  { key }: EnrolledUser,
  scope: string,
  dpop: string,
): Promise<Answer> {
  const asked = await postForm(app, '/oauth/fido2/challenge', { client_id: 'svc-cli' });
  const credential = JSON.stringify(key.get(asked.json.publicKey, 'svc-native:svc-cli'));
  const fields = {
    grant_type: 'urn:svc:params:oauth:grant-type:fido2',
    client_id: 'svc-cli',
    scope,
    state: asked.json.state,
    assertion: Buffer.from(credential).toString('base64url'),
  };
  return postForm(app, '/oauth/token', fields, { dpop });
}

/**
 * Returns a script that Node loads before the command. The script adds an X-Forwarded-For header
 * with this IP address to every request. For one run, the variable `TEST_ADDRESS` can set another
 * address.
 */
function forwardedFor(address: string): string {
  return changedRequests(`
  const value = process.env.TEST_ADDRESS ?? ${JSON.stringify(address)};
  return plain(url, { ...options, headers: { ...options.headers, 'x-forwarded-for': value } });`);
}

/**
 * Returns a script that Node loads before the command. The script replaces the function `request`
 * of `node:http` and `node:https`, by which the command sends its requests.
 *
 * @param body the body of the new function. It can use the parameters `url` and `options`, and the
 * original function `plain`. It can also call `answer` with a status and a text, which returns a
 * request that gets this answer.
 */
export function changedRequests(body: string): string {
  return `const Module = require('node:module');
const answer = (status, text) => {
  const { EventEmitter } = require('node:events');
  const { Readable } = require('node:stream');
  const response = Readable.from(text === '' ? [] : [Buffer.from(text)]);
  Object.assign(response, { statusCode: status, headers: {}, complete: true });
  const request = new EventEmitter();
  request.end = () => process.nextTick(() => request.emit('response', response));
  return request;
};
const changed = new Set();
const change = (name, module) => {
  if (!['node:http', 'node:https'].includes(name) || changed.has(name)) return module;
  changed.add(name);
  const plain = module.request;
  module.request = (url, options) => {${body}
  };
  return module;
};
const { _load } = Module;
Module._load = (name, ...others) => change(name, _load(name, ...others));
const { getBuiltinModule } = process;
process.getBuiltinModule = (name) => change(name, getBuiltinModule(name));
${EXECUTABLE === undefined ? '' : LOADED_AT_ONCE}`;
}

/**
 * The line of the script that changes both modules at once. An executable needs this line, because
 * it loads Node's modules by a function that no script can replace.
 */
const LOADED_AT_ONCE = "for (const name of ['node:http', 'node:https']) change(name, _load(name));";
