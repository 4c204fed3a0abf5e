import { tableLines } from '../../terminal/table.js';
import type { ParsedArguments } from '../../program/arguments.js';
import { usageFailure } from '../../program/failure.js';
import type { Act, Topic } from '../acts/act.js';
import { tellOfMore, withQuery, type AdminClient } from '../acts/admin-client.js';
import { givenData } from '../acts/given-data.js';
import { findMember } from '../members/member.js';
import { changeRule } from './rule-change.js';
import {
  findTarget,
  readTarget,
  TARGETS_PATH,
  type RuleAssignment,
  type WholeRule,
  type ListedTarget,
} from './targets.js';

const PAGE = ['after', 'limit'];

/** The options of `assign` and `unassign`, which name people (`--user`) and groups (`--group`). */
const ASSIGN = { flags: ['yes'], values: ['user', 'group'] };
const ASSIGN_FORM = '[--user MEMBER]... [--group ID]... [--yes]';

const list: Act = {
  form: '[TEXT] [--kind KIND] [--after AFTER] [--limit LIMIT]',
  names: { values: ['kind', ...PAGE], positionals: 1 },
  async run(admin, options) {
    const page = await admin.json<{ targets: readonly ListedTarget[]; next: string | null }>(
      'GET',
      withQuery(TARGETS_PATH, {
        q: options.positionals[0],
        kind: options.value('kind'),
        ...pageOf(options),
      }),
    );
    const rows = page.targets.map((target) => [
      target.name,
      whoOf(target),
      Object.keys(target.conditions).join(' '),
      `${target.kind}/${target.id}`,
    ]);
    const head = ['NAME', 'ADMITS', 'CONDITIONS', 'TARGET'];
    admin.terminal.result(page, tableLines([head, ...rows]));
    tellOfMore(admin, page.next);
  },
};

function whoOf({ access, assigned: { users, groups } }: ListedTarget): string {
  return access === 'everyone' ? 'everyone' : `${users} people, ${groups} groups`;
}

function pageOf(options: ParsedArguments) {
  return { after: options.value('after'), limit: options.value('limit') };
}

const show: Act = {
  takes: ['TARGET'],
  async run(admin, options) {
    const { target } = await readTarget(admin, await targetOf(admin, options));
    const facts = [
      ['target', target.name],
      ['id', `${target.kind}/${target.id}`],
      ['admits', whoOf(target)],
      ...Object.entries(target.conditions).map(([name, value]) => [name, String(value)]),
      ...target.assignments.map((each) => Object.entries(each)[0] ?? []),
    ];
    admin.terminal.result(target, tableLines(facts));
  },
};

const people: Act = {
  takes: ['TARGET'],
  form: '[--after AFTER] [--limit LIMIT]',
  names: { values: PAGE },
  async run(admin, options) {
    const to = `${await targetOf(admin, options)}/people`;
    const page = await admin.json<{
      readonly count: number;
      readonly people: readonly { id: string; email: string | null; name: string | null }[] | null;
      readonly next: string | null;
    }>('GET', withQuery(to, pageOf(options)));
    const rows = (page.people ?? []).map(({ id, email, name }) => [email ?? '-', name ?? '-', id]);
    const hidden = page.people === null ? ['Their names need a touch of the last 5 minutes.'] : [];
    const lines = tableLines([['ADDRESS', 'NAME', 'ID'], ...rows]);
    admin.terminal.result(page, [`Admitted: ${page.count}`, ...hidden, ...lines]);
    tellOfMore(admin, page.next);
  },
};

const check: Act = {
  takes: ['MEMBER', 'TARGET'],
  async run(admin, options) {
    const [member = '', target = ''] = options.positionals;
    const user = await findMember(admin, member);
    const [kind, id] = (await findTarget(admin, target)).split('/').slice(-2);
    const document = await admin.json<{ allowed: boolean; because: string }>(
      'GET',
      withQuery(`${TARGETS_PATH}/check`, { user, kind, id }),
    );
    const { allowed, because } = document;
    const answer = allowed ? `${member} reaches ${target}` : `${member} does not reach ${target}`;
    admin.terminal.result(document, [`${answer}: ${because.replaceAll('_', ' ')}.`]);
  },
};

const set: Act = {
  takes: ['TARGET'],
  form: '--data JSON|@FILE|@- [--yes]',
  names: { flags: ['yes'], values: ['data'] },
  async run(admin, options) {
    const usage = 'svc admin access set TARGET --data @FILE';
    const data = options.value('data');
    if (data === undefined) throw usageFailure('The rule is missing.', usage);
    const rule = givenData(data, usage);
    await changeRule(admin, options, await targetOf(admin, options), () => rule);
  },
};

const everyone = (rule: WholeRule): WholeRule => ({ ...rule, access: 'everyone' });

const open: Act = {
  takes: ['TARGET'],
  form: '[--yes]',
  names: { flags: ['yes'] },
  async run(admin, options) {
    await changeRule(admin, options, await targetOf(admin, options), everyone);
  },
};

/**
 * Makes the act `assign` or `unassign`: it adds people and groups to the rule of a target, or takes
 * them out.
 */
function assignAct(word: 'assign' | 'unassign'): Act {
  return {
    takes: ['TARGET'],
    form: ASSIGN_FORM,
    names: ASSIGN,
    async run(admin, options) {
      const named = await assignmentsOf(admin, options);
      if (named.length === 0) {
        const usage = `svc admin access ${word} TARGET ${ASSIGN_FORM}`;
        throw usageFailure('Neither --user nor --group is given.', usage);
      }
      const keys = new Set(named.map(keyOf));
      await changeRule(admin, options, await targetOf(admin, options), (rule): WholeRule => {
        const others = rule.assignments.filter((each) => !keys.has(keyOf(each)));
        if (word === 'unassign') return { ...rule, assignments: others };
        return { ...rule, access: 'assigned', assignments: [...others, ...named] };
      });
    },
  };
}

async function assignmentsOf(
  admin: AdminClient,
  options: ParsedArguments,
): Promise<RuleAssignment[]> {
  const users: RuleAssignment[] = [];
  for (const text of options.all('user')) users.push({ user: await findMember(admin, text) });
  return [...users, ...options.all('group').map((group) => ({ group }))];
}

function keyOf(assignment: RuleAssignment): string {
  return JSON.stringify(assignment).toLowerCase();
}

const csv: Act = {
  async run(admin) {
    const { text } = await admin.request('GET', `${TARGETS_PATH}/export`);
    admin.terminal.answer(text);
  },
};

function targetOf(admin: AdminClient, options: ParsedArguments): Promise<string> {
  return findTarget(admin, options.positionals[0] ?? '');
}

/**
 * `svc admin access`: shows and changes who may reach which target. A target is an application, an
 * AWS role, a group of hosts, or a GitHub installation.
 */
export const ACCESS: Topic = new Map([
  ['list', list],
  ['show', show],
  ['people', people],
  ['check', check],
  ['assign', assignAct('assign')],
  ['unassign', assignAct('unassign')],
  ['everyone', open],
  ['set', set],
  ['export', csv],
]);
