import { localTime } from '../../terminal/table.js';
import type { ParsedArguments } from '../../program/arguments.js';
import { usageFailure } from '../../program/failure.js';
import type { Act } from '../acts/act.js';
import { ifMatch, path, WITH_DOCUMENT, type AdminClient } from '../acts/admin-client.js';
import { endedLine, type Ended } from '../acts/ended.js';
import { nameOf, readMember } from './member.js';
import { programsOf, type EndOfAdmin } from './programs-of-member.js';

/** An act on a member, with the texts of the question that the admin must answer before it. */
interface MemberAct {
  /** The last segment of the path in the API, such as `promote`. */
  readonly route: string;
  /**
   * The name of the act in the field `ending` of the API, which counts what an act ends; undefined
   * if the field does not have the act.
   */
  readonly ends?: 'deactivate' | 'revoke_credentials' | 'remove';
  /**
   * The rights that the act takes away from the member. If all access is lost, the API tokens of
   * the member end at once. If only the role is lost, they end after 7 days, or at once if they can
   * only rotate. In both cases the event receivers of the member are paused. Undefined if the act
   * takes away no rights.
   */
  readonly endOfAdmin?: EndOfAdmin;
  readonly effects: readonly string[];
  readonly question: string;
  readonly done: string;
}

const ACTS: Readonly<Record<string, MemberAct>> = {
  promote: {
    route: 'promote',
    effects: ['The member can do everything that you can do as an admin, also to you.'],
    question: 'Make this member an admin?',
    done: 'is an admin now',
  },
  demote: {
    route: 'demote',
    endOfAdmin: 'role',
    effects: ['The member stays, and loses the rights of an admin at once.'],
    question: 'Remove the role of admin?',
    done: 'is no admin any more',
  },
  deactivate: {
    route: 'deactivate',
    ends: 'deactivate',
    endOfAdmin: 'access',
    effects: ['The member cannot sign in until an admin activates the account. The keys stay.'],
    question: 'Deactivate this member?',
    done: 'is deactivated',
  },
  activate: {
    route: 'activate',
    effects: ['The member can sign in again. Sessions and certificates that ended stay ended.'],
    question: 'Activate this member?',
    done: 'is active again',
  },
  revoke: {
    route: 'revoke-credentials',
    ends: 'revoke_credentials',
    endOfAdmin: 'access',
    effects: ['Every key of the member is removed with what it opened. The member enrolls again.'],
    question: 'Revoke all credentials?',
    done: 'has no credentials any more',
  },
  remove: {
    route: 'remove',
    ends: 'remove',
    endOfAdmin: 'access',
    effects: [
      'The account is deleted for good; the audit log stays. The addresses and sign-ins of the',
      'member stay out until: svc admin members readmit ADDRESS',
    ],
    question: 'Remove this member?',
    done: 'is removed',
  },
};

const PASS_EFFECTS = [
  'Every key of the member is removed with what it opened. The member enrolls another key with',
  'the pass, once, within 24 hours. From then on no key is enrolled without a pass.',
];

const LIFT_EFFECTS = [
  'The next sign-in of this member is then enough to enroll a key: a stranger who knows the',
  'password of the member has the account. Do this only if no stranger can sign in as the member.',
];

const YES = { flags: ['yes'] };

function actOf(act: MemberAct): Act {
  return {
    takes: ['MEMBER'],
    form: '[--yes]',
    names: YES,
    run: (admin, options) => change(admin, options, act),
  };
}

/**
 * Shows what an act would end, asks the admin, and runs the act. The server refuses it if the
 * member has changed meanwhile (`If-Match`).
 */
async function change(admin: AdminClient, options: ParsedArguments, act: MemberAct): Promise<void> {
  const { member, answer } = await readMember(admin, options.positionals[0] ?? '');
  const others = member.twins.length + member.linked_to.length;
  const programs = act.endOfAdmin ? programsOf(member, act.endOfAdmin) : [];
  const effects = [
    nameOf(member),
    ...act.effects,
    ...(act.endOfAdmin === 'role' && programs.length === 0 ? ['Nothing else ends.'] : []),
    ...programs,
    ...(act.ends && others > 0 ? [`Of ${others} linked accounts the access ends, too.`] : []),
    ...(act.ends ? [endedLine(member.ending?.[act.ends] ?? {}, 'This ends')] : []),
  ];
  await admin.agree(options, effects, act.question);
  const document = await admin.json<{ readonly ended?: Ended }>(
    'POST',
    path`/api/v1/org/members/${member.id}/${act.route}`,
    { headers: { ...ifMatch(answer), ...WITH_DOCUMENT } },
  );
  const ended = document.ended === undefined ? [] : [endedLine(document.ended, 'Ended')];
  admin.terminal.result(document, [`${nameOf(member)} ${act.done}.`, ...ended]);
}

const readmit: Act = {
  takes: ['ADDRESS'],
  form: '[--yes]',
  names: YES,
  async run(admin, options) {
    const [email = ''] = options.positionals;
    const effects = [`${email} and the sign-ins of the removed account work again.`];
    await admin.agree(options, effects, 'Let this address in again?');
    const json = { email };
    const document = await admin.json('POST', '/api/v1/org/members/readmit', { json });
    admin.terminal.result(document as object, [`${email} may sign in again.`]);
  },
};

const pass: Act = {
  takes: ['MEMBER'],
  form: '[--withdraw | --lift] [--yes]',
  names: { flags: ['yes', 'withdraw', 'lift'] },
  async run(admin, options) {
    if (options.has('withdraw') && options.has('lift')) {
      throw usageFailure('--withdraw and --lift exclude each other.', 'svc admin members pass');
    }
    if (options.has('withdraw') || options.has('lift')) await endPass(admin, options);
    else await givePass(admin, options);
  },
};

async function givePass(admin: AdminClient, options: ParsedArguments): Promise<void> {
  const { member, answer } = await readMember(admin, options.positionals[0] ?? '');
  const ends = endedLine(member.ending?.['revoke_credentials'] ?? {}, 'This ends');
  const effects = [nameOf(member), ...PASS_EFFECTS, ...programsOf(member, 'access'), ends];
  await admin.agree(options, effects, 'Revoke everything and make a pass?');
  const made = await admin.json<{
    readonly pass: string;
    readonly expires_at: string;
    readonly ended: Ended;
  }>('POST', path`/api/v1/org/members/${member.id}/enrollment-passes`, {
    headers: ifMatch(answer),
  });
  admin.secret(made, made.pass, [
    `The pass of ${nameOf(member)} is valid until ${localTime(new Date(made.expires_at))}.`,
    endedLine(made.ended, 'Ended'),
    'It is shown only now. Give it to the member in person, or in a call that you make.',
  ]);
}

async function endPass(admin: AdminClient, options: ParsedArguments): Promise<void> {
  const { member, answer } = await readMember(admin, options.positionals[0] ?? '');
  const isLift = options.has('lift');
  const effects = isLift ? LIFT_EFFECTS : ['The pass ends. A key is enrolled with another only.'];
  const question = isLift ? 'Demand no pass any more?' : 'Withdraw the pass?';
  await admin.agree(options, [nameOf(member), ...effects], question);
  const passes = path`/api/v1/org/members/${member.id}/enrollment-passes`;
  const headers = ifMatch(answer);
  await admin.request('DELETE', isLift ? `${passes}/demand` : passes, { headers });
  const done = isLift ? 'needs no pass any more' : 'has no valid pass any more';
  admin.terminal.result({ id: member.id }, [`${nameOf(member)} ${done}.`]);
}

/** The acts that change a member, each with the word that the admin types. */
export const MEMBER_ACTS: readonly (readonly [string, Act])[] = [
  ...Object.entries(ACTS).map(([word, act]) => [word, actOf(act)] as const),
  ['readmit', readmit],
  ['pass', pass],
];
