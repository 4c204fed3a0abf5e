import { existsSync, mkdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { makeTemporaryDirectory, removeDirectory } from '../../support/temporary-directory.js';

interface Project {
  readonly sources: string;
  readonly outputs: string;
  readonly memory: string;
  readonly kept: readonly string[];
}

const script = new URL('../../../scripts/outputs.js', import.meta.url).href;
const { prepareOutputs } = (await import(script)) as { prepareOutputs: (project: Project) => void };

describe('the build of a changed tree', () => {
  let folder: string;
  let project: Project;
  beforeEach(async () => {
    folder = await makeTemporaryDirectory();
    project = {
      sources: join(folder, 'src'),
      outputs: join(folder, 'dist'),
      memory: join(folder, 'dist/.tsbuildinfo'),
      kept: ['svc.mjs'],
    };
    write('src/a.ts', 'src/deep/b.ts', 'src/declared.d.ts', 'src/deep/README.md');
    write('src/deep/page.eta', 'src/deep/script.js');
    write('dist/a.js', 'dist/a.js.map', 'dist/deep/b.js', 'dist/.tsbuildinfo', 'dist/svc.mjs');
  });
  afterEach(() => removeDirectory(folder));

  const write = (...paths: string[]) => {
    for (const path of paths) {
      mkdirSync(dirname(join(folder, path)), { recursive: true });
      writeFileSync(join(folder, path), path);
    }
  };
  const has = (path: string) => existsSync(join(folder, path));

  it('removes what has no source, and keeps the rest with the memory of the compiler', () => {
    write('dist/gone.js', 'dist/gone.js.map', 'dist/gone.d.ts', 'dist/old/page.eta');
    write('dist/declared.js', 'dist/deep/README.md');
    prepareOutputs(project);
    for (const path of ['gone.js', 'gone.js.map', 'gone.d.ts', 'old/page.eta', 'declared.js']) {
      expect(has(`dist/${path}`), path).toBe(false);
    }
    expect(has('dist/deep/README.md')).toBe(false);
    for (const path of ['a.js', 'a.js.map', 'deep/b.js', '.tsbuildinfo', 'svc.mjs']) {
      expect(has(`dist/${path}`), path).toBe(true);
    }
  });

  it('forgets the memory of the compiler if an output is missing, unless its source is new', () => {
    writeFileSync(project.memory, '{"fileNames":["../src/a.ts","../src/deep/b.ts"]}');
    write('src/new.ts');
    prepareOutputs(project);
    expect(has('dist/.tsbuildinfo')).toBe(true);
    rmSync(join(folder, 'dist/deep/b.js'));
    prepareOutputs(project);
    expect(has('dist/.tsbuildinfo')).toBe(false);
  });

  it('copies an asset that changed, and no README', () => {
    prepareOutputs(project);
    expect(readFileSync(join(folder, 'dist/deep/page.eta'), 'utf8')).toBe('src/deep/page.eta');
    expect(has('dist/deep/script.js')).toBe(true);
    expect(has('dist/deep/README.md')).toBe(false);
    writeFileSync(join(folder, 'src/deep/page.eta'), 'SRC/DEEP/PAGE.ETA');
    const later = new Date(Date.now() + 10_000);
    utimesSync(join(folder, 'src/deep/page.eta'), later, later);
    prepareOutputs(project);
    expect(readFileSync(join(folder, 'dist/deep/page.eta'), 'utf8')).toBe('SRC/DEEP/PAGE.ETA');
  });

  it('makes everything in an empty folder', () => {
    project = { ...project, outputs: join(folder, 'empty'), memory: join(folder, 'empty/.info') };
    prepareOutputs(project);
    expect(has('empty/deep/page.eta')).toBe(true);
  });
});
