import { createReadStream, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { Readable } from 'node:stream';
import { serverAddress } from '../files/config-file.js';
import { fileFailure, isMissing } from '../files/private-folder.js';
import { CliFailure, STATUS } from '../program/failure.js';
import { CHECK_NETWORK, networkReason } from '../program/system-errors.js';
import { accepted } from '../server/server-client.js';
import { send } from '../server/transport.js';
import type { Terminal } from '../terminal/terminal.js';

/** The longest time for the list and its signature, and for a file, in milliseconds. */
const TIMEOUTS = { list: 30_000, file: 20 * 60_000 };

/** The path below the origin of a server at which it hands out the files of a release. */
const PATH_OF_SERVER = '/install/files/';

/** A place with the files of a release: a server, a URL or a folder. */
export interface ReleaseSource {
  /** The name of the place, as messages show it. */
  readonly name: string;
  /**
   * Opens a file. Its content is read in parts. The read throws a CliFailure if the content is cut
   * off.
   */
  open(file: string, kind: keyof typeof TIMEOUTS): Promise<AsyncIterable<Uint8Array>>;
}

/** Returns the source of the release files that a server offers. */
export function serverSource(server: string, terminal: Terminal): ReleaseSource {
  return webSource(new URL(PATH_OF_SERVER, server), new URL(server).host, terminal);
}

/**
 * Returns the place that the option `--from` names: a folder of this machine, or a URL.
 *
 * @throws CliFailure with status 2 for a URL that is neither https nor on this machine, or that has
 *   a user, a query or a fragment
 */
export function namedSource(from: string, terminal: Terminal): ReleaseSource {
  if (!/^[a-z][a-z\d+.-]*:\/\//i.test(from)) return folderSource(resolve(from));
  if (!URL.canParse(from)) {
    throw new CliFailure(`${from} is not a URL.`, 'Check the URL.', STATUS.usage);
  }
  const url = new URL(from);
  const { pathname } = url;
  url.pathname = '/';
  serverAddress(url.href);
  return webSource(new URL(pathname.replace(/\/*$/, '/'), url), url.host, terminal);
}

function webSource(base: URL, name: string, terminal: Terminal): ReleaseSource {
  return {
    name,
    async open(file, kind) {
      const url = new URL(file, base).href;
      const headers = { accept: '*/*' };
      const request = { method: 'GET', url, headers, isStreamed: true };
      const answer = await send(async () => request, terminal, TIMEOUTS[kind]);
      if (answer.status === 404) throw notOffered(name, file);
      if (answer.status >= 300 && answer.status < 400) {
        const message = `${name} leads to another URL for ${file}, which svc does not follow.`;
        throw new CliFailure(message, 'Name the other URL by --from, if you trust it.');
      }
      const { parts } = accepted(answer);
      if (!parts) throw notOffered(name, file);
      return whole(parts, new URL(url), file);
    },
  };
}

/**
 * Reads an answer in parts.
 *
 * @throws CliFailure if the connection ends too early
 */
async function* whole(parts: AsyncIterable<Uint8Array>, url: URL, file: string) {
  try {
    yield* parts;
  } catch (error) {
    const [reason] = networkReason(error, url.hostname, '');
    const message = `The download of ${file} was cut off: ${reason}. Nothing was changed.`;
    throw new CliFailure(message, CHECK_NETWORK, STATUS.failed, { cause: error });
  }
}

function folderSource(folder: string): ReleaseSource {
  return {
    name: folder,
    async open(file) {
      const path = join(folder, file);
      try {
        if (!statSync(path).isFile()) throw notOffered(folder, file);
      } catch (error) {
        if (isMissing(error)) throw notOffered(folder, file);
        throw error instanceof CliFailure ? error : fileFailure(path, error);
      }
      return createReadStream(path) satisfies Readable;
    },
  };
}

function notOffered(name: string, file: string): CliFailure {
  const message = `${name} has no file ${file}, so it offers no update.`;
  return new CliFailure(message, 'Ask an admin of your server, or name a folder by --from.');
}

/**
 * Reads a small file of a release.
 *
 * @param most the largest number of bytes
 * @throws CliFailure if the file is larger, is missing, or is cut off
 */
export async function readSmall(
  source: ReleaseSource,
  file: string,
  most: number,
): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const part of await source.open(file, 'list')) {
    size += part.length;
    if (size > most) throw tooLarge(source, file);
    parts.push(part);
  }
  return Buffer.concat(parts);
}

/** Returns the failure for a file that is larger than any file of a release. */
export function tooLarge(source: ReleaseSource, file: string): CliFailure {
  const message = `${file} of ${source.name} is larger than any of a release. Nothing was changed.`;
  return new CliFailure(message, 'Tell an admin of your server.');
}
