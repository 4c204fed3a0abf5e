import { execFileSync } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, expect, it, vi } from 'vitest';
import { publicKeyBlob, publicKeyLine, writePrivateKey } from '@svc/openssh';
import { KmsKeys } from '#platform/kms/kms-keys.js';
import { newAddress, type Client } from '../support/client.js';
import { freePort } from '../support/free-port.js';
import '../support/full-scale-only.js';
import { HOST_PROGRAMS, JoiningHost } from '../support/joining-host.js';
import { kmsAdmin, useMotoCredentials } from '../support/kms.js';
import { startMoto, type Moto } from '../support/moto.js';
import { requires } from '../support/programs.js';
import { verifyCertificate } from '../support/published-keys.js';
import {
  startReplicatedService,
  type ReplicatedService,
  type Variables,
} from '../support/replicated-service.js';
import { runSshd, SSHD_PROGRAMS, type Sshd } from '../support/sshd.js';

const ADA = 'ada@rotation.example';
const BOB = 'bob@rotation.example';

const restore = useMotoCredentials();
afterAll(restore);

/** A certificate that the service issued. `file` is its path, and `line` is its text. */
interface Issued {
  readonly file: string;
  readonly serial: string;
  readonly line: string;
}

/**
 * Requests certificates as several users in parallel. Verifies each certificate with the
 * authorities that are published when it arrives. Collects errors in `failures`.
 */
class CertificateLoad {
  readonly failures: string[] = [];
  readonly issued: string[] = [];
  #isOn = true;
  readonly #done: Promise<unknown>;

  constructor(
    private readonly service: ReplicatedService,
    clients: readonly Client[],
    private readonly publicKey: string,
  ) {
    this.#done = Promise.all(clients.map((client) => this.#work(client)));
  }

  /** Resolves after `count` more certificates. Also resolves if more than 10 requests failed. */
  async more(count: number): Promise<void> {
    const goal = this.issued.length + count;
    await vi.waitUntil(() => this.issued.length >= goal || this.failures.length > 10, {
      timeout: 60_000,
    });
  }

  async stop(): Promise<void> {
    this.#isOn = false;
    await this.#done;
  }

  async #work(client: Client): Promise<void> {
    while (this.#isOn) {
      try {
        const body = { public_key: this.publicKey };
        const options = { address: newAddress() };
        const { status, json, text } = await client.post('/v1/credentials/ssh', body, options);
        if (status !== 200) throw new Error(`${status} ${text}`);
        await verifyCertificate(this.service, json.certificate);
        this.issued.push(json.certificate);
      } catch (error) {
        this.failures.push(String(error));
      }
    }
  }
}

/**
 * Runs the steps of a rotation on two replicas of the service, and on an sshd that joined the
 * service. Users request certificates all the time.
 */
class Walk {
  private constructor(
    readonly service: ReplicatedService,
    readonly host: JoiningHost,
    readonly sshd: Sshd,
    readonly load: CertificateLoad,
    private readonly bob: Client,
    private readonly keyFile: string,
    private readonly script: string,
  ) {}

  static async begin(variables: Variables): Promise<Walk> {
    const service = await startReplicatedService(variables, variables);
    const host = new JoiningHost(await freePort());
    const sshd = await runSshd({ folder: host.folder, port: host.port, config: host.config });
    const keyFile = join(host.folder, 'key');
    execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', keyFile]);
    const publicKey = readFileSync(`${keyFile}.pub`, 'utf8').trim();
    const script = (await service.client().get('/install-host.sh')).text;
    const [ada, bob] = [await enrolled(service, ADA), await enrolled(service, BOB)];
    const load = new CertificateLoad(service, [ada, ada], publicKey);
    return new Walk(service, host, sshd, load, bob, keyFile, script);
  }

  /**
   * Runs the command that joins the sshd to the service, as its operator does. Running it again
   * updates the authorities that the sshd trusts.
   */
  async join(): Promise<void> {
    await this.service.app.dataSource.query('TRUNCATE rate_limits');
    const starts = () => this.sshd.lines.filter((line) => line.startsWith('Server listening'));
    const before = starts().length;
    const users = [ADA, BOB].flatMap((name) => ['--principal', name]);
    const options = [...this.host.paths, '--schedule', 'systemd', '--account', 'root', ...users];
    const { status, said } = await this.host.run(this.script, options);
    if (status !== 0) throw new Error(said);
    if (said.includes('reloaded sshd')) await vi.waitUntil(() => starts().length > before, 30_000);
  }

  /** Restarts the two replicas with new settings, one after the other. */
  async restart(variables: Variables): Promise<void> {
    await this.load.more(5);
    await this.service.replace(0, variables);
    await this.load.more(5); // while the settings of the replicas differ
    await this.service.replace(1, variables);
    await this.load.more(5);
  }

  /** Issues a certificate to Bob. It is not part of the load, so that a test can revoke it. */
  async certify(name: string): Promise<Issued> {
    const public_key = readFileSync(`${this.keyFile}.pub`, 'utf8').trim();
    const options = { address: newAddress() };
    const { json } = await this.bob.post('/v1/credentials/ssh', { public_key }, options);
    return {
      serial: json.serial,
      line: json.certificate,
      file: this.write(name, json.certificate),
    };
  }

  write(name: string, certificate: string): string {
    const file = join(this.host.folder, `${name}-cert.pub`);
    writeFileSync(file, `${certificate}\n`);
    return file;
  }

  logIn({ file }: Pick<Issued, 'file'>): Promise<{ accepted: boolean; log: string }> {
    return this.sshd.login(this.keyFile, file);
  }

  /**
   * Logs in with `count` certificates of the load, evenly spaced from the first to the last one.
   */
  async sample(count: number): Promise<boolean[]> {
    const { issued } = this.load;
    const accepted: boolean[] = [];
    for (let index = 0; index < count; index += 1) {
      const at = Math.floor((index * (issued.length - 1)) / (count - 1));
      accepted.push(
        (await this.logIn({ file: this.write(`s${index}`, issued[at] ?? '') })).accepted,
      );
    }
    return accepted;
  }

  async revoke({ serial }: Issued): Promise<void> {
    await this.service.app.dataSource.query(
      "UPDATE ssh_certificates SET revoked_at = now(), revoke_reason = 'test', revoked_by = 'test' WHERE serial = $1",
      [serial],
    );
    await this.service.app.dataSource.query('TRUNCATE rate_limits');
    const { status, said } = await this.host.refresh();
    if (status !== 0 || said !== '') throw new Error(said);
  }

  trusted(): string[] {
    return readFileSync(this.host.authorities, 'utf8').trim().split('\n');
  }

  async end(): Promise<void> {
    await this.load.stop();
    await this.sshd.stop();
    await this.service.close();
  }
}

async function enrolled(service: ReplicatedService, email: string): Promise<Client> {
  const client = service.client();
  await client.signIn(email);
  const { status, text } = await client.enroll(service.newKey());
  if (status !== 200) throw new Error(text);
  return client;
}

/** The settings of both replicas after each step of docs/operations/key-rotation.md. */
interface Steps {
  readonly present: Variables;
  readonly published: Variables;
  readonly next: Variables;
  readonly alone: Variables;
  /** The key type at the beginning of the next authority's line, such as `ssh-ed25519`. */
  readonly type: string;
}

/**
 * Makes the steps of a rotation under load. Revokes one certificate of each authority key, and
 * checks that sshd refuses only these. Returns the errors of the load.
 */
async function rotate(
  walk: Walk,
  { published, next, alone, type }: Steps,
): Promise<readonly string[]> {
  await walk.join();
  const old = await walk.certify('old');
  const oldToRevoke = await walk.certify('old-to-revoke');
  expect(walk.trusted()).toHaveLength(1);

  await walk.restart(published);
  await walk.join(); // so that sshd trusts the next key before the service signs with it
  expect(walk.trusted()).toHaveLength(2);
  await walk.restart(next);
  const [newOne, newToRevoke] = [await walk.certify('new'), await walk.certify('new-to-revoke')];
  for (const one of [old, oldToRevoke, newOne, newToRevoke]) {
    expect(await walk.logIn(one)).toMatchObject({ accepted: true });
  }
  await walk.revoke(oldToRevoke);
  await walk.revoke(newToRevoke);
  for (const one of [oldToRevoke, newToRevoke]) {
    const { accepted, log } = await walk.logIn(one);
    expect([accepted, /revoked/i.test(log)]).toEqual([false, true]);
  }
  for (const one of [old, newOne]) expect(await walk.logIn(one)).toMatchObject({ accepted: true });

  await walk.restart(alone); // sshd still trusts the old key, which is not published now
  expect((await walk.logIn(oldToRevoke)).accepted).toBe(false);
  await walk.load.stop();
  expect(await walk.sample(8)).toEqual(Array.from({ length: 8 }, () => true));
  await walk.join();
  expect(walk.trusted()).toEqual([expect.stringMatching(new RegExp(`^${type} `))]);
  expect((await walk.logIn(old)).accepted).toBe(false);
  expect(await walk.logIn(newOne)).toMatchObject({ accepted: true });
  return walk.load.failures;
}

requires(...SSHD_PROGRAMS, ...HOST_PROGRAMS).describe(
  'a rotation of the SSH authority under load',
  () => {
    let walk: Walk | undefined;
    let moto: Moto | undefined;
    afterEach(async () => {
      await walk?.end();
      await moto?.close();
    });

    const ed25519 = () => generateKeyPairSync('ed25519').privateKey;

    it('from one file to another fails no request, and each certificate logs in to a server that joined', async () => {
      const [old, next] = [ed25519(), ed25519()];
      const [oldFile, nextFile] = [old, next].map((key) => writePrivateKey(key, 'ca')) as [
        string,
        string,
      ];
      const oldLine = publicKeyLine(publicKeyBlob(old), 'old');
      const steps = {
        present: { SVC_SSH_CA_KEY: oldFile },
        published: { SVC_SSH_CA_KEY: `${oldFile}${nextFile}` },
        next: { SVC_SSH_CA_KEY: `${nextFile}${oldLine}` },
        alone: { SVC_SSH_CA_KEY: nextFile },
        type: 'ssh-ed25519',
      };
      walk = await Walk.begin(steps.present);
      expect(await rotate(walk, steps)).toEqual([]);
    }, 300_000);

    requires('moto').describe('to AWS KMS', () => {
      it('fails no request, and each certificate logs in to a server that joined', async () => {
        moto = await startMoto();
        const keyId = await (await kmsAdmin(moto.endpoint)).create('ECC_NIST_P256');
        const inKms = { SVC_SSH_CA_KMS_KEY_ID: keyId, AWS_ENDPOINT_URL_KMS: moto.endpoint };
        const oldFile = writePrivateKey(ed25519(), 'ca');
        const steps = {
          present: { SVC_SSH_CA_KEY: oldFile },
          published: { SVC_SSH_CA_KEY: `${oldFile}${await publicPem(keyId, moto.endpoint)}` },
          next: { SVC_SSH_CA_KEY: oldFile, ...inKms },
          alone: { SVC_SSH_CA_KEY: '', ...inKms },
          type: 'ecdsa-sha2-nistp256',
        };
        walk = await Walk.begin(steps.present);
        expect(await rotate(walk, steps)).toEqual([]);
      }, 300_000);
    });
  },
);

/** Returns the public key of a key in KMS as PEM, which `aws kms get-public-key` would give. */
async function publicPem(keyId: string, endpoint: string): Promise<string> {
  const keys = [{ variable: 'SVC_SSH_CA_KMS_KEY_ID', keyId, use: 'Ed25519 or ES256' as const }];
  const kms = await KmsKeys.open({
    kms: { keys, endpoint },
    upstream: { extraCaCerts: [] },
  });
  const { publicKey } = kms.signer(keyId, 'ES256');
  return publicKey.export({ type: 'spki', format: 'pem' }).toString();
}
