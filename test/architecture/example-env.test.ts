import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { PROVIDER_VARIABLES } from '../../src/platform/config/table/providers.js';
import { jsonFormOf } from '../../src/platform/config-sources/json-value.js';
import { VARIABLES } from '../../src/platform/config/table/settings.js';

const text = readFileSync(new URL('../../config/example.env', import.meta.url), 'utf8');
const lines = [...text.matchAll(/^(#?)([A-Z][A-Z0-9_]+)=(.*)$/gm)].map(([, mark, name, value]) => ({
  isSet: mark === '',
  name: name ?? '',
  value: value ?? '',
}));
const PREFIX = 'SVC_IDP_CORP_';
const rowOf = (name: string) =>
  VARIABLES.get(name) ?? PROVIDER_VARIABLES.get(name.replace(PREFIX, ''));

describe('config/example.env', () => {
  it('names every variable of the table, and no other', () => {
    const names = new Set(lines.map(({ name }) => name));
    const known = [
      ...VARIABLES.keys(),
      ...[...PROVIDER_VARIABLES.keys()].map((name) => PREFIX + name),
    ];
    expect(known.filter((name) => !names.has(name))).toEqual([]);
    expect([...names].filter((name) => !known.includes(name))).toEqual([]);
  });

  it('shows values that the service would take, apart from files', () => {
    const isOfFile = (name: string) =>
      name.startsWith('SVC_TLS_') || jsonFormOf(rowOf(name)?.shape) === 'pem';
    const wrong = lines.filter(
      ({ name, value }) =>
        value !== '' && !isOfFile(name) && rowOf(name)?.shape.safeParse(value).success !== true,
    );
    expect(wrong).toEqual([]);
  });

  it('sets no secret', () => {
    const secrets = lines.filter(({ isSet, name }) => isSet && rowOf(name)?.isSecret === true);
    expect(secrets.filter(({ value }) => value !== '')).toEqual([]);
  });
});
