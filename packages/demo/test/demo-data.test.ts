import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { StoredData } from '../src/demo-data.js';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'svc-demo-data-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

describe('the stored data of the demo', () => {
  it('make a root secret of their own in each first run', () => {
    const [first, second] = [new StoredData(folder), new StoredData(folder)];
    expect(first.current.rootSecret).toHaveLength(43);
    expect(first.current.rootSecret).not.toBe(second.current.rootSecret);
  });

  it('are read by the next run, from a file that only its owner can read', () => {
    const data = new StoredData(folder);
    data.write({ scimToken: 'a token' });
    data.write({ identityProviderPort: 4001 });
    expect(new StoredData(folder).current).toEqual(data.current);
    expect(data.current).toMatchObject({ scimToken: 'a token', identityProviderPort: 4001 });
    expect(statSync(join(folder, 'demo.json')).mode & 0o777).toBe(0o600);
  });

  it('are refused if the file is damaged, and the file stays', () => {
    writeFileSync(join(folder, 'demo.json'), '{"rootSecret":1}');
    expect(() => new StoredData(folder)).toThrow(`remove ${folder} to start again`);
    expect(readFileSync(join(folder, 'demo.json'), 'utf8')).toBe('{"rootSecret":1}');
  });
});
