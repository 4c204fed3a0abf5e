import { z } from 'zod';
import {
  problemOf,
  QUESTION_FIELDS,
  type StoredQuestion,
} from '#domain/admin/audit-search/audit-question.js';

import { PERIODS, type Period } from '#domain/admin/audit-search/periods.js';
import type { NamedQuestion } from '#domain/admin/audit-search/ready-questions.js';
import type { SavedQuestion } from '#domain/admin/audit-search/saved-questions.repository.js';
import { isVisibleLine, VISIBLE_LINE } from '#platform/text/single-line.js';

/** The largest number of characters in the name of a saved question. */
const LONGEST_NAME = 100;

const NAME = z
  .string()
  .trim()
  .min(1, 'must not be empty')
  .max(LONGEST_NAME, `must have at most ${LONGEST_NAME} characters`)
  .refine(isVisibleLine, VISIBLE_LINE);

/**
 * Makes the schema of one filter of a saved question. The filter must follow the same rules as the
 * search form on the page of the audit log.
 */
function fieldOf(field: (typeof QUESTION_FIELDS)[number]) {
  return z
    .string()
    .trim()
    .superRefine((text, context) => {
      const message = text === '' ? 'must not be empty' : problemOf(field, text);
      if (message !== undefined) context.addIssue({ code: 'custom', message });
    })
    .optional();
}

/**
 * The body of `POST /api/v1/org/audit-questions`: a name and the filters. If it has a `period`,
 * such as the last week, the days `from` and `to` are ignored.
 */
export const SAVE_QUESTION = z
  .strictObject({
    name: NAME.describe('The name of the question.'),
    type: fieldOf('type').describe('A type of events, or a group of types.'),
    person: fieldOf('person').describe('A user: an id, an address, or the beginning of a name.'),
    user: fieldOf('user').describe('The id of a user.'),
    email: fieldOf('email').describe('The address of a user.'),
    client: fieldOf('client').describe('The id or the name of a client.'),
    target: fieldOf('target').describe('The name or the id of a target.'),
    key: fieldOf('key').describe('A security key: an id, an AAGUID or a part of its model.'),
    ip: fieldOf('ip').describe('An address or a network.'),
    request: fieldOf('request').describe('The id of a request.'),
    from: fieldOf('from').describe('The first day.'),
    to: fieldOf('to').describe('The last day.'),
    period: z
      .enum(Object.keys(PERIODS) as Period[])
      .optional()
      .describe('The time until now, in place of `from` and `to`.'),
  })
  .refine(
    (body) => Object.entries(body).some(([key, text]) => key !== 'name' && text !== undefined),
    'a question needs at least one filter',
  )
  .describe('A name and at least one filter.');
/** The body of `POST /api/v1/org/audit-questions` after validation, as the handler gets it. */
export type SaveQuestion = z.output<typeof SAVE_QUESTION>;

/** Converts the body of a request to the question that is saved. */
export function questionOf({ name, from, to, ...fields }: SaveQuestion): NamedQuestion {
  const days = fields.period === undefined ? { from, to } : {};
  const set = Object.entries({ ...fields, ...days }).filter(([, text]) => text !== undefined);
  const question: StoredQuestion = Object.fromEntries(set);
  return { name, question };
}

/** The parameters of `DELETE /api/v1/org/audit-questions/{id}`. */
export const QUESTION_ID = z.object({
  id: z.string().max(64).describe('The id of the saved question.'),
});

/** A saved question in the JSON of the API. */
export const QUESTION_JSON = z
  .object({
    id: z.string().describe('The id of the question.'),
    name: z.string().describe('Its name.'),
    filters: z.record(z.string(), z.string().optional()).describe('Its filters, by their names.'),
    created_at: z.string().describe('The time at which it was saved.'),
  })
  .meta({ id: 'AuditQuestion', description: 'A saved question to the audit log.' });
/** The type of a saved question in the JSON of the API, by which the compiler checks answers. */
export type QuestionJson = z.output<typeof QUESTION_JSON>;

/** The JSON of the saved questions of an organization. */
export const QUESTIONS_JSON = z
  .object({ questions: z.array(QUESTION_JSON).describe('The questions.') })
  .describe('The saved questions of the organization.');

/** Renders a saved question as JSON, with its time in ISO 8601. */
export function questionJson({ id, name, filters, createdAt }: SavedQuestion): QuestionJson {
  return { id, name, filters: { ...filters }, created_at: createdAt.toISOString() };
}
