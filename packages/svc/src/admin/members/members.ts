import { localTime, tableLines } from '../../terminal/table.js';
import type { Act, Topic } from '../acts/act.js';
import { path, tellOfMore, withQuery } from '../acts/admin-client.js';
import { endedLine, type Ended } from '../acts/ended.js';
import { FILE_FORM, withFileOptions, wroteFile, type FileList } from '../exports/list-file.js';
import { MEMBER_ACTS } from './member-acts.js';
import {
  findMember,
  MEMBER_FILTERS,
  MEMBERS_PATH,
  nameOf,
  queryOf,
  type KnownMember,
} from './member.js';

/**
 * A page of the list of members. `next` is the cursor of the page after it; null on the last page.
 */
interface MemberPage {
  readonly members: readonly (KnownMember & {
    readonly keys: number;
    readonly last_used_at: string | null;
  })[];
  readonly next: string | null;
}

/**
 * One member as the API shows it: with keys and sessions, and with the numbers of things that each
 * act would end.
 */
interface MemberRecord extends KnownMember {
  readonly last_login_at: string | null;
  readonly security_keys: readonly {
    readonly id: string;
    readonly name: string;
    readonly model: string | null;
    readonly last_used_at: string | null;
  }[];
  readonly sessions: readonly unknown[];
  readonly certificates: readonly unknown[];
  readonly ending: Readonly<Record<string, Ended>>;
}

/** The list of members, which can become a file. */
const FILE: FileList = { path: MEMBERS_PATH, items: 'Members', placeOf: ({ id = '' }) => id };

const OPTIONS = [...MEMBER_FILTERS, 'sort', 'after', 'limit'];

const list: Act = {
  form: `[TEXT] ${OPTIONS.map((name) => `[--${name} ${name.toUpperCase()}]`).join(' ')} ${FILE_FORM}`,
  names: withFileOptions({ values: OPTIONS, positionals: 1 }),
  async run(admin, options) {
    const query = queryOf(options, OPTIONS);
    if (await wroteFile(admin, options, FILE, query)) return;
    const page = await admin.json<MemberPage>('GET', withQuery(MEMBERS_PATH, query));
    const rows = page.members.map((member) => [
      member.email ?? '-',
      member.name ?? '-',
      member.is_org_admin ? 'admin' : 'member',
      member.active ? 'active' : 'inactive',
      String(member.keys),
      dayOf(member.last_used_at),
      member.id,
    ]);
    const head = ['ADDRESS', 'NAME', 'ROLE', 'STATE', 'KEYS', 'LAST USE', 'ID'];
    admin.terminal.result(page, tableLines([head, ...rows]));
    tellOfMore(admin, page.next);
  },
};

const show: Act = {
  takes: ['MEMBER'],
  async run(admin, options) {
    const id = await findMember(admin, options.positionals[0] ?? '');
    const member = await admin.json<MemberRecord>('GET', path`/api/v1/org/members/${id}`);
    const facts = [
      ['member', nameOf(member)],
      ['id', member.id],
      ['role', member.is_org_admin ? 'admin' : 'member'],
      ['state', member.active ? 'active' : 'inactive'],
      ['managed by SCIM', member.scim_managed ? 'yes' : 'no'],
      ['last login', dayOf(member.last_login_at)],
      ['sessions', String(member.sessions.length)],
      ['certificates', String(member.certificates.length)],
    ];
    const keys = member.security_keys.map((key) => [
      '  key',
      key.name,
      key.model ?? 'unknown model',
      `last use ${dayOf(key.last_used_at)}`,
    ]);
    const programs = [
      ...(member.api_tokens ?? []).map((one) => ['  API token', one.name, one.id]),
      ...(member.event_receivers ?? []).map((one) => ['  event receiver', one.name, one.id]),
    ];
    const ends = Object.entries(member.ending).map(
      ([act, ended]) => `${act.replaceAll('_', ' ')}: ${endedLine(ended, 'This ends')}`,
    );
    admin.terminal.result(member, [
      ...tableLines(facts),
      ...tableLines(keys),
      ...tableLines(programs),
      ...ends,
    ]);
  },
};

function dayOf(time: string | null): string {
  return time === null ? 'never' : localTime(new Date(time));
}

/** `svc admin members`: lists, shows and changes the people of the organization. */
export const MEMBERS: Topic = new Map([['list', list], ['show', show], ...MEMBER_ACTS]);
