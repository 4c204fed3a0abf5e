import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  emails,
  startPeopleService,
  type End,
  type Ground,
  type Mode,
  type PeopleService,
} from '../support/people/ground.js';
import { expectEqual } from '../support/people/human.js';
import { count, rows } from '../support/rows.js';
import { atScale } from '../support/scale.js';

const BOTH: readonly Mode[] = ['open', 'scim_only'];

/**
 * A sequence of actions. `acts` performs it and returns who must get an SSH certificate at its end,
 * and how.
 */
interface Order {
  readonly title: string;
  /**
   * The modes of membership, by default `open`. In that mode no refusal is due to the membership
   * alone.
   */
  readonly modes?: readonly Mode[];
  readonly strangers?: 'unchecked';
  readonly acts: (ground: Ground) => Promise<readonly End[]>;
}

const off = (ground: Ground, id: string) => ground.set(id, 'active', 'False');
const on = (ground: Ground, id: string) => ground.set(id, 'active', 'True');

/**
 * Returns the expected access of a person whose account ended and came back: the key and a sign-in
 * work again, and the old session does not.
 */
const revived = (principal: string) => ({ session: null, key: principal, signIn: principal });
/**
 * Returns the expected access of a person who got a new account: only a sign-in works, and leads to
 * the enrollment of a new key.
 */
const rehired = (principal: string) => ({ session: null, key: null, signIn: principal });

const TAKE_OVERS: readonly Order[] = [
  {
    title: 'sign-in, POST: the member keeps the account and everything issued',
    modes: BOTH,
    async acts(g) {
      const bob = await g.member('bob');
      const before = bob.userId;
      expect(await g.post({ userName: bob.email })).toBe(before);
      expect(await g.events('scim_user_taken_over', before)).toHaveLength(1);
      return [[bob, bob.email]];
    },
  },
  {
    title: 'sign-in, POST, DELETE',
    modes: BOTH,
    async acts(g) {
      const bob = await g.member('bob');
      await g.remove(await g.post({ userName: bob.email }));
      return [[bob, null]];
    },
  },
  {
    title: 'POST, sign-in, DELETE',
    modes: BOTH,
    async acts(g) {
      const bob = g.human('bob');
      const id = await g.post({ userName: bob.email });
      await bob.join();
      expect(bob.userId).toBe(id);
      await g.remove(id);
      return [[bob, null]];
    },
  },
  {
    title: 'POST, sign-in: the person has the record',
    modes: BOTH,
    async acts(g) {
      const bob = g.human('bob');
      const id = await g.post({ userName: bob.email });
      await bob.join();
      expect(bob.userId).toBe(id);
      return [[bob, bob.email]];
    },
  },
  {
    title: 'sign-in, POST, enrollment: the person has the record, by a new sign-in at the latest',
    modes: ['open'],
    async acts(g) {
      const bob = g.human('bob');
      await bob.signIn();
      const id = await g.post({ userName: bob.email });
      if ((await bob.enroll()).status !== 200) await bob.join();
      await bob.certificate();
      expect(bob.userId).toBe(id);
      return [[bob, bob.email]];
    },
  },
  {
    title: 'sign-in, POST, enrollment, DELETE',
    modes: ['open'],
    async acts(g) {
      const bob = g.human('bob');
      await bob.signIn();
      const id = await g.post({ userName: bob.email });
      if ((await bob.enroll()).status !== 200) await bob.join();
      await bob.certificate();
      await g.remove(id);
      return [[bob, null]];
    },
  },
  {
    title: 'sign-in, POST, DELETE, enrollment',
    modes: BOTH,
    async acts(g) {
      const bob = g.human('bob');
      await bob.signIn();
      await g.remove(await g.post({ userName: bob.email }));
      expect((await bob.enroll()).status).not.toBe(200);
      return [[bob, null]];
    },
  },
  {
    title: 'sign-in, POST by mail with another userName, DELETE, enrollment',
    async acts(g) {
      const bob = g.human('bob');
      await bob.signIn();
      await g.remove(await g.post({ userName: g.at('upn'), emails: emails(bob.email) }));
      expect((await bob.enroll()).status).not.toBe(200);
      return [[bob, null]];
    },
  },
  {
    title: 'sign-in, the first SCIM token, enrollment without a record',
    modes: ['scim_only'],
    async acts(g) {
      const bob = g.human('bob');
      await bob.signIn();
      await g.find('userName eq "x"');
      expect((await bob.enroll()).status).not.toBe(200);
      return [[bob, null]];
    },
  },
  {
    title: 'sign-in, POST with active: false, which ends the member in its transaction',
    async acts(g) {
      const bob = await g.member('bob');
      expect(await g.post({ userName: bob.email, active: false })).toBe(bob.userId);
      expect((await g.show(bob.userId)).active).toBe(false);
      return [[bob, null]];
    },
  },
  {
    title: 'sign-in, POST by the primary address with active: "False"',
    async acts(g) {
      const bob = await g.member('bob');
      const id = await g.post({
        userName: g.at('upn'),
        emails: emails(bob.email),
        active: 'False',
      });
      expect(id).toBe(bob.userId);
      return [[bob, null]];
    },
  },
  {
    title: 'sign-in, POST with active: false, PATCH active: true',
    async acts(g) {
      const bob = await g.member('bob');
      const id = await g.post({ userName: bob.email, active: false });
      await on(g, id);
      return [[bob, revived(bob.email)]];
    },
  },
  {
    title: 'sign-in, POST, PATCH active: "False"',
    async acts(g) {
      const bob = await g.member('bob');
      await off(g, await g.post({ userName: bob.email }));
      return [[bob, null]];
    },
  },
  {
    title: 'sign-in, POST, PUT active: false with the address gone from the record',
    async acts(g) {
      const bob = await g.member('bob');
      const id = await g.post({ userName: g.at('upn'), emails: emails(bob.email) });
      await g.put(id, { userName: g.at('upn'), active: false });
      return [[bob, null]];
    },
  },
  ...(['primary', 'work', 'only'] as const).map((which): Order => ({
    title: `sign-in, POST by the ${which} address, DELETE`,
    async acts(g) {
      const bob = await g.member('bob');
      const list = {
        primary: emails(bob.email),
        work: [
          { value: g.at('p'), primary: true, type: 'other' },
          { value: bob.email, type: 'work' },
        ],
        only: [{ value: bob.email, type: 'home' }],
      }[which];
      const userName = which === 'only' ? 'no address' : g.at('upn');
      const id = await g.post({ userName, emails: list });
      expectEqual(id, bob.userId);
      expectEqual(await bob.certificate(), bob.email);
      await g.remove(id);
      return [[bob, null]];
    },
  })),
  {
    title: 'a directory that finds the member by userName and PATCHes its id, DELETE',
    async acts(g) {
      const bob = await g.member('bob');
      expect(await g.find(`userName eq "${bob.email}"`)).toEqual([bob.userId]);
      await g.set(bob.userId, 'title', 'Clerk');
      expect(await g.events('scim_user_taken_over', bob.userId)).toHaveLength(1);
      expect(await bob.certificate()).toBe(bob.email);
      await g.remove(bob.userId);
      return [[bob, null]];
    },
  },
  {
    title: 'a directory that finds the member by its work address and PUTs its id, active: false',
    async acts(g) {
      const bob = await g.member('bob');
      expect(await g.find(`emails[type eq "work"].value eq "${bob.email}"`)).toEqual([bob.userId]);
      await g.put(bob.userId, { userName: g.at('upn'), emails: emails(bob.email) });
      expect(await bob.certificate()).toBe(bob.email);
      await g.put(bob.userId, { userName: g.at('upn'), emails: emails(bob.email), active: false });
      return [[bob, null]];
    },
  },
  {
    title: 'a directory that PATCHes the id with active: false at once',
    async acts(g) {
      const bob = await g.member('bob');
      await off(g, bob.userId);
      return [[bob, null]];
    },
  },
  {
    title: 'a directory that DELETEs the id of a member at once',
    async acts(g) {
      const bob = await g.member('bob');
      await g.find('userName eq "x"');
      await g.remove(bob.userId);
      return [[bob, null]];
    },
  },
  {
    title: 'sign-in, PATCH of the userName on the member’s id: the address stays while it is named',
    async acts(g) {
      const bob = await g.member('bob');
      await g.set(bob.userId, 'userName', g.at('upn'));
      return [[bob, bob.email]];
    },
  },
];

const SCRUBBED: readonly Order[] = [
  {
    title: 'sign-in, POST by mail, e-mails scrubbed, DELETE',
    async acts(g) {
      const bob = await g.member('bob');
      const id = await g.post({ userName: g.at('upn'), emails: emails(bob.email) });
      await g.patch(id, { op: 'remove', path: 'emails' });
      expect(await bob.certificate()).toBeNull();
      await g.remove(id);
      return [[bob, null]];
    },
  },
  {
    title: 'POST, sign-in by mail, e-mails scrubbed by PUT, DELETE',
    async acts(g) {
      const bob = g.human('bob', 'upn');
      const id = await g.post({ userName: g.at('upn'), emails: emails(bob.email) });
      await bob.join();
      await g.put(id, { userName: g.at('upn') });
      await g.remove(id);
      return [[bob, null]];
    },
  },
  {
    title: 'POST, never signed in, userName scrubbed, active: false, sign-in',
    async acts(g) {
      const id = await g.post({ userName: g.at('bob') });
      await g.set(id, 'userName', 'former-1234');
      await off(g, id);
      return [[g.human('bob'), null]];
    },
  },
  {
    title: 'POST, never signed in, userName scrubbed while active, sign-in: founded by no sign-in',
    async acts(g) {
      const id = await g.post({ userName: g.at('bob') });
      await g.put(id, { userName: 'former-1234' });
      return [[g.human('bob'), null]];
    },
  },
  {
    title: 'POST, never signed in, userName scrubbed, DELETE, sign-in',
    async acts(g) {
      const id = await g.post({ userName: g.at('bob') });
      await g.set(id, 'userName', 'former-1234');
      await g.remove(id);
      return [[g.human('bob'), null]];
    },
  },
  {
    title: 'POST, active: false, userName scrubbed, active: true: the lost address stays barred',
    async acts(g) {
      const id = await g.post({ userName: g.at('bob') });
      await off(g, id);
      await g.set(id, 'userName', 'former-1234');
      await on(g, id);
      return [[g.human('bob'), null]];
    },
  },
  ...(['userName', 'primary', 'work'] as const).map((which): Order => ({
    title: `provisioned, never signed in, DELETEd, sign-in by the ${which} address`,
    async acts(g) {
      const list = emails(g.at('primary'), { work: g.at('work') });
      await g.remove(await g.post({ userName: g.at('userName'), emails: list }));
      return [[g.human(which), null]];
    },
  })),
  {
    title: 'provisioned with a home address, DELETEd, sign-in by it: plain data bars no address',
    modes: ['open'],
    async acts(g) {
      const list = emails(g.at('mail'), { home: g.at('home') });
      await g.remove(await g.post({ userName: g.at('upn'), emails: list }));
      const other = await g.member('home');
      return [[other, other.email]];
    },
  },
];

const PLAIN_ADDRESSES: readonly Order[] = ['home', 'other', 'secondary'].flatMap(
  (type): Order[] => [
    {
      title: `the ${type} address of another person is a member’s who signed in, active: false`,
      async acts(g) {
        const bob = await g.member('bob');
        const carol = g.human('carol');
        const list = emails(carol.email, { [type]: bob.email });
        const id = await g.post({ userName: carol.email, emails: list });
        expectEqual(id === bob.userId, false);
        await carol.join();
        await off(g, id);
        return [
          [bob, bob.email],
          [carol, null],
        ];
      },
    },
    {
      title: `the ${type} address of another person is a provisioned user’s, by PATCH, DELETE`,
      async acts(g) {
        const [bob, carol] = [g.human('bob'), g.human('carol')];
        await g.post({ userName: bob.email });
        const id = await g.post({ userName: carol.email });
        await bob.join();
        await carol.join();
        await g.patch(id, { op: 'add', path: 'emails', value: [{ value: bob.email, type }] });
        await g.remove(id);
        return [
          [bob, bob.email],
          [carol, null],
        ];
      },
    },
  ],
);

const UPN_AND_MAIL: readonly Order[] = [
  {
    title: 'POST, sign-in by mail: the person has the record, under its userName',
    async acts(g) {
      const bob = g.human('mail', 'upn');
      const id = await g.post({ userName: g.at('upn'), emails: emails(bob.email) });
      await bob.join();
      expect(bob.userId).toBe(id);
      return [[bob, g.at('upn')]];
    },
  },
  {
    title: 'POST, sign-in by mail, DELETE, sign-in by either',
    async acts(g) {
      const bob = g.human('mail', 'upn');
      const id = await g.post({ userName: g.at('upn'), emails: emails(bob.email) });
      await bob.join();
      await g.remove(id);
      return [
        [bob, null],
        [g.human('upn', 'mail'), null],
      ];
    },
  },
  {
    title: 'sign-in by mail, POST, DELETE, sign-in by either',
    async acts(g) {
      const bob = await g.member('mail', 'upn');
      const id = await g.post({ userName: g.at('upn'), emails: emails(bob.email) });
      expect([id, await bob.certificate()]).toEqual([bob.userId, bob.email]);
      await g.remove(id);
      return [
        [bob, null],
        [g.human('upn', 'mail'), null],
      ];
    },
  },
  {
    title: 'POST, sign-in by UPN, then by mail with the same subject',
    async acts(g) {
      const bob = g.human('upn', 'mail');
      await g.post({ userName: bob.email, emails: emails(g.at('mail')) });
      await bob.join();
      bob.claimIs(g.at('mail'));
      return [[bob, g.at('upn')]];
    },
  },
  {
    title: 'sign-in by UPN, POST, active: false, sign-in by mail with another subject',
    async acts(g) {
      const bob = await g.member('upn', 'mail');
      const id = await g.post({ userName: bob.email, emails: emails(g.at('mail')) });
      await off(g, id);
      return [
        [bob, null],
        [g.human('mail', 'upn'), null],
      ];
    },
  },
  {
    title: 'POST with the mail as the only work address, sign-in by it',
    async acts(g) {
      const bob = g.human('mail', 'upn');
      const list = [
        { value: g.at('p'), type: 'other', primary: true },
        { value: bob.email, type: 'work' },
      ];
      await g.post({ userName: g.at('upn'), emails: list });
      await bob.join();
      return [[bob, g.at('upn')]];
    },
  },
  {
    title: 'POST with two work addresses, none primary, sign-in by the second',
    async acts(g) {
      const list = [
        { value: g.at('one'), type: 'work' },
        { value: g.at('two'), type: 'work' },
      ];
      await g.post({ userName: g.at('upn'), emails: list });
      return [[g.human('two', 'upn'), null]];
    },
  },
  {
    title: 'POST with a home address, sign-in by it: further addresses bind no subject',
    modes: ['scim_only'],
    async acts(g) {
      await g.post({ userName: g.at('upn'), emails: emails(g.at('mail'), { home: g.at('home') }) });
      return [[g.human('home', 'upn'), null]];
    },
  },
  {
    title: 'POST, sign-in by mail; another subject that says the UPN is refused',
    async acts(g) {
      const bob = g.human('mail', 'upn');
      await g.post({ userName: g.at('upn'), emails: emails(bob.email) });
      await bob.join();
      return [
        [bob, g.at('upn')],
        [g.human('upn', 'mail'), null],
      ];
    },
  },
];

const SECOND_ACCOUNTS: readonly Order[] = [
  ...['adm-ada', 'address'].flatMap((kind): Order[] => {
    const nameOf = (g: Ground) => (kind === 'address' ? g.at('adm-ada') : 'adm-ada');
    const both = async (g: Ground) => {
      const second = await g.post({ userName: nameOf(g), emails: emails(g.at('ada')) });
      const own = await g.post({ userName: g.at('ada'), emails: emails(g.at('ada')) });
      expect(own).not.toBe(second);
      const ada = g.human('ada', 'adm-ada');
      await ada.join();
      expect(ada.userId).toBe(own);
      return { second, own, ada };
    };
    return [
      {
        title: `administrator’s second account (userName: ${kind}) first, own record second: the own one signs in`,
        async acts(g) {
          const { ada } = await both(g);
          return [[ada, ada.email]];
        },
      },
      {
        title: `administrator’s second account (userName: ${kind}) first, own record second, the second account deleted first`,
        async acts(g) {
          const { ada, second } = await both(g);
          await g.remove(second);
          return [[ada, ada.email]];
        },
      },
      {
        title: `administrator’s second account (userName: ${kind}) first, own record second, the own one deleted first`,
        async acts(g) {
          const { ada, own } = await both(g);
          await g.remove(own);
          return [[ada, null]];
        },
      },
      {
        title: `administrator’s second account (userName: ${kind}) first, own record second, both deleted`,
        async acts(g) {
          const { ada, own, second } = await both(g);
          await g.remove(second);
          await g.remove(own);
          return [[ada, null]];
        },
      },
    ];
  }),
  ...(['DELETE', 'active: false'] as const).flatMap((how) =>
    (['own', 'second'] as const).map((which): Order => ({
      title: `second account signs in by mail, own record is linked, ${how} of the ${which} record ends both`,
      async acts(g) {
        const { ada, second, own } = await linked(g);
        const [ended, other] = which === 'own' ? [own, second] : [second, own];
        await (how === 'DELETE' ? g.remove(ended) : off(g, ended));
        expectEqual((await g.show(other)).active, false);
        return [[ada, null]];
      },
    })),
  ),
  {
    title: 'second account signs in by mail, own record is linked: one account, one person',
    async acts(g) {
      const { ada, second } = await linked(g);
      expect(ada.userId).toBe(second);
      return [[ada, ada.email]];
    },
  },
  {
    title: 'second account signs in by mail, own record is linked, an admin gives it the address',
    async acts(g) {
      const { ada, second, own } = await linked(g);
      await g.act(own, 'give-address');
      expect(await ada.certificate()).toBeNull();
      expect(await ada.bySignIn()).toBe(ada.email);
      expect([second, own].indexOf(ada.userId)).toBe(1);
      // The action of the admin gave one person two accounts. Only the last certificate is checked.
      ada.issued.splice(0, ada.issued.length - 1);
      // the sign-in above used another key
      return [[ada, { session: null, key: null, signIn: null }]];
    },
  },
];

/**
 * Lets a person sign in to a record of SCIM that has the person's address as its e-mail, and enroll
 * a key. Then creates a second record with the address as its `userName`.
 */
async function linked(g: Ground) {
  const ada = g.human('ada');
  const second = await g.post({ userName: 'adm-ada', emails: emails(ada.email) });
  await ada.join();
  const own = await g.post({ userName: ada.email, emails: emails(ada.email) });
  expect(own).not.toBe(second);
  expect(await ada.certificate()).toBe(ada.email);
  return { ada, second, own };
}

const SHARED: readonly Order[] = [
  ...['name', 'address'].map((kind): Order => ({
    title: `shared mailbox in two records (userName: ${kind}): signs in no one`,
    async acts(g) {
      const nameOf = (local: string) => (kind === 'address' ? g.at(local) : local);
      for (const local of ['x', 'y']) {
        await g.post({ userName: nameOf(local), emails: emails(g.at('shared')) });
      }
      return [[g.human('shared', 'x', 'y'), null]];
    },
  })),
  ...(['x', 'y'] as const).map((first): Order => ({
    title: `shared mailbox in two records: ${first} signs in first by the own userName; the mailbox signs in no one`,
    async acts(g) {
      const [x, y] = [g.human('x'), g.human('y')];
      for (const { email } of [x, y]) {
        await g.post({ userName: email, emails: emails(g.at('shared')) });
      }
      await (first === 'x' ? x : y).join();
      const shared: End = [g.human('shared'), null];
      await g.check([shared]);
      await (first === 'x' ? y : x).join();
      return [shared, [x, x.email], [y, y.email]];
    },
  })),
  {
    title: 'shared mailbox: the first record signs in with it, the second comes and is DELETEd',
    async acts(g) {
      const x = g.human('shared');
      await g.post({ userName: 'x', emails: emails(x.email) });
      await x.join();
      await g.remove(await g.post({ userName: 'y', emails: emails(x.email) }));
      return [[x, x.email]];
    },
  },
  {
    title:
      'shared mailbox: the first record signs in with it, the second comes, the first is DELETEd',
    async acts(g) {
      const x = g.human('shared');
      const id = await g.post({ userName: 'x', emails: emails(x.email) });
      await x.join();
      await g.post({ userName: 'y', emails: emails(x.email) });
      await g.remove(id);
      return [[x, null]];
    },
  },
  {
    title: 'shared mailbox: a member signs in with it, then two records, the first ends',
    async acts(g) {
      const x = await g.member('shared');
      expect(await g.post({ userName: 'x', emails: emails(x.email) })).toBe(x.userId);
      expect(await g.post({ userName: 'y', emails: emails(x.email) })).not.toBe(x.userId);
      await off(g, x.userId);
      return [[x, null]];
    },
  },
];

const TWINS: readonly Order[] = [
  {
    title: 'one person as two members (UPN and mail both signed in), POST: both keep access',
    modes: BOTH,
    async acts(g) {
      const { upn, mail } = await twoMembers(g);
      return [
        [upn, upn.email],
        [mail, mail.email],
      ];
    },
  },
  {
    title: 'one person as two members, POST, DELETE',
    modes: BOTH,
    async acts(g) {
      const { upn, mail, id } = await twoMembers(g);
      await g.remove(id);
      return [
        [upn, null],
        [mail, null],
      ];
    },
  },
  {
    title: 'one person as two members, POST, DELETE by the id in upper case',
    async acts(g) {
      const { upn, mail, id } = await twoMembers(g);
      await g.remove(id.toUpperCase());
      return [
        [upn, null],
        [mail, null],
      ];
    },
  },
  {
    title: 'one person as two members, POST, DELETE in a Bulk request by the id in upper case',
    async acts(g) {
      const { upn, mail, id } = await twoMembers(g);
      const answer = await g.scim('POST', '/Bulk', {
        schemas: ['urn:ietf:params:scim:api:messages:2.0:BulkRequest'],
        Operations: [{ method: 'DELETE', path: `/Users/${id.toUpperCase()}` }],
      });
      expect(answer.json.Operations).toMatchObject([{ status: '204' }]);
      return [
        [upn, null],
        [mail, null],
      ];
    },
  },
  {
    title:
      'an administrator’s account takes the member as twin, the own record comes, DELETE of that',
    async acts(g) {
      const mail = await g.member('mail');
      const second = await g.post({ userName: g.at('adm') });
      await g.put(second, { userName: g.at('adm'), emails: emails(mail.email) });
      await g.remove(await g.post({ userName: g.at('upn'), emails: emails(mail.email) }));
      return [[mail, null]];
    },
  },
  {
    title: 'the member is a twin of one record, a second one is POSTed with active: false',
    async acts(g) {
      const mail = await g.member('mail');
      const second = await g.post({ userName: g.at('adm') });
      await g.put(second, { userName: g.at('adm'), emails: emails(mail.email) });
      await g.post({ userName: g.at('upn'), emails: emails(mail.email), active: false });
      return [[mail, null]];
    },
  },
  {
    title: 'one person as two members, POST, active: false',
    async acts(g) {
      const { upn, mail, id } = await twoMembers(g);
      await off(g, id);
      return [
        [upn, null],
        [mail, null],
      ];
    },
  },
  {
    title: 'one person as two members, POST with active: false',
    async acts(g) {
      const { upn, mail } = await twoMembers(g, false);
      return [
        [upn, null],
        [mail, null],
      ];
    },
  },
  {
    title: 'one person as two members, POST, active: false, active: true',
    async acts(g) {
      const { upn, mail, id } = await twoMembers(g);
      await off(g, id);
      await on(g, id);
      return [
        [upn, revived(upn.email)],
        [mail, revived(mail.email)],
      ];
    },
  },
  {
    title: 'one person as two members, an admin deactivates the twin, active: false, active: true',
    async acts(g) {
      const { upn, mail, id } = await twoMembers(g);
      await g.act(mail.userId, 'deactivate');
      await off(g, id);
      await on(g, id);
      return [
        [upn, revived(upn.email)],
        [mail, null],
      ];
    },
  },
  {
    title: 'one person as two members, active: false, an admin activates the twin, active: false',
    async acts(g) {
      const { upn, mail, id } = await twoMembers(g);
      await off(g, id);
      await g.act(mail.userId, 'activate');
      await g.set(id, 'title', 'a change without active ends nothing');
      expect(await mail.bySignIn()).toBe(mail.email);
      const { meta } = await g.show(id);
      await off(g, id);
      expect((await g.show(id)).meta).toEqual(meta); // only the twin changed
      return [
        [upn, null],
        [mail, null],
      ];
    },
  },
  {
    title: 'one person as two members, active: false, an admin activates the twin, PUT with false',
    async acts(g) {
      const { upn, mail, id } = await twoMembers(g);
      await off(g, id);
      await g.act(mail.userId, 'activate');
      const named = { userName: upn.email, emails: emails(mail.email) };
      await g.put(id, { ...named, active: 'False', title: 'x' });
      return [
        [upn, null],
        [mail, null],
      ];
    },
  },
  {
    title: 'one person as two members, POST, the mail scrubbed, DELETE: a twin stays a twin',
    async acts(g) {
      const { upn, mail, id } = await twoMembers(g);
      await g.put(id, { userName: upn.email });
      await g.remove(id);
      return [
        [upn, null],
        [mail, null],
      ];
    },
  },
  {
    title: 'one person as two members, POST, renamed, active: false',
    async acts(g) {
      const { upn, mail, id } = await twoMembers(g);
      await g.put(id, { userName: g.at('former'), emails: [] });
      await off(g, id);
      return [
        [upn, null],
        [mail, null],
      ];
    },
  },
  {
    title:
      'one person as two members, POST; the twin’s own record comes by userName; DELETE of the first',
    async acts(g) {
      const { upn, mail, id } = await twoMembers(g);
      expect(await g.find(`userName eq "${mail.email}"`)).toEqual([]);
      expect(await g.post({ userName: mail.email })).toBe(mail.userId);
      await g.remove(id);
      return [
        [upn, null],
        [mail, mail.email],
      ];
    },
  },
  {
    title:
      'one person as two members, POST; the twin’s own record comes by userName; DELETE of that',
    async acts(g) {
      const { upn, mail } = await twoMembers(g);
      await g.remove(await g.post({ userName: mail.email }));
      return [
        [upn, upn.email],
        [mail, null],
      ];
    },
  },
  {
    title: 'a twin is DELETEd by its own id, POST with its address: the person is back',
    modes: BOTH,
    async acts(g) {
      const { upn, mail } = await twoMembers(g);
      await g.remove(mail.userId);
      await g.post({ userName: mail.email });
      mail.issued.length = 0; // from now on the person is another account
      return [
        [upn, upn.email],
        [mail, rehired(mail.email)],
      ];
    },
  },
  {
    title: 'a record has the id of a member as its userName, the member becomes a twin and ends',
    async acts(g) {
      const [upn, mail] = [await g.member('upn'), await g.member('mail')];
      await g.post({ userName: mail.userId });
      await g.post({ userName: ` ${upn.userId}` });
      await g.post({ userName: upn.email, emails: emails(mail.email), active: false });
      return [
        [upn, null],
        [mail, null],
      ];
    },
  },
  {
    title: 'two people as record and twin, an admin parts them, DELETE of the record',
    modes: BOTH,
    async acts(g) {
      const { upn, mail, id } = await twoMembers(g);
      await g.act(mail.userId, 'part');
      await g.remove(id);
      return [
        [upn, null],
        [mail, mail.email],
      ];
    },
  },
  {
    title:
      'two people as record and twin, an admin parts them, a PUT names the address again, active: false',
    async acts(g) {
      const { upn, mail, id } = await twoMembers(g);
      await g.act(mail.userId, 'part');
      await g.put(id, { userName: upn.email, emails: emails(mail.email), title: 'Clerk' });
      await off(g, id);
      return [
        [upn, null],
        [mail, mail.email],
      ];
    },
  },
  {
    title:
      'a member was taken over by the record of another person, an admin parts them, DELETE of the record',
    async acts(g) {
      const { bob, id } = await parted(g);
      await g.remove(id);
      return [[bob, revived(bob.email)]];
    },
  },
  {
    title:
      'a member was taken over by the record of another person, an admin parts them: each has an account',
    async acts(g) {
      const { bob, id } = await parted(g);
      const robert = g.human('robert');
      await robert.join();
      expect(robert.userId).toBe(id);
      return [
        [bob, revived(bob.email)],
        [robert, robert.email],
      ];
    },
  },
  {
    title:
      'two people as record and twin, an admin parts them, the address leaves the record and comes back, active: false',
    async acts(g) {
      const { upn, mail, id } = await twoMembers(g);
      await g.act(mail.userId, 'part');
      await g.put(id, { userName: upn.email });
      await g.put(id, { userName: upn.email, emails: emails(mail.email) });
      await off(g, id);
      return [
        [upn, null],
        [mail, mail.email],
      ];
    },
  },
  {
    title: 'a parted person, the address leaves the record and comes back, DELETE of the record',
    async acts(g) {
      const { bob, id } = await parted(g);
      await g.put(id, { userName: g.at('robert') });
      await g.put(id, { userName: g.at('robert'), emails: emails(bob.email) });
      await g.remove(id);
      return [[bob, revived(bob.email)]];
    },
  },
  {
    title: 'a parted person keeps the own consents: the record inherits none',
    async acts(g) {
      const bob = await g.member('bob');
      const id = await g.post({ userName: g.at('robert'), emails: emails(bob.email) });
      await rows(
        g.app.dataSource,
        `WITH made AS (INSERT INTO oauth_clients (id, kind, metadata) VALUES (gen_random_uuid()::text, 'dynamic', '{}') RETURNING id)
         INSERT INTO oauth_consents (user_id, client_id) SELECT $1, id FROM made`,
        [id],
      );
      const person = (await g.act(id, 'part')).json.id as string;
      expect(await count(g.app.dataSource, 'oauth_consents WHERE user_id = $1', [id])).toBe(0);
      expect(await count(g.app.dataSource, 'oauth_consents WHERE user_id = $1', [person])).toBe(1);
      // The person has another account from now on, so that earlier certificates are not checked.
      bob.issued.length = 0;
      return [[bob, revived(bob.email)]];
    },
  },
  {
    title: 'a member was taken over, owes a pass, and is parted: no enrollment without the pass',
    async acts(g) {
      const bob = await g.member('bob');
      const id = await g.post({ userName: g.at('robert'), emails: emails(bob.email) });
      const pass = await g.org('POST', `/members/${id}/enrollment-passes`);
      expect(pass.status).toBe(201);
      await g.act(id, 'part');
      return [[bob, null]];
    },
  },
  ...(['DELETE', 'active: false'] as const).map((how): Order => ({
    title: `a person with a linked own record is parted from the second account, ${how} of the own record`,
    modes: BOTH,
    async acts(g) {
      const ada = await g.member('ada');
      const second = await g.post({ userName: 'adm-ada', emails: emails(ada.email) });
      const own = await g.post({ userName: ada.email });
      const person = await g.act(second, 'part');
      expectEqual(person.json.twin_of, [own]);
      expectEqual((await g.events('member_parted', person.json.id as string))[0]?.details, {
        email: ada.email,
        parted_from: [second],
        twin_of: [own],
        ...(person.json.ended as object),
      });
      await g.post({ userName: person.json.id as string }); // a record may have the id as userName
      await (how === 'DELETE' ? g.remove(own) : off(g, own));
      expectEqual((await g.show(second)).active, true);
      ada.issued.length = 0; // from now on the person is another account
      return [[ada, null]];
    },
  })),
  {
    title: 'a person is parted from one record of a shared mailbox, DELETE of the other record',
    async acts(g) {
      const bob = await g.member('bob');
      const one = await g.post({ userName: g.at('one'), emails: emails(bob.email) });
      const other = await g.post({ userName: g.at('other'), emails: emails(bob.email) });
      await g.act(one, 'part');
      await g.remove(other);
      return [[bob, null]];
    },
  },
  {
    title: 'a parted person’s own record comes, DELETE of it',
    async acts(g) {
      const { bob, id } = await parted(g);
      expect(await bob.bySignIn()).toBe(bob.email);
      const own = await g.post({ userName: bob.email });
      expect([own === bob.userId, own === id]).toEqual([true, false]);
      await g.remove(own);
      return [[bob, null]];
    },
  },
  {
    title: 'rename onto a member, DELETE',
    async acts(g) {
      const { bob, id } = await renamedOnto(g);
      await g.remove(id);
      return [[bob, null]];
    },
  },
  {
    title: 'rename onto a member, rename away: the member keeps access while the record is active',
    async acts(g) {
      const { bob, id } = await renamedOnto(g);
      await g.set(id, 'userName', g.at('robert'));
      return [[bob, bob.email]];
    },
  },
  {
    title: 'rename onto a member, rename away, DELETE: the member is still its twin',
    async acts(g) {
      const { bob, id } = await renamedOnto(g);
      await g.set(id, 'userName', g.at('robert'));
      await g.remove(id);
      return [[bob, null]];
    },
  },
  {
    title: 'rename onto a member, rename away, active: false, active: true',
    async acts(g) {
      const { bob, id } = await renamedOnto(g);
      await g.set(id, 'userName', g.at('robert'));
      await off(g, id);
      expect(await bob.certificate()).toBeNull();
      await on(g, id);
      return [[bob, revived(bob.email)]];
    },
  },
  ...(['PUT', 'PATCH'] as const).map((how): Order => ({
    title: `${how} without active on an inactive record that newly names a member`,
    async acts(g) {
      const bob = await g.member('bob');
      const id = await g.post({ userName: g.at('robert'), active: false });
      if (how === 'PUT') {
        await g.put(id, { userName: g.at('robert'), emails: emails(bob.email) });
      } else {
        await g.set(id, 'emails[type eq "work"].value', bob.email);
      }
      expectEqual((await g.show(id)).active, false);
      return [[bob, null]];
    },
  })),
  {
    title: 'PUT on an inactive record that newly names a member, then active: true',
    async acts(g) {
      const bob = await g.member('bob');
      const id = await g.post({ userName: g.at('robert'), active: false });
      await g.put(id, { userName: g.at('robert'), emails: emails(bob.email) });
      await on(g, id);
      return [[bob, revived(bob.email)]];
    },
  },
];

/**
 * Creates two members. The record of SCIM of the first has the address of the second as its e-mail.
 */
async function twoMembers(g: Ground, active = true) {
  const [upn, mail] = [await g.member('upn'), await g.member('mail')];
  const id = await g.post({ userName: upn.email, emails: emails(mail.email), active });
  expect(id).toBe(upn.userId);
  return { upn, mail, id };
}

/** Lets the record of another person take over a member, and then lets an admin part the two. */
async function parted(g: Ground) {
  const bob = await g.member('bob');
  const id = await g.post({ userName: g.at('robert'), emails: emails(bob.email) });
  expect(id).toBe(bob.userId);
  const answer = await g.act(id, 'part');
  expect(answer.json.id).not.toBe(id);
  expect(await bob.certificate()).toBeNull();
  // The person has another account from now on, so that earlier certificates are not checked.
  bob.issued.length = 0;
  return { bob, id };
}

/** Renames a record of SCIM to the address of a member. */
async function renamedOnto(g: Ground) {
  const bob = await g.member('bob');
  const id = await g.post({ userName: g.at('robert') });
  await g.set(id, 'userName', bob.email);
  expect(id).not.toBe(bob.userId);
  return { bob, id };
}

const REHIRES: readonly Order[] = [
  {
    title: 're-hire with the same userName',
    async acts(g) {
      const bob = await g.member('bob');
      await g.remove(await g.post({ userName: bob.email }));
      await g.post({ userName: bob.email });
      return [[bob, rehired(bob.email)]];
    },
    strangers: 'unchecked', // any subject that signs in first gets the new record
  },
  {
    title: 're-hire with the same userName, DELETE again',
    async acts(g) {
      const bob = await g.member('bob');
      for (let times = 0; times < 2; times += 1) {
        await g.remove(await g.post({ userName: bob.email }));
      }
      return [[bob, null]];
    },
  },
  {
    title:
      're-hire with another userName and the same mail: the same subject is barred until an admin lifts it',
    async acts(g) {
      const bob = await g.member('bob', 'bob2');
      await g.remove(await g.post({ userName: bob.email }));
      await g.post({ userName: g.at('bob2'), emails: emails(bob.email) });
      expect(await bob.reach()).toEqual({ session: null, key: null, signIn: null });
      await g.readmit(bob.email);
      return [[bob, rehired(g.at('bob2'))]];
    },
    strangers: 'unchecked',
  },
  {
    title: 're-hire with another userName and the same externalId',
    async acts(g) {
      const bob = await g.member('bob', 'bob2');
      await g.remove(await g.post({ userName: bob.email, externalId: 'person-1' }));
      const next = { userName: g.at('bob2'), externalId: 'person-1', emails: emails(bob.email) };
      await g.post(next);
      return [[bob, rehired(g.at('bob2'))]];
    },
    strangers: 'unchecked',
  },
  {
    title: 're-hire with another userName without the mail: the old address stays barred',
    async acts(g) {
      const bob = await g.member('bob', 'bob2');
      await g.remove(await g.post({ userName: bob.email }));
      await g.post({ userName: g.at('bob2') });
      return [[bob, null]];
    },
  },
  {
    title: 'DELETE, an admin lifts the address, sign-in',
    modes: ['open'],
    async acts(g) {
      const bob = await g.member('bob');
      await g.remove(await g.post({ userName: bob.email }));
      await g.readmit(bob.email);
      return [[bob, rehired(bob.email)]];
    },
  },
  {
    title: 'DELETE, an admin lifts the address, sign-in in scim_only: only people of SCIM enroll',
    modes: ['scim_only'],
    async acts(g) {
      const bob = await g.member('bob');
      await g.remove(await g.post({ userName: bob.email }));
      await g.readmit(bob.email);
      return [[bob, null]];
    },
  },
  {
    title: 'renamed, the former userName goes to another person, DELETE of the first',
    async acts(g) {
      const [ann, other] = [g.human('ann-new', 'ann'), g.human('ann')];
      const first = await g.post({ userName: g.at('ann') });
      await g.set(first, 'userName', g.at('ann-new'));
      await g.post({ userName: g.at('ann') });
      await ann.join();
      await other.join();
      expect(ann.userId).toBe(first);
      await g.remove(first);
      return [
        [ann, null],
        [other, other.email],
      ];
    },
  },
  {
    title: 'a taken userName is 409 while its record lives, and free afterwards',
    async acts(g) {
      const bob = g.human('bob');
      const id = await g.post({ userName: bob.email });
      const again = await g.scim('POST', '/Users', { userName: bob.email.toUpperCase() });
      expect([again.status, again.json.scimType]).toEqual([409, 'uniqueness']);
      await g.remove(id);
      await g.post({ userName: bob.email });
      await bob.join();
      return [[bob, bob.email]];
    },
  },
];

const ADMINS: readonly Order[] = [
  {
    title: 'a member whom an admin deactivated, POST with active: true: it never activates',
    async acts(g) {
      const bob = await g.member('bob');
      await g.act(bob.userId, 'deactivate');
      expect(await g.post({ userName: bob.email, active: true })).toBe(bob.userId);
      expect((await g.show(bob.userId)).active).toBe(false);
      return [[bob, null]];
    },
  },
  {
    title:
      'a member whom an admin deactivated, PATCH active: true on the id: the take-over never activates',
    async acts(g) {
      const bob = await g.member('bob');
      await g.act(bob.userId, 'deactivate');
      await on(g, bob.userId);
      return [[bob, null]];
    },
  },
  {
    title: 'a member whom an admin deactivated, POST, a later write says active: true',
    async acts(g) {
      const bob = await g.member('bob');
      await g.act(bob.userId, 'deactivate');
      const id = await g.post({ userName: bob.email, active: true });
      await g.put(id, { userName: bob.email, title: 'Clerk' });
      expect((await g.show(id)).active).toBe(false);
      await g.put(id, { userName: bob.email, active: true });
      return [[bob, revived(bob.email)]];
    },
  },
  {
    title: 'a member whom an admin removed, sign-in',
    async acts(g) {
      const bob = await g.member('bob');
      await g.org('POST', `/members/${bob.userId}/remove`);
      return [[bob, null]];
    },
  },
  {
    title: 'a member whom an admin removed, POST: stays out until readmitted',
    async acts(g) {
      const bob = await g.member('bob');
      await g.org('POST', `/members/${bob.userId}/remove`);
      await g.post({ userName: bob.email });
      return [[bob, null]];
    },
  },
  {
    title: 'a member whom an admin removed, POST by mail with another userName',
    async acts(g) {
      const bob = await g.member('bob', 'upn');
      await g.org('POST', `/members/${bob.userId}/remove`);
      await g.post({ userName: g.at('upn'), emails: emails(bob.email) });
      return [[bob, null]];
    },
  },
  {
    title: 'a member whom an admin removed, POST, readmitted',
    async acts(g) {
      const bob = await g.member('bob');
      await g.org('POST', `/members/${bob.userId}/remove`);
      const id = await g.post({ userName: bob.email });
      await g.readmit(bob.email);
      expect(await bob.bySignIn()).toBe(bob.email);
      expect(bob.userId).toBe(id);
      return [];
    },
  },
  {
    title: 'a member whom an admin removed, POST, readmitted, DELETE',
    async acts(g) {
      const bob = await g.member('bob');
      await g.org('POST', `/members/${bob.userId}/remove`);
      const id = await g.post({ userName: bob.email });
      await g.readmit(bob.email);
      await bob.join();
      await g.remove(id);
      return [[bob, null]];
    },
  },
  {
    title: 'a member who was taken over, removed by an admin, sign-in',
    async acts(g) {
      const bob = await g.member('bob');
      await g.post({ userName: g.at('upn'), emails: emails(bob.email) });
      await g.org('POST', `/members/${bob.userId}/remove`);
      return [
        [bob, null],
        [g.human('upn', 'bob'), null],
      ];
    },
  },
  {
    title: 'an admin taken over: audited as an admin',
    async acts(g) {
      const { admin } = g;
      expect(await g.post({ userName: admin.email })).toBe(admin.userId);
      expect(await g.events('scim_user_taken_over', admin.userId)).toMatchObject([
        { class: 'admin' },
      ]);
      return [[admin, admin.email]];
    },
  },
  {
    title: 'an admin taken over, DELETE',
    async acts(g) {
      const { admin } = g;
      await g.remove(await g.post({ userName: admin.email }));
      return [[admin, null]];
    },
  },
  {
    title: 'an admin as the twin of a record, active: false',
    async acts(g) {
      const { admin } = g;
      const ann = await g.member('ann');
      const id = await g.post({ userName: ann.email, emails: emails(admin.email) });
      await off(g, id);
      return [
        [ann, null],
        [admin, null],
      ];
    },
  },
];

/**
 * Lets orders run in `scim_only` as well. At small scale only the first three of a list do, because
 * the mode decides about the sign-in alone.
 */
function inBoth(orders: readonly Order[]): Order[] {
  const repeated = atScale({ small: 3, full: orders.length });
  return orders.map((order, index) => (index < repeated ? { modes: BOTH, ...order } : order));
}

const ORDERS: readonly Order[] = [
  ...TAKE_OVERS,
  ...SCRUBBED,
  ...PLAIN_ADDRESSES,
  ...inBoth(UPN_AND_MAIL),
  ...SECOND_ACCOUNTS,
  ...SHARED,
  ...TWINS,
  ...inBoth(REHIRES),
  ...inBoth(ADMINS),
];

/** For each mode, one of this many orders runs. */
const EVERY: Readonly<Record<Mode, number>> = {
  open: atScale({ small: 3, full: 1 }),
  scim_only: atScale({ small: 6, full: 1 }),
};

describe('who gets an SSH certificate at the end of an order of acts', () => {
  let service: PeopleService;
  beforeAll(async () => {
    service = await startPeopleService();
  });
  afterAll(() => service.close());

  describe.each(BOTH)('in %s', (mode) => {
    const all = ORDERS.filter(({ modes = ['open'] }) => modes.includes(mode));
    const orders = all.filter(
      ({ modes }, index) =>
        (mode === 'scim_only' && modes?.length === 1) || index % EVERY[mode] === 0,
    );
    it.each(orders.map((order) => [order.title, order] as const))('%s', async (_, order) => {
      expect.hasAssertions();
      const ground = await service.found(mode);
      const ends = await order.acts(ground);
      await ground.check(ends, order.strangers);
    });

    it.each(['member', 'record'] as const)(
      'two organizations with one address: the other one’s %s changes nothing here',
      async (first) => {
        const [here, there] = [await service.found(mode), await service.found(mode)];
        const bob = here.human('bob');
        const foreign = () => there.post({ userName: 'x', emails: emails(bob.email) });
        const early = first === 'record' ? await foreign() : undefined;
        await bob.join();
        const id = early ?? (await foreign());
        expect(id).not.toBe(bob.userId);
        await there.set(id, 'userName', bob.email);
        await here.check([[bob, bob.email]]);
        await there.remove(id);
        await here.check([[bob, bob.email]]);
        await here.remove(await here.post({ userName: bob.email }));
        await here.check([[bob, null]]);
      },
    );
  });

  it('no act met an error of the server or a deadlock', async () => {
    const errors = service.app.log.filter((line) => /"level":"?(error|50|60)|40P01/.test(line));
    expect(errors).toEqual([]);
    const deadlocks = await count(
      service.app.dataSource,
      'pg_stat_database WHERE datname = current_database() AND deadlocks > 0',
    );
    expect(deadlocks).toBe(0);
  });
});
