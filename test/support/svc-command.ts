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
 * The path of an executable that all tests of the command run in place of the script; undefined to
 * run the script. The tests load further scripts by NODE_OPTIONS, so a byte of the executable must
 * permit this variable.
 */
const EXECUTABLE = process.env['SVC_TEST_EXECUTABLE'];

/** Returns the words that run a copy of the command. */
export function commandWords(file: string, node = process.execPath): [string, ...string[]] {
  return EXECUTABLE === undefined ? [node, file] : [file];
}

/** The result of a run of the command: its exit status and its output. */
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
  /** Is called with the process after its start, so that a test can write to it or end it. */
  readonly started?: (child: ReturnType<typeof spawn>) => void;
}

/**
 * A home folder with the `svc` command in `~/.local/bin/svc`, as /install.sh leaves it. Its
 * requests have an address of their own, so that no two tests share a rate limit.
 */
export class SvcHome {
  /** The client address of the requests, which they send in X-Forwarded-For. */
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

  /**
   * The environment of the command. It is complete, so that no variable of the host changes a test.
   */
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

  /**
   * Returns a path below the folder in which the command keeps its state (secrets) for a server.
   */
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
   * Stores a login of a user as the command does, by the FIDO2 grant of `svc-cli` with a new DPoP
   * key. With the scope `svc:admin` it is the login of an admin. Returns the token.
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

  /** Writes a file into the folder of a server, with the modes that the command uses. */
  writeState(app: Pick<TestApp, 'baseUrl'>, name: string, document: object | string): void {
    mkdirSync(this.state(app), { recursive: true, mode: 0o700 });
    const text = typeof document === 'string' ? document : JSON.stringify(document);
    writeFileSync(this.state(app, name), text, { mode: 0o600 });
  }

  /** Writes `config.json` with the address of the application. */
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
 * Returns the user id in an ID token; `test` if the login had no scope `openid`, and so no ID
 * token.
 */
function userOf(idToken: unknown): string {
  return typeof idToken === 'string' ? (decodeJwt(idToken).sub ?? 'test') : 'test';
}

/** Runs a program and waits for its end, without blocking the application of the test. */
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

/** Exchanges an assertion of the user's security key for a token of svc-cli (the FIDO2 grant). */
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
 * Returns a script that Node loads before the command. It adds the test's address to every request;
 * the variable `TEST_ADDRESS` replaces it for one run.
 */
function forwardedFor(address: string): string {
  return changedRequests(`
  const value = process.env.TEST_ADDRESS ?? ${JSON.stringify(address)};
  return plain(url, { ...options, headers: { ...options.headers, 'x-forwarded-for': value } });`);
}

/**
 * Returns a script that Node loads before the command. It replaces `request` of `node:http` and
 * `node:https`, by which the command sends its requests.
 *
 * @param body the body of a function with the parameters `url`, `options`, `plain` (the original
 *   function) and `answer`, which takes a status and a text and returns a request with that answer
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
 * The line that changes both modules at once. It is for executables, which load modules of Node by
 * a function that no script can replace.
 */
const LOADED_AT_ONCE = "for (const name of ['node:http', 'node:https']) change(name, _load(name));";
