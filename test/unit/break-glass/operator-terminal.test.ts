import { PassThrough } from 'node:stream';
import { afterEach, expect, it, vi } from 'vitest';
import { surroundingsOfProcess } from '../../../src/break-glass/ground.js';
import { terminalOf } from '../../../src/break-glass/operator/terminal.js';

afterEach(() => vi.restoreAllMocks());

const HOSTILE = '\u001b[2J\u009b31m\u202eadmin\u2066\u2028\u0007\u{e0041}\ud800';

it('a hostile name moves no cursor of the operator, and a JSON document keeps the name', () => {
  let written = '';
  const keep = (chunk: unknown) => {
    written += String(chunk);
    return true;
  };
  vi.spyOn(process.stdout, 'write').mockImplementation(keep);
  vi.spyOn(process.stderr, 'write').mockImplementation(keep);
  surroundingsOfProcess.terminal.say(HOSTILE);
  surroundingsOfProcess.terminal.print(JSON.stringify({ name: HOSTILE }, undefined, 2));
  vi.restoreAllMocks();
  expect(written).not.toMatch(/[^\P{C}\n]/u);
  const document: unknown = JSON.parse(written.slice(written.indexOf('{')));
  expect(document).toEqual({ name: HOSTILE });
});

it('the answer to a secret question is not shown while it is typed', async () => {
  const stdin = Object.assign(new PassThrough(), { isTTY: true });
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  const answer = terminalOf({ stdin, stdout, stderr }).askSecretly('The client secret: ');
  stdin.write('hidden-word\r');
  expect(await answer).toBe('hidden-word');
  expect(stdout.read()).toBeNull();
  expect(String(stderr.read())).toBe('The client secret: \n');
});
