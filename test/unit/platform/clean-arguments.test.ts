import { describe, expect, it } from 'vitest';
import { createLogger } from '../../../src/platform/telemetry/pino-options.js';
import { cleanArguments } from '../../../src/platform/telemetry/clean-arguments.js';

const FORGED = 'claims\n2026-11-22 INFO http: GET /admin 200\u001b[2J\u202e';

describe('the lines of the log', () => {
  const written = (log: (logger: ReturnType<typeof createLogger>) => void) => {
    const lines: string[] = [];
    log(
      createLogger({ format: 'json', filter: 'info' }, { write: (line) => void lines.push(line) }),
    );
    return lines.join('');
  };

  it.each<readonly [string, readonly unknown[]]>([
    ['a message', [FORGED]],
    ['a message behind fields', [{ context: 'errors' }, FORGED]],
    ['the text for a place in a message', ['said: %s', FORGED]],
    ['a field', [{ said: FORGED }, 'bare']],
    ['the name of a field', [{ [FORGED]: 1 }, 'bare']],
    ['a field within fields', [{ claims: [{ [FORGED]: [FORGED] }] }, 'bare']],
    ['the message of an error', [new Error(FORGED)]],
    ['an error in a field', [{ err: new Error(FORGED) }, 'bare']],
  ])('10.4 contain no line break and no control character of %s', (_, args) => {
    const text = written((logger) => logger.info(...(args as [string])));
    const line = JSON.parse(text) as Record<string, unknown>;
    const { stack: _frames, ...error } = (line['err'] ?? {}) as { stack?: string };
    const all = JSON.stringify({ ...line, err: error });
    expect(all).toContain('GET /admin 200');
    expect(all).not.toMatch(/\\n|\\u001b|\u202e/);
  });

  it('10.4 are not copied when they are clean', () => {
    const facts = { context: 'http', nested: { status: 200, list: ['a'] } };
    expect(cleanArguments([facts, 'GET / 200'])[0]).toBe(facts);
  });

  it('10.4 terminate when an object refers to itself', () => {
    const cyclic: Record<string, unknown> = {};
    cyclic['self'] = cyclic;
    expect(JSON.stringify(cleanArguments([cyclic]))).toContain('…');
  });
});
