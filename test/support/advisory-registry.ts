import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { resolve } from 'node:path';
import { gunzipSync } from 'node:zlib';

/** An advisory as a registry of npm sends it. */
export interface Advisory {
  readonly id: number;
  readonly url: string;
  readonly title: string;
  readonly severity: string;
  readonly vulnerable_versions: string;
}

const PROGRAMS = resolve(import.meta.dirname, '../../node_modules/.bin');

/** Makes an advisory with this severity that affects all versions below 9. */
export function advisory(severity: string, id: number): Advisory {
  const title = `Reads memory of another request (${severity})`;
  const url = `https://github.com/advisories/GHSA-0000-0000-000${id}`;
  return { id, url, title, severity, vulnerable_versions: '<9' };
}

/**
 * Returns the environment variables for a run of npm that uses a registry, and keeps its own files
 * in the folder `home`.
 */
export function npmEnvironment(home: string, registry: string): Record<string, string> {
  const path = `${PROGRAMS}:${process.env['PATH'] ?? ''}`;
  return { PATH: path, HOME: home, npm_config_registry: registry };
}

/** A stand-in for an npm registry. It answers only the requests of `npm audit` for advisories. */
export interface AdvisoryRegistry {
  readonly url: string;
  /** Returns the packages of the last request for advisories, each with its versions. */
  readonly asked: () => Readonly<Record<string, readonly string[]>>;
  readonly close: () => Promise<void>;
}

/**
 * Starts a registry that has some advisories, by the names of the packages. Every other request
 * gets a 404, as `npm audit` needs nothing else.
 */
export async function startAdvisoryRegistry(
  known: Readonly<Record<string, readonly Advisory[]>>,
): Promise<AdvisoryRegistry> {
  let asked: Record<string, string[]> = {};
  const server = createServer((request, response) => {
    response.setHeader('Content-Type', 'application/json');
    if (request.url !== '/-/npm/v1/security/advisories/bulk') {
      response.writeHead(404).end('{}');
      return;
    }
    const isPacked = request.headers['content-encoding'] === 'gzip';
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks);
      asked = JSON.parse((isPacked ? gunzipSync(body) : body).toString());
      const found = Object.entries(known).filter(([name]) => Object.hasOwn(asked, name));
      response.end(JSON.stringify(Object.fromEntries(found)));
    });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    asked: () => asked,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
