import { describe, expect, it } from 'vitest';
import { lineOfUnstarted } from '../src/child/child.js';
import { isSentToChild } from '../src/child/signals.js';

const systemError = (code: string) => Object.assign(new Error(`spawn ${code}`), { code });

describe('a program that cannot be started', () => {
  it.each([
    ['ENOENT', 'linux', 'it was not found.'],
    ['E2BIG', 'linux', 'the arguments are too long.'],
    ['ENOENT', 'win32', 'it was not found; A .cmd or .bat file needs: -- cmd /c NAME'],
    ['EINVAL', 'win32', 'the system refuses it; A .cmd or .bat file needs: -- cmd /c NAME'],
  ] as const)('is told in one line: %s on %s', (code, platform, reason) => {
    const line = lineOfUnstarted('npm', systemError(code), platform);
    expect(line).toBe(`npm cannot be run: ${reason}`);
  });
});

describe('a signal to svc on Windows', () => {
  it.each([
    ['SIGINT', true],
    ['SIGTERM', false],
    ['SIGHUP', false],
  ] as const)('%s comes from the console, which sends it to the program too: %s', (signal, is) => {
    expect(isSentToChild(signal, 'win32')).toBe(is);
  });
});
