import { describe, expect, it } from 'vitest';
import { READY } from '../src/people/people.js';
import { entrance, ENTRANCES, signInLink } from '../src/tour/entrances.js';
import type { ReadyTour } from '../src/tour/tour.js';

const COMMANDS = { logIn: 'svc login', status: '', ssh: 'ssh demo', metrics: 'curl' };

/** Returns a prepared tour with only those members that the functions under test read. */
function tourWithout(missingPrograms: readonly string[]): ReadyTour {
  const facts = { provider: 'demo', applicationUrl: 'http://127.0.0.1:1', commands: COMMANDS };
  return { ...facts, missingPrograms } as unknown as ReadyTour;
}

describe('the entrances of the tour', () => {
  it('names the programs that a machine without OpenSSH lacks, and shows no command for them', () => {
    const [, step] = entrance('engineer', tourWithout(['sshd', 'ssh']))?.steps ?? [];
    expect(step?.text).toContain('lacks sshd, ssh');
    expect(step?.command).toBeUndefined();
    const [, complete] = entrance('engineer', tourWithout([]))?.steps ?? [];
    expect(complete?.command).toBe('ssh demo');
  });

  it('has steps for each name in its list, and nothing for another name', () => {
    for (const { slug } of ENTRANCES) {
      expect(entrance(slug, tourWithout([]))?.steps.length, slug).toBeGreaterThan(3);
    }
    expect(entrance('janitor', tourWithout([]))).toBeUndefined();
  });

  it('signs a person in at the provider of the demo, and then opens the page', () => {
    const { href } = signInLink({ provider: 'demo' }, READY.admin, '/admin');
    expect(Object.fromEntries(new URL(href, 'http://localhost').searchParams)).toEqual({
      provider: 'demo',
      login_hint: READY.admin.email,
      redirect_to: '/admin',
    });
  });
});
