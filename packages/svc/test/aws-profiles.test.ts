import { describe, expect, it } from 'vitest';
import { profilesBlock } from '../src/aws/profiles.js';

const NOTE = {
  prod: { server: 'https://login.example.com', role: 'arn:aws:iam::111122223333:role/prod' },
};
const lineFor = (program: string, platform: NodeJS.Platform) =>
  profilesBlock(program, NOTE, platform).lines.find((line) => line.includes('process'));

describe('the profile of svc setup aws', () => {
  it.each([
    ['/usr/bin/svc', 'linux', '/usr/bin/svc aws'],
    ['/Users/Ada L/bin/svc', 'darwin', '"/Users/Ada L/bin/svc" aws'],
    [String.raw`C:\Users\Ada L\svc.exe`, 'win32', String.raw`"C:\Users\Ada L\svc.exe" aws`],
    [
      String.raw`C:\Program Files (x86)\svc.exe`,
      'win32',
      String.raw`"C:\Program Files (x86)\svc.exe" aws`,
    ],
  ] as const)('runs %s on %s', (program, platform, words) => {
    expect(lineFor(program, platform)).toContain(`credential_process = ${words}`);
  });

  it.each([
    [String.raw`/home/a\b/svc`, 'linux'],
    ['/home/$USER/svc', 'linux'],
    [String.raw`C:\100%\svc.exe`, 'win32'],
    [String.raw`C:\a&b\svc.exe`, 'win32'],
    ['C:\\svc\\', 'win32'],
  ] as const)('refuses %s on %s, which some SDK would read in another way', (program, platform) => {
    expect(() => lineFor(program, platform)).toThrow('The AWS tools cannot run');
  });
});
