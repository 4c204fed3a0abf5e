import type { AuditRow } from '#domain/audit/audit-filter.js';
import { AUDIT_KINDS, kindOf, TYPES_OF_KIND } from '#domain/audit/audit-kinds.js';
import {
  problemOf,
  QUESTION_FIELDS,
  queryOf,
  questionAt,
  searchOf,
  type AuditQuestion,
  type QuestionField,
} from '#domain/admin/audit-search/audit-question.js';
import {
  questionsAbout,
  READY_QUESTIONS,
  type NamedQuestion,
} from '#domain/admin/audit-search/ready-questions.js';
import type { SavedQuestion } from '#domain/admin/audit-search/saved-questions.repository.js';
import { modelName } from '#domain/keys/authenticators/authenticator-models.js';
import { deviceOfEvent } from '#platform/text/device-name.js';
import { lineOf, LONGEST_NAME } from '../event-line.js';
import { labelOf, shortened } from '../event-words.js';

/** The path of the page that shows the audit log. */
const PAGE = '/admin/audit';

/** The filters of the form, and for each filter that cannot be used the reason why. */
export interface AskedQuestion {
  readonly question: AuditQuestion;
  readonly problems: Readonly<Partial<Record<QuestionField, string>>>;
}

/**
 * Reads the filters of a search from a query. An empty field is no filter, because a form also
 * sends fields that the user did not fill.
 */
export function readQuestion(query: Readonly<Record<string, string | undefined>>): AskedQuestion {
  const texts = QUESTION_FIELDS.map((field) => [field, query[field]?.trim() ?? ''] as const);
  const set = texts.filter(([, text]) => text !== '');
  const problems = set.flatMap(([field, text]) => {
    const problem = problemOf(field, text);
    return problem === undefined ? [] : [[field, problem] as const];
  });
  return { question: Object.fromEntries(set), problems: Object.fromEntries(problems) };
}

/**
 * Returns the URL of the page that shows the events of a search.
 * @param after the cursor after which the events begin; undefined for the first page
 */
export function hrefOf(question: AuditQuestion, after?: string): string {
  const query = queryOf(question);
  const place = after === undefined ? '' : `after=${after}`;
  const all = [query, place].filter((part) => part !== '').join('&');
  return all === '' ? PAGE : `${PAGE}?${all}`;
}

/** Returns the URLs at which the events of a search can be downloaded, one for each format. */
export function exportsOf(question: AuditQuestion) {
  const { from, to } = searchOf(question);
  const { from: _, to: __, ...others } = question;
  const query = new URLSearchParams(queryOf(others));
  if (from) query.set('from', from.toISOString());
  if (to) query.set('to', to.toISOString());
  return (['csv', 'ndjson'] as const).map((format) => {
    query.set('format', format);
    return { name: format.toUpperCase(), href: `/api/v1/org/audit-events?${query.toString()}` };
  });
}

/**
 * Returns the links to ready-made searches (questions): those that every organization has, those
 * about the person in the form, and those that admins saved.
 */
export function questionLinks(
  { person, email, user }: AuditQuestion,
  saved: readonly SavedQuestion[],
  now: Date,
): { readonly name: string; readonly href: string }[] {
  const own = saved.map(({ name, filters }): NamedQuestion => ({ name, question: filters }));
  const named = person ?? email ?? user;
  const about = named === undefined ? [] : questionsAbout(named);
  return [...READY_QUESTIONS, ...about, ...own].map(({ name, question }) => ({
    name,
    href: hrefOf(questionAt(question, now)),
  }));
}

/**
 * The choices of the filter by type of event: first the groups of types, then every single type
 * under the name of its kind.
 */
export const TYPE_CHOICES = {
  groups: [
    { value: 'access', text: 'Who got in to what' },
    { value: 'changes', text: 'Changes by admins' },
    ...Object.entries(AUDIT_KINDS).map(([value, text]) => ({ value, text: `All: ${text}` })),
  ],
  kinds: [...TYPES_OF_KIND].map(([kind, types]) => ({
    name: AUDIT_KINDS[kind],
    types: types.map((value) => ({ value, text: labelOf(value) })),
  })),
};

/** Describes the filters that are set, in words and with their values. */
export function summaryOf(question: AuditQuestion): string {
  const words: Readonly<Record<QuestionField, string>> = {
    type: 'type',
    person: 'person',
    user: 'user',
    email: 'e-mail',
    client: 'application',
    target: 'target',
    key: 'key',
    ip: 'address',
    request: 'request',
    from: 'from',
    to: 'to',
  };
  return QUESTION_FIELDS.filter((field) => question[field] !== undefined)
    .map((field) => `${words[field]} ${typeText(field, question[field] ?? '')}`)
    .join(', ');
}

function typeText(field: QuestionField, text: string): string {
  if (field !== 'type') return text;
  const group = TYPE_CHOICES.groups.find(({ value }) => value === text);
  return `“${group?.text ?? labelOf(text)}”`;
}

/**
 * The most characters that the page of an event shows of one detail, or of the name of a browser.
 */
const LONGEST_DETAIL = 10_000;

/** Returns the texts and links of an audit event that its own page shows. */
export function factsOf(row: AuditRow, members: ReadonlySet<string>) {
  const person = (id: string | null, email: string | null) =>
    id === null && email === null
      ? undefined
      : {
          text: email ?? id ?? '',
          member: id !== null && members.has(id) ? `/admin/members/${id}` : undefined,
          events: hrefOf({ person: id ?? email ?? '' }),
        };
  return {
    ...lineOf(row),
    ip: row.ip,
    id: row.id,
    type: row.type,
    label: labelOf(row.type),
    kind: AUDIT_KINDS[kindOf(row.type, row.class)],
    actor: person(row.actorId, row.actorEmail),
    subject: row.subjectId === row.actorId ? undefined : person(row.subjectId, row.subjectEmail),
    client: clientOf(row),
    ipHref: row.ip === null ? undefined : hrefOf({ ip: row.ip }),
    requestId: row.requestId,
    requestHref: row.requestId === null ? undefined : hrefOf({ request: row.requestId }),
    device: deviceOfEvent(row.userAgent),
    details: Object.entries(row.details).map(([name, value]) => detailOf(name, value, row)),
  };
}

/**
 * Returns one detail of an audit event as its page shows it. The raw value from the log is always
 * shown. A known detail also gets a label and an explanation in words.
 */
function detailOf(name: string, value: unknown, { details }: AuditRow) {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  const raw = shortened(text, LONGEST_DETAIL);
  if (name === 'aaguid') {
    return { name, raw, label: 'Model of the security key', text: modelName(text) ?? 'Unknown' };
  }
  if (name === 'key_id') {
    const keyName = details['key_name'];
    const known = typeof keyName === 'string' ? shortened(keyName, LONGEST_NAME) : undefined;
    return { name, raw, label: 'Security key', text: known };
  }
  return { name, raw, label: undefined, text: undefined };
}

function clientOf({ clientName, details }: AuditRow) {
  const id = typeof details['client_id'] === 'string' ? details['client_id'] : undefined;
  const text = clientName ?? id;
  return text === undefined ? undefined : { text, events: hrefOf({ client: id ?? text }) };
}
