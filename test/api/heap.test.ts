import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';
import { runScript } from '../support/child-script.js';
import type { HeapGrowthAnswer } from '../support/heap-growth.js';

const MIB = 1024 ** 2;

let measured: HeapGrowthAnswer;
/** Runs a process that puts load on its heap, and keeps what it measured. */
beforeAll(async () => {
  const script = runScript<HeapGrowthAnswer>('heap-growth.ts', {});
  measured = await script.answer;
  await script.finish();
});

describe('the young generation of the heap', () => {
  it('is large after a load, small once its memory is given back, and large again', () => {
    const { loaded, idle, again } = measured;
    expect(loaded).toBeGreaterThan(32 * MIB);
    expect(idle).toBeLessThan(8 * MIB);
    expect(again).toBeGreaterThan(32 * MIB);
  });
});

describe('the compiled code of functions', () => {
  it('is dropped after the start, and later kept through a collection', () => {
    const { code, functions } = measured;
    expect(functions).toEqual([5000, 5000]);
    expect(code.idle).toBeLessThan(code.loaded / 2);
    expect(code.later).toBeGreaterThan(code.called / 4);
  });

  it('is dropped after as many collections as V8 needs by default', async () => {
    const { stdout } = await promisify(execFile)(process.execPath, ['--v8-options']);
    expect(stdout).toMatch(
      /--bytecode-old-age \(.*\)\s+type: int\s+default: --bytecode-old-age=6$/m,
    );
  });
});
