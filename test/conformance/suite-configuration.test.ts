import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.js';

/** The page that describes how the suite is run. */
const PAGE = readFileSync(new URL('../../docs/conformance.md', import.meta.url), 'utf8');

const TOKEN = 'a token that only the suite of tests knows';
const OP = 'https://op.example.com';
const SUITE = 'https://suite.example.com';

interface Task {
  readonly task: string;
  readonly match: string;
  readonly optional?: boolean;
  readonly commands: readonly (readonly (string | number)[])[];
}

/** The configuration of the suite's browser on that page. */
const { browser } = JSON.parse(/```json\n([^]*?)```/.exec(PAGE)?.[1] ?? '') as {
  browser: readonly { readonly match: string; readonly tasks: readonly Task[] }[];
};

/** The rule of the suite: `*` matches any text, in the whole address. */
function matches(pattern: string, url: string): boolean {
  const parts = pattern.split('*').map((part) => part.replace(/[\\^$.|?+()[\]{}]/g, '\\$&'));
  return new RegExp(`^${parts.join('.*')}$`).test(url);
}

/** Returns the tasks of the suite at an address, in order. */
function tasksAt(url: string, start = `${OP}/oauth/authorize?client_id=x`): string[] {
  const entry = browser.find(({ match }) => matches(match, start));
  return (entry?.tasks ?? []).filter(({ match }) => matches(match, url)).map(({ task }) => task);
}

describe('the configuration of the conformance suite', () => {
  let app: TestApp;
  beforeAll(async () => {
    app = await startTestApp({ environment: { SVC_CERTIFICATION_TEST_TOKEN: TOKEN } });
  });
  afterAll(() => app.close());

  it('10.16 does not take an error page of the service for an arrival at the client', () => {
    const callback = `${SUITE}/test/a/svc/callback`;
    const refused = `${OP}/oauth/authorize?client_id=x&redirect_uri=${callback}`;
    expect(tasksAt(refused)).toEqual(['See the error page']);
    expect(tasksAt(`${callback}?code=x&state=y`)).toEqual(['Arrive']);
    expect(tasksAt(`${OP}/login?redirect_to=%2Finteraction%2Fx`)).toEqual(['Log in']);
  });

  it('10.16 lets every task be skipped, since a module may end at any point', () => {
    for (const { tasks } of browser) {
      for (const { task, optional } of tasks) expect([task, optional]).toEqual([task, true]);
    }
  });

  it('10.16 finds the elements of its commands on the pages of the service', async () => {
    const login = await app.client().get('/login?interaction=x');
    expect(login.text).toContain('id="complete-login-token"');
    expect(login.text).toContain('action="/certification/complete-login"');
    const error = await app.client().get('/oauth/authorize?client_id=unknown&response_type=code');
    expect(/<main[^]*Reference:[^]*<\/main>/.test(error.text)).toBe(true);
    const logout = await app.client().get('/oauth/logout');
    expect(/<form data-end-session[^]*<button/.test(logout.text)).toBe(true);
  });

  it('10.16 lists no plan that cannot pass', () => {
    const plans = [...PAGE.matchAll(/^\| `([a-z0-9-]+-test-plan)`/gm)].map(([, plan]) => plan);
    expect(plans).toHaveLength(5);
    expect(plans).not.toContain('oidcc-dynamic-certification-test-plan');
    for (const variant of ['plain_oauth', 'fapi_client_credentials_grant', 'unsigned']) {
      expect(PAGE).toContain(`\`${variant}\``);
    }
    expect(PAGE).toContain('## Warnings that are expected');
  });
});
