import { execFileSync, spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { GeneratedCertificate } from '@svc/stand-ins/certificates';
import { AAGUID, aaguidBytes } from './soft-key.js';

/** The programs and files that {@link SecurityKeyProvider.build} needs. */
export const PROVIDER_NEEDS = ['ssh-keygen', 'gcc', 'the headers of OpenSSL'] as const;

/**
 * The flags byte in signatures of an SSH security key: user presence is 1, and user verification is
 * 4.
 */
export const SIGNATURE_FLAGS = { none: '0', touched: '1', verified: '5' } as const;

const SOURCE = join(import.meta.dirname, 'security-key-provider.c');

/** A security key in software, as a library that the programs of OpenSSH load (SSH_SK_PROVIDER). */
export class SecurityKeyProvider {
  private constructor(
    private readonly folder: string,
    private readonly library: string,
  ) {}

  /**
   * Compiles the library for the version of OpenSSH on this machine.
   *
   * @param leaf the attestation certificate of the security key, with its private key
   */
  static build(folder: string, leaf: GeneratedCertificate): SecurityKeyProvider {
    const privateKey = leaf.privateKey.export({ type: 'pkcs8', format: 'pem' });
    writeFileSync(join(folder, 'attestation.pem'), privateKey, { mode: 0o600 });
    writeFileSync(join(folder, 'attestation.der'), leaf.der);
    writeFileSync(join(folder, 'aaguid'), aaguidBytes(AAGUID));
    const askPin = join(folder, 'ask-pin');
    writeFileSync(askPin, '#!/bin/sh\necho 123456\n', { mode: 0o755 });
    const library = join(folder, 'security-key.so');
    compile(library, '0');
    // OpenSSH refuses a library of another version, and its message names the version that it
    // needs.
    const refusal = spawnSync(
      'ssh-keygen',
      ['-q', '-t', 'ecdsa-sk', '-w', library, '-N', '', '-f', join(folder, 'version')],
      { encoding: 'utf8' },
    ).stderr;
    const version = /supported: (0x[0-9a-f]{8})/.exec(refusal)?.[1];
    if (version === undefined) throw new Error(`ssh-keygen names no version: ${refusal}`);
    compile(library, version);
    return new SecurityKeyProvider(folder, library);
  }

  /**
   * Returns environment variables for ssh and ssh-keygen. They name the library, and the program
   * that enters the PIN (SSH_ASKPASS).
   *
   * @param flags the flags of each signature; by default they truthfully say if the user touched
   * the key and entered the PIN
   */
  environment(flags?: string): Record<string, string> {
    return {
      SSH_SK_PROVIDER: this.library,
      SVC_TEST_SK: this.folder,
      SSH_ASKPASS: join(this.folder, 'ask-pin'),
      SSH_ASKPASS_REQUIRE: 'force',
      ...(flags === undefined ? {} : { SVC_TEST_SK_FLAGS: flags }),
    };
  }

  /**
   * Makes an SSH key in the security key by `ssh-keygen`. Returns the path of its attestation file.
   */
  newKey(
    file: string,
    challenge: Buffer,
    { type = 'ecdsa-sk', options = [] }: { type?: string; options?: readonly string[] } = {},
  ): string {
    writeFileSync(`${file}.challenge`, challenge);
    const all = [
      `challenge=${file}.challenge`,
      `write-attestation=${file}.attestation`,
      ...options,
    ].flatMap((option) => ['-O', option]);
    execFileSync(
      'ssh-keygen',
      ['-q', '-t', type, '-w', this.library, ...all, '-N', '', '-f', file],
      { env: { ...process.env, ...this.environment() }, stdio: ['ignore', 'ignore', 'pipe'] },
    );
    return `${file}.attestation`;
  }
}

function compile(library: string, version: string): void {
  const flags = ['-shared', '-fPIC', '-Wall', '-Werror', '-Wno-deprecated-declarations'];
  execFileSync('gcc', [...flags, `-DSK_API_VERSION=${version}`, '-o', library, SOURCE, '-lcrypto']);
}
