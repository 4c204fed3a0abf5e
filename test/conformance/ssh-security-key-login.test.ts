import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { newAddress, type Answer, type Client } from '../support/client.js';
import { HARDWARE_SSH_NEEDS, startHardwareSsh, type HardwareSsh } from '../support/hardware-ssh.js';
import { requires } from '../support/programs.js';
import { SIGNATURE_FLAGS } from '../support/security-key-provider.js';
import { AAGUID } from '../support/soft-key.js';
import type { LoginResult } from '../support/sshd.js';

interface KeyOptions {
  readonly type?: string;
  readonly options?: readonly string[];
}

/** An SSH key in the security key, the response to its certificate request, and a login with it. */
interface CertifiedKey {
  readonly answer: Answer;
  readonly file: string;
  readonly login: (flags?: string) => Promise<LoginResult>;
}

/**
 * The real programs of OpenSSH with a security key in software: ssh-keygen makes the key and its
 * attestation, the service certifies it, ssh logs in to sshd.
 */
requires(...HARDWARE_SSH_NEEDS).describe('an SSH key in a security key', () => {
  let world: HardwareSsh;
  let client: Client;
  beforeAll(async () => {
    world = await startHardwareSsh('ada@sk.example');
    ({ client } = await world.app.enrolled('ada@sk.example'));
  });
  afterAll(() => world.close());

  let keys = 0;
  async function certify(options: KeyOptions = {}): Promise<CertifiedKey> {
    keys += 1;
    const file = join(world.folder, `key-${keys}`);
    const { json } = await client.post(
      '/v1/credentials/ssh/challenge',
      {},
      { address: newAddress() },
    );
    const attestation = world.provider.newKey(
      file,
      Buffer.from(json.challenge as string, 'base64'),
      options,
    );
    const answer = await request(file, {
      state: json.state,
      data: readFileSync(attestation).toString('base64'),
    });
    return {
      answer,
      file,
      login: (flags) =>
        world.sshd.login(file, `${file}-cert.pub`, world.provider.environment(flags)),
    };
  }

  /** Requests a certificate for a key. If the service issues it, stores it beside the key. */
  async function request(file: string, attestation?: object): Promise<Answer> {
    const public_key = readFileSync(`${file}.pub`, 'utf8').trim();
    const body = { public_key, ...(attestation && { attestation }) };
    const answer = await client.post('/v1/credentials/ssh', body, { address: newAddress() });
    if (answer.status === 200) writeFileSync(`${file}-cert.pub`, `${answer.json.certificate}\n`);
    return answer;
  }

  const printed = (file: string) =>
    execFileSync('ssh-keygen', ['-L', '-f', `${file}-cert.pub`], { encoding: 'utf8' });

  it.each([
    ['ecdsa-sk', 'sk-ecdsa-sha2-nistp256-cert-v01@openssh.com'],
    ['ed25519-sk', 'sk-ssh-ed25519-cert-v01@openssh.com'],
  ])('of type %s is attested by ssh-keygen, certified, and logs in to sshd', async (type, name) => {
    const { answer, file, login } = await certify({ type });
    expect(answer.json.attestation).toMatchObject({ aaguid: AAGUID, verify_required: false });
    expect(printed(file)).toContain(`Type: ${name} user certificate`);
    expect(printed(file)).toContain('Critical Options: (none)');
    expect(await login()).toMatchObject({ accepted: true });
    expect((await login(SIGNATURE_FLAGS.none)).accepted).toBe(false); // signed without a touch
  });

  it('logs in with a later certificate, for which no attestation was sent', async () => {
    const { file, login } = await certify();
    expect((await request(file)).json.attestation).toMatchObject({ aaguid: AAGUID });
    expect(await login()).toMatchObject({ accepted: true });
  });

  it.each(['ecdsa-sk', 'ed25519-sk'])(
    'of type %s, made with -O verify-required, logs in with its PIN alone',
    async (type) => {
      const { answer, file, login } = await certify({ type, options: ['verify-required'] });
      expect(answer.json.attestation).toMatchObject({ aaguid: AAGUID, verify_required: true });
      expect(printed(file)).toMatch(/Critical Options: *\n\s+verify-required\n/);
      expect(await login()).toMatchObject({ accepted: true });
      expect((await login(SIGNATURE_FLAGS.verified)).accepted).toBe(true);
      const withoutPin = await login(SIGNATURE_FLAGS.touched);
      expect(withoutPin.accepted).toBe(false);
      expect(withoutPin.log).toMatch(/user verification/i);
    },
  );

  it('that is resident has no critical option: it signs without a PIN', async () => {
    const { answer, file, login } = await certify({ options: ['resident'] });
    expect(answer.json.attestation).toMatchObject({ verify_required: false });
    expect(printed(file)).toContain('Critical Options: (none)');
    expect(await login()).toMatchObject({ accepted: true });
  });

  it('of another application is refused', async () => {
    const { answer } = await certify({ options: ['application=ssh:work'] });
    expect([answer.status, answer.json.code]).toEqual([400, 'attestation_rejected']);
  });

  it('that ssh-keygen made over a challenge of its own is refused', async () => {
    const file = join(world.folder, 'own-challenge');
    const { json } = await client.post(
      '/v1/credentials/ssh/challenge',
      {},
      { address: newAddress() },
    );
    const attestation = world.provider.newKey(file, Buffer.alloc(32, 1));
    const answer = await request(file, {
      state: json.state,
      data: readFileSync(attestation).toString('base64'),
    });
    expect([answer.status, answer.json.code]).toEqual([400, 'attestation_rejected']);
  });

  it('without an attestation is refused, as a key in a file is', async () => {
    const file = join(world.folder, 'unproven');
    world.provider.newKey(file, Buffer.alloc(32, 1));
    const answer = await request(file);
    expect([answer.status, answer.json.code]).toEqual([403, 'hardware_ssh_key_required']);
  });
});
