import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { reachableFrom, readSource } from './import-graph.js';

const ROOT = resolve(import.meta.dirname, '../..');

/**
 * The numbered lists in documents that name the files a request passes. Each has its document, the
 * beginning of its title, and the largest number of files.
 */
const PATHS: readonly (readonly [document: string, title: string, most: number])[] = [
  ['src/features/README.md', '### `DELETE /scim/v2/Users/{id}`', 7],
  ['src/features/README.md', '### `POST /v1/credentials/ssh`', 6],
  ['src/features/README.md', '### `POST /oauth/token`', 8],
  ['src/features/README.md', '### `GET /admin/members`', 5],
  ['packages/svc/src/README.md', '**What `svc ssh check` passes**', 7],
];

/** Returns the files in the first numbered list after a title. */
function stopsBelow(text: string, title: string): string[] {
  const lines = text.slice(text.indexOf(title)).split('\n');
  const first = lines.findIndex((line) => line.startsWith('1. '));
  const list = lines.slice(first);
  // an item of the list may have several lines
  const end = list.findIndex((line) => !/^(?:\d+\. | +\S)/.test(line));
  const entries = list.slice(0, end).filter((line) => !line.startsWith(' '));
  return entries.flatMap((line) => /^\d+\. `([^`]+)`:/.exec(line)?.[1] ?? line);
}

/**
 * Returns the files of a list that its first file does not import, directly or through other files.
 */
function strangers(stops: readonly string[]): string[] {
  const [entry = ''] = stops;
  const reached = reachableFrom(entry);
  return stops.filter((stop) => !reached.has(stop));
}

/**
 * Returns the files of a list that are not connected in it. No file before them imports them, and
 * they do not import the next one.
 */
function astray(stops: readonly string[]): string[] {
  const imports = (from: string | undefined, to: string | undefined) =>
    from !== undefined && to !== undefined && readSource(from).imports.includes(to);
  return stops.filter((stop, n) => {
    const isImported = stops.slice(0, n).some((earlier) => imports(earlier, stop));
    return n > 0 && !isImported && !imports(stop, stops[n + 1]);
  });
}

describe('the paths of a request', () => {
  it.each(PATHS)('%s: %s has %i files at most, each of which the route reaches', (...path) => {
    const [document, title, most] = path;
    const text = readFileSync(resolve(ROOT, document), 'utf8');
    expect(text).toContain(title);
    const stops = stopsBelow(text, title);
    expect(stops.length).toBeGreaterThan(2);
    expect(stops.length).toBeLessThanOrEqual(most);
    expect(strangers(stops)).toEqual([]);
  });

  it('of `svc ssh check` goes from file to file by imports', () => {
    const [document = '', title = ''] = PATHS.at(-1) ?? [];
    const stops = stopsBelow(readFileSync(resolve(ROOT, document), 'utf8'), title);
    expect(astray(stops)).toEqual([]);
  });

  it('sees a file that is on no path of imports', () => {
    const [main, certificate] = ['main.ts', 'ssh/host-certificate.ts'].map(
      (name) => `packages/svc/src/${name}`,
    ) as [string, string];
    expect(astray([main, certificate])).toEqual([certificate]);
  });

  it('sees a file that the route does not reach', () => {
    const text = '### A\n\n1. `src/main.ts`: starts.\n2. `src/gone.ts`: is gone.\n\nThe end.';
    expect(strangers(stopsBelow(text, '### A'))).toEqual(['src/gone.ts']);
  });
});
