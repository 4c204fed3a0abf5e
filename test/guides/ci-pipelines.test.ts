import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import type { EnrolledUser, TestApp } from '../support/app.js';
import { newAddress } from '../support/client.js';
import { guideBlock } from '../support/guide.js';
import { PublicName } from '../support/public-name.js';
import { count } from '../support/rows.js';
import { SvcHome } from '../support/svc-command.js';
import '../support/full-scale-only.js';

const ADA = 'ada@ci-guide.example';
/** Selects the sessions that were opened by a device code. */
const OF_JOBS = "sessions WHERE client_id = 'svc-cli'";

describe('the step of a pipeline in the guide', () => {
  let name: PublicName;
  let app: TestApp;
  let ada: EnrolledUser;
  let home: SvcHome;
  beforeAll(async () => {
    name = await PublicName.open();
    app = await name.startApp({ environment: { SVC_DEVICE_POLL_INTERVAL: '1' } });
    ada = await app.enrolled(ADA);
  });
  afterAll(async () => {
    await app.close();
    await name.close();
  });
  beforeEach(async () => {
    home = await SvcHome.create();
  });
  afterEach(() => home.remove());

  /**
   * Runs the guide's lines as a job of a pipeline. A user approves or denies the code in its log.
   */
  async function runJob(lines: string, answer: 'approve' | 'deny') {
    const child = spawn('bash', ['-euo', 'pipefail', '-c', lines], {
      env: { ...home.env, ...name.env, RUNNER_TEMP: home.path },
    });
    let log = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => (log += text));
    }
    const ended = once(child, 'close') as Promise<[number | null]>;
    const code = await vi.waitUntil(() => /^ {2}([A-Z]{4}-[A-Z]{4})$/m.exec(log)?.[1], {
      timeout: 30_000,
      interval: 20,
    });
    await ada.client.logIn(ada.key, { address: newAddress() });
    const { status } = await ada.client.post(
      `/device/${answer}`,
      { user_code: code },
      { address: newAddress() },
    );
    expect(status).toBeLessThan(300);
    const [exit] = await ended;
    return { status: exit, log };
  }

  const job = () => guideBlock('ci-pipelines.md', 'job');

  /** Returns the guide's check of the approver, with this e-mail address on its list. */
  const approver = (address: string) =>
    guideBlock('ci-pipelines.md', 'approver', {
      'ada@example\\.com': address.replaceAll('.', '\\.'),
    });

  it('waits for the touch of a person on the list, gets a certificate, and logs out', async () => {
    const [logIn = '', rest = ''] = job().split('svc status\n');
    const { status, log } = await runJob(`${logIn}${approver(ADA)}svc status\n${rest}`, 'approve');
    expect(status, log).toBe(0);
    expect(log).toContain(`Logged in as ${ADA}`);
    expect(log).toContain(`Logged out of ${app.baseUrl}.`);
    expect(await count(app.dataSource, 'ssh_certificates')).toBe(1);
    expect(await count(app.dataSource, OF_JOBS)).toBe(0);
  });

  it('does nothing for a person who is not on the list, and logs out', async () => {
    const [logIn = '', rest = ''] = job().split('svc status\n');
    const { status, log } = await runJob(`${logIn}${approver('bob@x.example')}${rest}`, 'approve');
    expect(status, log).toBe(1);
    expect(await count(app.dataSource, 'ssh_certificates')).toBe(1);
    expect(await count(app.dataSource, OF_JOBS)).toBe(0);
  });

  it('ends with status 4 when the person refuses, before the next line', async () => {
    const before = await count(app.dataSource, 'ssh_certificates');
    const { status, log } = await runJob(job(), 'deny');
    expect(status, log).toBe(4);
    expect(log).toContain('The login was refused in the browser.');
    expect(await count(app.dataSource, 'ssh_certificates')).toBe(before);
  });
});
