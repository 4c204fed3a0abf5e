import type { StoredQuestion } from './audit-question.js';

/** A search of the audit log, with the name under which pages offer it. */
export interface NamedQuestion {
  readonly name: string;
  readonly question: StoredQuestion;
}

/** The searches of the audit log that every organization has from the start. */
export const READY_QUESTIONS: readonly NamedQuestion[] = [
  {
    name: 'Who logged in to what last Tuesday?',
    question: { type: 'access', period: 'last_tuesday' },
  },
  { name: 'Who logged in to what today?', question: { type: 'access', period: 'today' } },
  { name: 'Who reached what last week?', question: { type: 'access', period: 'last_week' } },
  {
    name: 'Who lost access, when and why?',
    question: { type: 'access_ended', period: 'last_30_days' },
  },
  {
    name: 'Who was refused what in the last 7 days?',
    question: { type: 'access_refused', period: 'last_7_days' },
  },
  { name: 'Which keys were added this week?', question: { type: 'keys', period: 'this_week' } },
  {
    name: 'Which logins were refused in the last 7 days?',
    question: { type: 'refusals', period: 'last_7_days' },
  },
  {
    name: 'What did admins change in the last 30 days?',
    question: { type: 'changes', period: 'last_30_days' },
  },
];

/** Returns the searches of the audit log that are offered for one user. */
export function questionsAbout(person: string): NamedQuestion[] {
  return [
    { name: 'What did this person get?', question: { type: 'credentials', person } },
    { name: 'Where did this person log in?', question: { type: 'logins', person } },
    { name: 'What was refused to this person?', question: { type: 'refusals', person } },
  ];
}
