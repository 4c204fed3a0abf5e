import type { ReachLine } from '#domain/admin/access-rules/reach-lines.js';
import { refOf } from '#domain/admin/access-rules/target.js';
import type { CsvColumns } from '#platform/text/csv.js';

/**
 * The columns of the CSV that lists which person can use which target, such as an application or a
 * role of AWS. No column says through which group or assignment a person is admitted, because the
 * members of a group may be confidential. A target that admits everyone has one line without a
 * person.
 */
export const REACH_COLUMNS: CsvColumns<ReachLine> = {
  kind: ({ target }) => (target.isCluster ? 'cluster' : target.kind),
  target: ({ target }) => target.name,
  target_id: ({ target }) => refOf(target).id,
  role_arn: ({ target }) => target.roleArn,
  hosts: ({ target }) => target.hosts.join(' '),
  logins: ({ target }) => target.logins.join(' '),
  access: ({ target }) => target.access,
  conditions: ({ target }) => conditionsOf(target.conditions),
  person: ({ person }) => person && (person.email ?? person.name),
  person_id: ({ person }) => person && person.id,
};

function conditionsOf({
  touchWithinSeconds,
  models,
  userVerification,
}: ReachLine['target']['conditions']): string {
  const words = [
    touchWithinSeconds === null ? null : `touch within ${touchWithinSeconds} seconds`,
    models,
    userVerification === null ? null : 'user verification',
  ];
  return words.filter((word) => word !== null).join(', ');
}
