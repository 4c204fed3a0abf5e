import { SoftwareKey } from '@svc/stand-ins/software-key';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startPeopleService, type PeopleService } from '../support/people/ground.js';

let service: PeopleService;
beforeAll(async () => {
  service = await startPeopleService();
});
afterAll(() => service.close());

it('/account/keys shows no refused key of a person of another organization whose address SCIM gives to a user', async () => {
  const [here, there] = [await service.found('open'), await service.found('open')];
  const victim = there.human('victim');
  await victim.signIn();
  if (!victim.browser) throw new Error('the victim has no session');
  const refusal = await victim.browser.enroll(new SoftwareKey()); // of another make
  const reference = refusal.headers.get('x-fapi-interaction-id') ?? 'none';
  expect(refusal.status).toBe(400);

  const eve = await here.member('eve');
  await here.put(await here.post({ userName: eve.email }), { userName: victim.email });
  const browser = service.app.client();
  if (!eve.key) throw new Error('eve has no key');
  expect((await browser.logIn(eve.key)).status).toBe(200);
  const page = await browser.get('/account/keys');
  expect(page.status).toBe(200);
  expect(page.text).not.toContain(reference);

  await victim.enrollWell();
  expect((await victim.browser.get('/account/keys')).text).toContain(reference);
});
