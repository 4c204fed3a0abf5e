import { it } from 'vitest';
import { startBrowser, visit } from '../support/browser.js';
import { startTestApp } from '../support/app.js';
it('shots', async () => {
  const app = await startTestApp({
    claims: () => ({ name: 'Ada Lovelace' }),
    environment: { SVC_ORG_NAME: 'Analytical Engines', SVC_RP_NAME: 'Analytical Engines' },
  });
  const browser = await startBrowser();
  try {
    const v = await visit(browser, app.baseUrl);
    await v.plugIn(app.newKey());
    const { page } = v;
    const shot = async (name: string) => {
      for (const scheme of ['light', 'dark'] as const)
        for (const width of [1280, 390]) {
          await page.emulateMedia({ colorScheme: scheme });
          await page.setViewportSize({ width, height: 800 });
          await page.screenshot({
            path: `/tmp/shots/${name}-${scheme}-${width}.png`,
            fullPage: true,
          });
          const over = await page.evaluate('document.documentElement.scrollWidth - innerWidth');
          if (Number(over) > 0) console.log('overflow', name, width, over);
        }
    };
    await page.goto('/');
    await shot('home-out');
    await page.goto('/login');
    await shot('login-out');
    await page.goto('/login?provider=demo&login_hint=ada.lovelace@example.com');
    await shot('enroll');
    await page.goto('/');
    await shot('home-boot');
    await page.goto('/login');
    await shot('login-boot');
    await page.goto('/enroll');
    await page.getByLabel(/Name of the key/).fill('Key ring');
    await page.getByRole('button', { name: 'Enroll this key' }).click();
    await page.waitForURL(app.baseUrl + '/');
    await page.emulateMedia({ reducedMotion: 'reduce' });
    await shot('home-in');
    await page
      .getByLabel('Your SSH public key')
      .fill(
        'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAII8ApC+s9c3a9QRzXizUdboZJcW6DaTbsnd0auPN8VZR ada@laptop',
      );
    await page.getByRole('button', { name: 'Get a certificate' }).click();
    await page.getByText('Valid until').waitFor();
    await shot('home-cert');
    await page.goto('/keys');
    await page.getByText('Rename').click();
    await shot('keys');
    await page.goto('/login');
    await shot('login-in');
    await page.goto('/enroll');
    await shot('error');
    await page.goto('/login?provider=demo&login_hint=ada.lovelace@example.com');
    await shot('login-boot2');
    await page.getByText('Not you?').click();
    await page
      .evaluate(
        `Object.defineProperty(navigator,'credentials',{value:{get:async()=>{throw new DOMException('x','NotAllowedError')}}})`,
      )
      .catch(() => {});
    await shot('login-boot3');
    console.log(v.complaints);
  } finally {
    await browser.close();
    await app.close();
  }
}, 120000);
