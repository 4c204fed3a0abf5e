import { SoftwareKey } from '@svc/stand-ins/software-key';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { TEXT_OUTPUT } from '../src/console-output.js';
import { inviteVisitors } from '../src/running-demo.js';

const baseUrl = 'http://localhost:3000';

/** Invites visitors to a demo, and returns what was printed. */
async function invited(provider: string | undefined, problem: string | undefined): Promise<string> {
  const printed: string[] = [];
  const print = (text: unknown) => printed.push(String(text)) > 0;
  vi.spyOn(process.stdout, 'write').mockImplementation(print);
  vi.spyOn(process.stderr, 'write').mockImplementation(print);
  const parts = { baseUrl, dataDir: '/data', command: '/svc.mjs', vendor: new SoftwareKey() };
  const acts = { prepareTour: () => Promise.resolve(problem), close: () => Promise.resolve() };
  await inviteVisitors({ ...parts, ...acts, provider }, TEXT_OUTPUT);
  return printed.join('');
}

describe('the instructions for visitors', () => {
  afterEach(() => {
    vi.restoreAllMocks();
  });

  it('lead to the tour', async () => {
    expect(await invited('demo', undefined)).toContain(`${baseUrl}/demo\n`);
  });

  it.each([
    ['could not be prepared', 'demo', 'The tour could not be prepared: no disk.'],
    ['needs the provider that the environment replaces', undefined, undefined],
  ])('lead to the service alone if the tour %s', async (_, provider, problem) => {
    const text = await invited(provider, problem);
    expect(text).toContain(`${baseUrl}\n`);
    expect(text).toContain('/data');
    expect(text).not.toContain('/demo');
    if (problem !== undefined) expect(text).toContain(problem);
  });
});
