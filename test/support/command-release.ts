import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { gzipSync } from 'node:zlib';
import { rolldown } from 'rolldown';

const COMMAND = resolve(import.meta.dirname, '../../packages/svc');

/** A version that no release has. The tests replace it in the text of the bundled command. */
const PLACEHOLDER = '0.7707.0';

interface BundleConfiguration {
  readonly transform: { readonly define: Readonly<Record<string, string>> };
  readonly output: { readonly file: string };
}

/**
 * The maintainers who sign releases in a test. Their folder has the signing key, which ssh-keygen
 * made.
 */
export class Maintainers {
  private constructor(
    readonly folder: string,
    /** The text of the command, with {@link PLACEHOLDER} as its version. */
    private readonly text: string,
  ) {}

  /** Makes a key, and bundles a command that trusts the key. */
  static async create(folder: string): Promise<Maintainers> {
    mkdirSync(folder, { recursive: true });
    const key = makeKey(folder, 'release');
    const script = new URL('../../packages/svc/rolldown.config.js', import.meta.url).href;
    const { default: config } = (await import(script)) as { default: BundleConfiguration };
    const define = {
      SVC_VERSION: JSON.stringify(PLACEHOLDER),
      SVC_RELEASE_KEYS: JSON.stringify([key]),
    };
    const bundle = await rolldown({
      ...config,
      cwd: COMMAND,
      transform: { ...config.transform, define },
    });
    const file = join(folder, 'svc.mjs');
    await bundle.write({ ...config.output, file });
    await bundle.close();
    return new Maintainers(folder, readFileSync(file, 'utf8'));
  }

  /** Returns the script of the command in a version. It trusts the key of these maintainers. */
  script(version: string): string {
    return this.text.replaceAll(PLACEHOLDER, version);
  }

  /** The line of the signing key for the allowed-signers file of ssh-keygen. */
  get allowedSigner(): string {
    const key = readFileSync(join(this.folder, 'release.pub'), 'utf8').trim();
    return `release@svc-server namespaces="file" ${key}\n`;
  }

  /**
   * Writes a release into a folder: the given files, a list of their hashes, and a signature of the
   * list. Returns the folder.
   *
   * @param how the faults of the release: a changed text of the list, another key, or another
   * namespace of the signature
   */
  release(
    folder: string,
    files: Readonly<Record<string, string | Buffer>>,
    how: {
      readonly list?: (list: string) => string;
      readonly key?: string;
      readonly namespace?: string;
    } = {},
  ): string {
    mkdirSync(folder, { recursive: true });
    for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content);
    const lines = Object.entries(files).map(([name, content]) => `${sha256(content)}  ${name}\n`);
    const list = join(folder, 'SHA256SUMS');
    writeFileSync(list, (how.list ?? ((text: string) => text))(lines.join('')));
    rmSync(`${list}.sig`, { force: true });
    const key = join(this.folder, how.key ?? 'release');
    const args = ['-Y', 'sign', '-q', '-n', how.namespace ?? 'file', '-f', key, list];
    execFileSync('ssh-keygen', args, { stdio: 'ignore' });
    return folder;
  }

  /** Writes a release that has only the script of a version, and returns its folder. */
  releaseOf(folder: string, version: string, how?: Parameters<Maintainers['release']>[2]): string {
    return this.release(folder, { [`svc-${version}.mjs`]: this.script(version) }, how);
  }
}

/** Makes a key by ssh-keygen in a folder, and returns the line of its `.pub` file. */
export function makeKey(folder: string, name: string): string {
  const path = join(folder, name);
  execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', '', '-f', path]);
  return readFileSync(`${path}.pub`, 'utf8').trim();
}

/**
 * Returns a small stand-in for the executable of a version, compressed by gzip. It only prints its
 * version.
 */
export function standIn(version: string): Buffer {
  return gzipSync(`#!/bin/sh\necho 'svc ${version}'\n`);
}

const sha256 = (content: string | Buffer) => createHash('sha256').update(content).digest('hex');
