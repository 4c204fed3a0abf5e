import { afterAll, beforeAll, expect, it } from 'vitest';
import { PolledSignals } from '../../../src/domain/oauth/shared-signals/polled-signals.service.js';
import { SignalSender } from '../../../src/domain/oauth/shared-signals/signal-sender.service.js';
import { SignalTokens } from '../../../src/domain/oauth/shared-signals/signal-tokens.service.js';
import { TokenSigningKeys } from '../../../src/domain/oauth/token-signing/token-signing-keys.service.js';
import { OutboundHttp } from '#platform/outbound/outbound-http.service.js';
import { systemRandom } from '#platform/clock/random.js';
import { startTestApp, type TestApp } from '../../support/app.js';
import { MovableClock } from '../../support/movable-clock.js';
import { rows } from '../../support/rows.js';
import { createStream, newProgram } from '../../support/signal-streams.js';

const NEW = 'the root secret after the change';
const HEADER = 'Bearer of-the-receiver';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

it('the header of a stream is sealed again within five minutes where a replica of before sealed it after the start', async () => {
  const { client } = await app.enrolled('ada@rotated-signals.example');
  const program = await newProgram(app, client);
  const streamId = await createStream(program);
  const { dataSource, nest, config } = app;
  const signing = nest.get<TokenSigningKeys>(TokenSigningKeys, { strict: false });
  const tokensOf = (secrets: typeof config.secrets) =>
    new SignalTokens({ http: config.http, secrets }, dataSource, signing);
  const before = await tokensOf(config.secrets).sealHeader(HEADER);
  const keep = () =>
    rows(dataSource, 'UPDATE signal_streams SET authorization_sealed = $2 WHERE id = $1', [
      streamId,
      before,
    ]);
  const sealed = async () =>
    (
      await rows<{ sealed: string }>(
        dataSource,
        'SELECT authorization_sealed AS sealed FROM signal_streams WHERE id = $1',
        [streamId],
      )
    )[0]?.sealed ?? '';
  await keep();
  const clock = new MovableClock();
  const sender = new SignalSender(
    dataSource,
    tokensOf({ ...config.secrets, root: NEW, previousRoot: config.secrets.root }),
    nest.get(PolledSignals, { strict: false }),
    nest.get(OutboundHttp, { strict: false }),
    clock,
    systemRandom,
  );
  sender.onApplicationBootstrap();
  await expect.poll(sealed).not.toBe(before);

  await keep();
  clock.advance(300_000);
  sender.wake();
  await expect.poll(sealed).not.toBe(before);
  const alone = tokensOf({ ...config.secrets, root: NEW, previousRoot: undefined });
  expect(await alone.openHeader(await sealed())).toBe(HEADER);
  await sender.stopWork();
});
