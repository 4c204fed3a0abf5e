import { describe, expect, it } from 'vitest';
import { textOf } from '../../../src/platform/telemetry/output/text-lines.js';

const time = new Date(2026, 10, 23, 9, 5, 7, 42).toISOString();

describe('the log as text', () => {
  it('has the local time, the level, the target, the message and the other fields in one line', () => {
    const line = { level: 'info', time, context: 'http', msg: 'GET /x 200', ms: 3 } as const;
    const repeated = { method: 'GET', route: '/x', status: 200 };
    expect(textOf({ ...line, ...repeated }, false)).toBe(
      '[09:05:07.042] INFO: http: GET /x 200 {"ms":3}\n',
    );
    expect(textOf({ level: 'warn', time, msg: 'bare' }, false)).toBe('[09:05:07.042] WARN: bare\n');
  });

  it('shows an error with its code, stack and causes below the line', () => {
    const cause = { type: 'TypeError', message: 'why', stack: '    at b (b.js:2)' };
    const err = { type: 'Error', message: 'what', code: 'E1', stack: '    at a (a.js:1)', cause };
    expect(textOf({ level: 'error', time, msg: 'failed', err }, false)).toBe(
      '[09:05:07.042] ERROR: failed\n' +
        '    Error: what (E1)\n' +
        '        at a (a.js:1)\n' +
        '    caused by TypeError: why\n' +
        '        at b (b.js:2)\n',
    );
    expect(textOf({ level: 'error', time, msg: 'failed', err: 'string' }, false)).toBe(
      '[09:05:07.042] ERROR: failed\n    string\n',
    );
  });

  it('breaks no line for a field that holds a line break', () => {
    const line = textOf({ level: 'info', time, msg: 'x', name: 'a\nFORGED' }, false);
    expect(line.split('\n')).toHaveLength(2);
  });

  it('has colors only for a terminal', () => {
    const line = { level: 'info', time, msg: 'x' } as const;
    expect(textOf(line, true)).toContain('\u001b[32mINFO\u001b[39m');
    expect(textOf(line, false)).not.toContain('\u001b');
  });
});
