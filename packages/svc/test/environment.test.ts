import { afterEach, describe, expect, it, vi } from 'vitest';
import { ignoreCurrentFolder, variable } from '../src/program/environment.js';

const NAME = 'NoDefaultCurrentDirectoryInExePath';

describe('the search for programs', () => {
  afterEach(() => vi.unstubAllEnvs());

  it.each([
    ['win32', '1'],
    ['linux', undefined],
    ['darwin', undefined],
  ] as const)('on %s the variable that leaves out the current folder is %s', (platform, value) => {
    vi.stubEnv(NAME, undefined);
    ignoreCurrentFolder(platform);
    expect(variable(NAME)).toBe(value);
  });
});
