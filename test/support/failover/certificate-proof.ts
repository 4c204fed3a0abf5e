import { execFile } from 'node:child_process';
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { newAddress } from '../client.js';
import { startSshd, type Sshd } from '../sshd.js';
import { makeTemporaryDirectory, removeDirectory } from '../temporary-directory.js';
import type { FailoverService } from './failover-service.js';

const run = promisify(execFile);

/**
 * The number of certificates that `ssh` offers in one connection. `ssh` takes at most 100 files of
 * keys and certificates, and also offers the plain key.
 */
const OFFERED = 90;

/**
 * Tries certificates at a real `sshd`, which trusts the authority of the service and reads its key
 * revocation list.
 */
export class CertificateProof {
  #files = 0;

  private constructor(
    private readonly service: FailoverService,
    private readonly sshd: Sshd,
    private readonly folder: string,
    private readonly key: string,
  ) {
    this.publicKey = readFileSync(`${key}.pub`, 'utf8').trim();
  }

  /**
   * Starts `sshd` with the current revocation list. Makes the key pair for which all certificates
   * are.
   *
   * @param principals the e-mail addresses that the certificates may have as principals
   */
  static async start(
    service: FailoverService,
    principals: readonly string[],
  ): Promise<CertificateProof> {
    const folder = await makeTemporaryDirectory();
    const key = join(folder, 'person');
    await run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', key]);
    const authority = await service.client().get('/v1/credentials/ssh/ca');
    await download(service, folder);
    const sshd = await startSshd({
      authorities: [authority.text.trim()],
      principals,
      config: [`RevokedKeys ${listIn(folder)}`, `MaxAuthTries ${2 * OFFERED}`],
    });
    return new CertificateProof(service, sshd, folder, key);
  }

  /** The public key for which every certificate is issued. */
  readonly publicKey: string;

  /**
   * Replaces the revocation list by the current one, as the timer of docs/operations/ssh.md does.
   */
  download(): Promise<void> {
    return download(this.service, this.folder);
  }

  /**
   * Returns true if `sshd` accepts one of these certificates. Returns false if it refused each of
   * them because the revocation list revokes it, and rejects if it refused one for another reason.
   */
  async acceptsAny(certificates: readonly string[]): Promise<boolean> {
    for (let at = 0; at < certificates.length; at += OFFERED) {
      const some = certificates.slice(at, at + OFFERED);
      const before = this.sshd.lines.length;
      const files = some.map((certificate) => this.#write(certificate));
      const { accepted, log } = await this.sshd.login(this.key, files);
      if (accepted) return true;
      const refused = this.sshd.lines
        .slice(before)
        .filter((line) => line.includes('-CERT') && line.includes('revoked by file'));
      if (refused.length < some.length)
        throw new Error(`sshd has not judged every one of ${some.length} certificates: ${log}`);
    }
    return false;
  }

  /** Returns those certificates that are not in the revocation list, as `ssh-keygen -Q` says. */
  async unlisted(certificates: readonly string[]): Promise<string[]> {
    const found: string[] = [];
    for (let at = 0; at < certificates.length; at += 500) {
      const some = certificates.slice(at, at + 500);
      const files = some.map((certificate) => this.#write(certificate));
      const { stdout } = await run('ssh-keygen', ['-Q', '-f', listIn(this.folder), ...files]).catch(
        (error: unknown) => error as { stdout: string },
      );
      const lines = stdout.trim().split('\n');
      found.push(...some.filter((_, index) => !lines[index]?.endsWith(': REVOKED')));
    }
    return found;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.sshd.stop();
    await removeDirectory(this.folder);
  }

  #write(certificate: string): string {
    this.#files += 1;
    const file = join(this.folder, `${this.#files}-cert.pub`);
    writeFileSync(file, `${certificate}\n`);
    return file;
  }
}

const listIn = (folder: string) => join(folder, 'revoked.krl');

async function download(service: FailoverService, folder: string): Promise<void> {
  const response = await fetch(`${service.baseUrl}/v1/credentials/ssh/krl`, {
    headers: { 'x-forwarded-for': newAddress() },
  });
  if (response.status !== 200) throw new Error(`the list was answered ${response.status}`);
  writeFileSync(`${listIn(folder)}.new`, Buffer.from(await response.arrayBuffer()));
  renameSync(`${listIn(folder)}.new`, listIn(folder));
}
