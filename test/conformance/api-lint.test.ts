import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { partOf, previewDocument } from '../support/preview-document.js';
import { API_LINT, requires } from '../support/programs.js';
import { SCALE } from '../support/scale.js';
import { makeTemporaryDirectory, removeDirectory } from '../support/temporary-directory.js';

requires('redocly', 'spectral').describe('the OpenAPI document', () => {
  let folder: string;

  beforeAll(async () => {
    folder = await makeTemporaryDirectory();
    const whole = await previewDocument();
    const document = SCALE === 'full' ? whole : partOf(whole, 'Programs');
    writeFileSync(join(folder, 'openapi.json'), JSON.stringify(document));
    // A small document with one fault for each linter. A linter that reports nothing about it did
    // not run.
    const { contact: _, ...info } = whole.info;
    const small = partOf(whole, 'Re-enrollment passes');
    const wrong = { ...small, info, servers: [{ url: 'https://example.com' }] };
    writeFileSync(join(folder, 'wrong.json'), JSON.stringify(wrong));
    writeFileSync(join(folder, 'rules.json'), '{"extends":["spectral:oas"]}');
  });

  afterAll(() => removeDirectory(folder));

  /** Runs a linter on a file, and returns what it finds as JSON. */
  function findingsOf(program: string, args: readonly string[]): unknown {
    const { stdout, stderr } = spawnSync(process.execPath, [join(API_LINT, program), ...args], {
      cwd: folder,
      encoding: 'utf8',
      maxBuffer: 64 * 1024 * 1024,
      env: { HOME: folder, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' },
    });
    const start = stdout.search(/[[{]/);
    if (start < 0) throw new Error(`${program} wrote no JSON: ${stdout} ${stderr}`);
    return JSON.parse(stdout.slice(start));
  }

  const redocly = (file: string) => {
    const args = ['lint', file, '--format=json'];
    const { problems } = findingsOf('@redocly/cli/bin/cli.js', args) as {
      readonly problems: readonly { readonly ruleId: string; readonly message: string }[];
    };
    return problems.map(({ ruleId, message }) => `${ruleId}: ${message}`);
  };

  const spectral = (file: string) => {
    const args = ['lint', file, '--ruleset', 'rules.json', '--format', 'json', '--quiet'];
    const found = findingsOf('@stoplight/spectral-cli/dist/index.js', args) as readonly {
      readonly code: string;
      readonly path: readonly string[];
    }[];
    return found.map(({ code, path }) => `${code}: ${path.join('.')}`);
  };

  it('has no finding of Redocly with its recommended rules', () => {
    expect(redocly('openapi.json')).toEqual([]);
    if (SCALE === 'full')
      expect(redocly('wrong.json')).toEqual([expect.stringContaining('no-server-example.com')]);
  });

  it('has no finding of Spectral with its rules for OpenAPI', () => {
    expect(spectral('openapi.json')).toEqual([]);
    if (SCALE === 'full') expect(spectral('wrong.json')).toContainEqual('info-contact: info');
  });
});
