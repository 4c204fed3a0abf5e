import type { Target, TargetRef } from '#domain/admin/access-rules/target.js';
import { conditionWords, everyoneWords, kindWords, ruleWords } from './rule-words.js';
import { targetAddress } from './target-path.js';

/** Returns a target with the texts, URLs and form values that the templates of its pages show. */
export function shownTarget(target: Target, ref: TargetRef) {
  const { conditions } = target;
  const { touchWithinSeconds: seconds } = conditions;
  const path = targetAddress(ref);
  return {
    path,
    api: `/api/v1/org${path.slice('/admin'.length)}`,
    tag: `"${target.version}"`,
    target,
    kindWords: kindWords(target),
    everyoneWords: everyoneWords(target),
    isMade: ref.kind === 'aws_role' || ref.kind === 'host_group',
    rule: ruleWords(target),
    conditions: conditionWords(conditions),
    // The minutes are cut to four decimal places. That is exact enough, because the form rounds
    // them to whole seconds.
    minutes: seconds === null ? '' : String(Math.floor((seconds / 60) * 10_000) / 10_000),
  };
}
