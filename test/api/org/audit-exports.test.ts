import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.js';
import { newAddress, type Answer, type Client } from '../../support/client.js';
import { cellsOf } from '../../support/csv.js';
import { rows } from '../../support/rows.js';

let app: TestApp;
let ada: Client;
let org: string;
beforeAll(async () => {
  app = await startTestApp();
  ({ client: ada } = await app.enrolled('ada@export.example'));
  const [row] = await rows<{ org_id: string }>(
    app.dataSource,
    "SELECT org_id FROM users WHERE email = 'ada@export.example'",
  );
  org = row?.org_id ?? '';
});
afterAll(() => app.close());

const read = (query: string, accept?: string): Promise<Answer> =>
  ada.get(`/api/v1/org/audit-events${query}`, {
    address: newAddress(),
    ...(accept === undefined ? {} : { headers: { accept } }),
  });

const FORMULAS = [
  '=HYPERLINK("https://evil.example")',
  '+1+cmd|calc',
  '-2+3',
  '@SUM(A1)',
  '\t=1',
  '\r=1',
  ' =1+1',
  '\n=1',
  '＝1+1',
];

describe('an export of the audit log that was cut off', () => {
  it('goes on with the other events of the last millisecond', async () => {
    const ids = [randomUUID(), randomUUID(), randomUUID()].toSorted().toReversed();
    await rows(
      app.dataSource,
      `INSERT INTO audit_events (id, type, class, org_id, created_at)
       SELECT unnest($1::uuid[]), 'logout', 'auth', $2, '2026-04-01T00:00:00.123456Z'`,
      [ids, org],
    );
    const lines = async (query: string) =>
      (await read(`?format=ndjson&from=2026-04-01T00:00:00Z${query}`)).text
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as { id: string; created_at: string });
    const [last] = await lines('&to=2026-04-02T00:00:00Z&limit=1');
    expect(last?.id).toBe(ids[0]);
    const to = new Date(Date.parse(last?.created_at ?? '') + 1).toISOString();
    expect((await lines(`&to=${to}`)).map(({ id }) => id)).toEqual(ids);
  });
});

describe('the export of the audit log as CSV', () => {
  it('has every event of the table, in its order, each with all columns', async () => {
    await rows(
      app.dataSource,
      `INSERT INTO audit_events (id, type, class, org_id, created_at, subject_email, user_agent, details)
       SELECT gen_random_uuid(), 'logout', 'auth', $1, '2026-05-01T00:00:00Z'::timestamptz + n * interval '1 second',
              'user-' || n || '@export.example', E'a "browser",\\r\\nof two lines', jsonb_build_object('n', n)
       FROM generate_series(1, 1203) AS n`,
      [org],
    );
    const expected = await rows<{ id: string; type: string; subject_email: string | null }>(
      app.dataSource,
      'SELECT id, type, subject_email FROM audit_events WHERE org_id = $1 ORDER BY created_at DESC, id DESC',
      [org],
    );
    for (const answer of [await read('?format=csv'), await read('', 'text/csv')]) {
      expect(answer.status).toBe(200);
      expect(answer.headers.get('content-type')).toMatch(/^text\/csv/);
      expect(answer.headers.get('content-disposition')).toBe('attachment; filename="audit.csv"');
      const [header = [], ...lines] = cellsOf(answer.text);
      const column = (name: string) => lines.map((line) => line[header.indexOf(name)]);
      expect(new Set(lines.map((line) => line.length))).toEqual(new Set([header.length]));
      expect(column('id')).toEqual(expected.map(({ id }) => id));
      expect(column('type')).toEqual(expected.map(({ type }) => type));
      expect(column('subject')).toEqual(expected.map((event) => event.subject_email ?? ''));
      expect(column('browser')).toContain('a "browser",\r\nof two lines');
    }
    const lines = (await read('?format=ndjson')).text.trim().split('\n');
    expect(lines.map((line) => (JSON.parse(line) as { id: string }).id)).toEqual(
      expected.map(({ id }) => id),
    );
  });

  it.each(FORMULAS)('gives a spreadsheet no formula in any column: %j', async (text) => {
    const id = randomUUID();
    const request = randomUUID();
    await rows(
      app.dataSource,
      `INSERT INTO audit_events (id, type, class, org_id, subject_email, actor_email, client_name, user_agent, request_id, details)
       VALUES ($1, 'logout', 'auth', $2, $3, $3, $3, $3, $4, jsonb_build_object('x', $3::text))`,
      [id, org, text, request],
    );
    const [, line = []] = cellsOf((await read(`?format=csv&request=${request}`)).text);
    expect(line).toContain(id);
    expect(line.filter((cell) => /^\s*[=+\-@]/.test(cell) || /^[\t\r\n]/.test(cell))).toEqual([]);
    expect(line.filter((cell) => cell === `'${text}`)).toHaveLength(4);
  });

  it('gives no formula to a spreadsheet that divides lines by semicolons', async () => {
    const browser = "Mozilla/5.0 (X11; Linux);=cmd|' /C calc'!A0; +1;@SUM(A1)\r\n=2";
    await rows(
      app.dataSource,
      `INSERT INTO audit_events (id, type, class, org_id, user_agent, request_id, details)
       VALUES (gen_random_uuid(), 'logout', 'auth', $1, $2, 'divided', '{}')`,
      [org, browser],
    );
    const { text } = await read('?format=csv&request=divided');
    const line = text.slice(text.indexOf('\r\n') + 2);
    expect(line.split(/[;\r\n]/).filter((cell) => /^\s*[=+\-@]/.test(cell))).toEqual([]);
    expect(line).toContain('(X11; Linux)');
  });

  it('is JSON where the format says so, against the client’s preference', async () => {
    const answer = await read('?format=json&limit=1', 'text/csv');
    expect(answer.json.events).toHaveLength(1);
  });
});
