import { localTime, tableLines } from '../terminal/table.js';
import type { Act, Topic } from './acts/act.js';
import { tellOfMore, withQuery } from './acts/admin-client.js';
import { FILE_FORM, withFileOptions, wroteFile, type FileList } from './exports/list-file.js';
import { MEMBER_FILTERS, queryOf } from './members/member.js';

/** The list of the security keys of all members, which can become a file. */
const KEYS: FileList = {
  path: '/api/v1/org/keys',
  items: 'Keys',
  placeOf: ({ member_id: member = '', key_id: key = '' }) => `${member}.${key}`,
};

/** A page of the list of keys. `next` is the cursor of the page after it; null on the last page. */
interface KeyPage {
  readonly keys: readonly {
    readonly email: string | null;
    readonly name: string | null;
    readonly member_id: string;
    readonly active: boolean;
    readonly key_name: string;
    readonly model: string | null;
    readonly fips: boolean;
    readonly user_verification: boolean;
    readonly last_used_at: string | null;
  }[];
  readonly next: string | null;
}

const OPTIONS = [...MEMBER_FILTERS, 'after', 'limit'];

const list: Act = {
  form: `[TEXT] ${OPTIONS.map((name) => `[--${name} ${name.toUpperCase()}]`).join(' ')} ${FILE_FORM}`,
  names: withFileOptions({ values: OPTIONS, positionals: 1 }),
  async run(admin, options) {
    const query = queryOf(options, OPTIONS);
    if (await wroteFile(admin, options, KEYS, query)) return;
    const page = await admin.json<KeyPage>('GET', withQuery(KEYS.path, query));
    const rows = page.keys.map((key) => [
      key.email ?? key.name ?? key.member_id,
      key.active ? 'active' : 'inactive',
      key.key_name,
      key.model ?? 'unknown model',
      key.fips ? 'FIPS' : '-',
      key.user_verification ? 'PIN' : 'touch only',
      key.last_used_at === null ? 'never' : localTime(new Date(key.last_used_at)),
    ]);
    const head = ['MEMBER', 'STATE', 'KEY', 'MODEL', 'FIPS', 'VERIFIES BY', 'LAST USE'];
    admin.terminal.result(page, tableLines([head, ...rows]));
    tellOfMore(admin, page.next);
  },
};

/** `svc admin keys`: the security keys of all members of the organization. */
export const KEYS_TOPIC: Topic = new Map([['list', list]]);
