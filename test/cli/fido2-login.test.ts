import { sign } from 'node:crypto';
import { chmodSync, existsSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startTestApp, type EnrolledUser, type TestApp } from '../support/app.js';
import { SvcHome } from '../support/svc-command.js';

/** The parts of a software key's assertion that the stand-in for libfido2 prints. */
interface Assertion {
  readonly id: string;
  readonly response: { readonly authenticatorData: string; readonly signature: string };
}

/**
 * Stands for a security key at the USB port. The stand-ins of the libfido2 programs in the home
 * folder send their input to it, and it signs with the user's software key.
 */
class PluggedKey {
  readonly inputs: string[] = [];
  readonly #server: Server;

  private constructor(private readonly user: EnrolledUser) {
    this.#server = createServer((request, response) => {
      let body = '';
      request.on('data', (chunk) => (body += String(chunk)));
      request.on('end', () => response.end(this.#answer(request.url ?? '', body)));
    });
  }

  static async open(user: EnrolledUser): Promise<PluggedKey> {
    const key = new PluggedKey(user);
    await new Promise<void>((done) => key.#server.listen(0, '127.0.0.1', done));
    return key;
  }

  /** Writes the stand-ins of fido2-token and fido2-assert into a home. */
  installInto(home: SvcHome): void {
    const { port } = this.#server.address() as { port: number };
    const url = `http://127.0.0.1:${port}`;
    const scripts = {
      'fido2-token': `if [ "$2" = -k ]; then curl -sS "${url}/list?rp=$3"; else echo '/dev/hidraw5: vendor=0x1050, product=0x0407 (Yubico YubiKey)'; fi`,
      'fido2-assert': `[ "$*" = '-G -v /dev/hidraw5' ] || exit 1; curl -sSf --data-binary @- "${url}/assert"`,
    };
    for (const [name, script] of Object.entries(scripts)) {
      const path = join(home.path, '.local/bin', name);
      writeFileSync(path, `#!/bin/sh\n${script}\n`);
      chmodSync(path, 0o755);
    }
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((done) => this.#server.close(done));
  }

  #answer(path: string, body: string): string {
    if (path.startsWith('/list')) {
      const id = Buffer.from(this.#sign('').id, 'base64url').toString('base64');
      const [credential] = this.user.key.state.credentials;
      const handle = Buffer.from(credential?.userHandle ?? '', 'base64url').toString('base64');
      return `00: ${id} Ada of Login ${handle} es256 uvopt\n`;
    }
    this.inputs.push(body);
    const [hash = '', rpId = '', id = ''] = body.split('\n');
    const assertion = this.#sign(hash);
    if (Buffer.from(id, 'base64').toString('base64url') !== assertion.id) return '';
    const data = Buffer.from(assertion.response.authenticatorData, 'base64url');
    // libfido2 prints authenticator data as a CBOR byte string: 0x58 and one byte for the length.
    const wrapped = Buffer.concat([Buffer.from([0x58, data.length]), data]);
    const signature = Buffer.from(assertion.response.signature, 'base64url');
    return `${hash}\n${rpId}\n${wrapped.toString('base64')}\n${signature.toString('base64')}\n`;
  }

  /**
   * Signs a hash of client data. A browser would compute it, but a native client brings its own.
   */
  #sign(hash: string): Assertion {
    const options = {
      challenge: 'AAAA',
      rpId: 'localhost',
      allowCredentials: [],
      userVerification: 'required',
    } as const;
    const { id, response } = this.user.key.get(options, 'https://unused.example');
    const [credential] = this.user.key.state.credentials;
    const signed = Buffer.concat([
      Buffer.from(response.authenticatorData, 'base64url'),
      Buffer.from(hash, 'base64'),
    ]);
    const signature = sign('sha256', signed, credential?.privateKey ?? '').toString('base64url');
    return { id, response: { authenticatorData: response.authenticatorData, signature } };
  }
}

describe('svc login --fido2', () => {
  let app: TestApp;
  let key: PluggedKey;
  let home: SvcHome;
  beforeAll(async () => {
    app = await startTestApp();
    key = await PluggedKey.open(await app.enrolled('ada@fido2-login.example'));
  });
  afterAll(async () => {
    await key.close();
    await app.close();
  });
  beforeEach(async () => {
    home = await SvcHome.create();
    key.installInto(home);
  });
  afterEach(() => home.remove());

  const login = (server = app.baseUrl) => home.run(['login', '--fido2', '--server', server]);

  it('asks the key for the name of the server, and stores a bound token', async () => {
    const end = await login();
    expect(end).toMatchObject({
      status: 0,
      stdout: expect.stringContaining('Logged in as ada@fido2-login.example'),
      stderr: expect.stringContaining('PIN'),
    });
    expect(key.inputs.at(-1)?.split('\n')[1]).toBe('localhost');
    expect(await home.run(['keys'])).toMatchObject({ status: 0 });
    expect(existsSync(home.state(app, 'fido2-credential.json'))).toBe(true);
    expect(await login()).toMatchObject({ status: 0 });
  });

  it('never asks the key for another name than that of the server', async () => {
    const asked = key.inputs.length;
    const relay = createServer(({ url, headers }, response) => {
      response.setHeader('content-type', 'application/json');
      if (url?.startsWith('/.well-known/') === true) {
        const grants = ['urn:svc:params:oauth:grant-type:fido2'];
        const issuer = `http://${headers.host}`;
        response.end(JSON.stringify({ issuer, grant_types_supported: grants }));
        return;
      }
      const publicKey = { challenge: 'AAAA', rpId: 'login.example.com' };
      response.end(JSON.stringify({ state: 'x', publicKey }));
    });
    await new Promise<void>((done) => relay.listen(0, '127.0.0.1', done));
    const { port } = relay.address() as { port: number };
    const end = await login(`http://127.0.0.1:${port}`);
    relay.closeAllConnections();
    relay.close();
    expect(end).toMatchObject({ status: 4, stderr: expect.stringContaining('another name') });
    expect(key.inputs).toHaveLength(asked);
  });

  it.each([
    ['fido2-token', 'exit 0', 'No security key is plugged in'],
    ['fido2-token', "printf '/dev/a: vendor=1\\n/dev/b: vendor=2\\n'", 'Several security keys'],
    ['fido2-assert', 'exit 1', 'fido2-assert failed'],
  ])('says what to do when %s does "%s"', async (name, script, text) => {
    writeFileSync(join(home.path, '.local/bin', name), `#!/bin/sh\n${script}\n`);
    const end = await login();
    expect(end).toMatchObject({ status: 1, stderr: expect.stringContaining(text) });
  });

  it('names the package when libfido2 is not installed', async () => {
    const end = await home.run(['login', '--fido2', '--server', app.baseUrl], {
      env: { PATH: '/nonexistent' },
    });
    expect(end).toMatchObject({ status: 1, stderr: expect.stringContaining('fido2-tools') });
  });
});
