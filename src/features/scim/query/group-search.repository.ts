import type { EntityManager } from '#platform/database/statements/typeorm.js';
import type { FilterFields } from './filter-fields.js';
import { GROUP_SCHEMA } from '../language/scim-language.js';
import {
  LAST_MODIFIED,
  MEMBER_VERSION,
  directoryGroup,
  type GroupRow,
  type DirectoryGroup,
} from '#domain/directory/provisioning/groups.repository.js';
import { shownName } from '#domain/directory/provisioning/directory-user.js';
import { searchTable, type ScimPage, type ScimSearch } from './search-table.repository.js';
import { isOfOne, type UniqueKeys } from './unique-key.js';

interface FoundRow extends GroupRow {
  sort_value: string | null;
}

/**
 * The SQL of the text in the entity tag of a {@link DirectoryGroup}, between the quotes of `W/"…"`,
 * for filters by `meta.version`.
 */
const TAG = `(g.version || coalesce('-' || nullif(${MEMBER_VERSION}, 0), ''))`;
/** The SQL of the name that a group shows for a member `gm`. */
const MEMBER_NAME = `(SELECT ${shownName('gu')}
  FROM users gu WHERE gu.id = gm.user_id)`;

/**
 * The columns and expressions in which the attributes of a group are stored. Filters and the order
 * of results use them.
 */
const FIELDS: FilterFields = {
  resource: GROUP_SCHEMA,
  columns: {
    id: { kind: 'uuid', expression: 'g.id', required: true },
    displayName: { kind: 'text', expression: 'g.display_name', required: true },
    externalId: { kind: 'text', expression: 'g.external_id' },
    'meta.resourceType': { kind: 'text', expression: `'Group'::text`, required: true },
    'meta.created': { kind: 'timestamp', expression: 'g.created_at', required: true },
    'meta.lastModified': { kind: 'timestamp', expression: LAST_MODIFIED, required: true },
    'meta.version': { kind: 'text', expression: `('W/"' || ${TAG} || '"')`, required: true },
    members: {
      kind: 'relation',
      from: 'group_members gm',
      on: 'gm.group_id = g.id',
      fields: {
        value: { kind: 'uuid', expression: 'gm.user_id' },
        display: { kind: 'text', expression: MEMBER_NAME },
        type: { kind: 'text', expression: `'User'::text` },
      },
    },
  },
};
/**
 * The SQL of the unique index for each attribute that is unique in an organization; `id` needs
 * none, because it is the primary key. `KEYS` are further attributes with an index.
 */
const UNIQUE: UniqueKeys = {
  id: undefined,
  displayName: `(g.org_id::text || lower(g.display_name COLLATE "C"))`,
};
const KEYS: ReadonlySet<string> = new Set(['externalId', 'members.value']);
const SHOWN = `g.id, g.display_name, g.external_id, g.version, ${MEMBER_VERSION} AS member_version, g.created_at, ${LAST_MODIFIED} AS updated_at`;

/**
 * Returns true if a search of groups compares a unique attribute, so that it finds at most one
 * group.
 */
export function isOfOneGroup(search: ScimSearch): boolean {
  return isOfOne(search, UNIQUE);
}

/** Reads one page of the groups that a search finds. */
export function searchGroups(
  tx: EntityManager,
  orgId: string,
  search: ScimSearch,
): Promise<ScimPage<DirectoryGroup>> {
  return searchTable<FoundRow, DirectoryGroup>(tx, orgId, search, {
    from: 'groups g',
    id: 'g.id',
    orgId: 'g.org_id',
    fields: FIELDS,
    unique: UNIQUE,
    keys: KEYS,
    columns: SHOWN,
    show: `
        SELECT ${SHOWN}, listed.sort_value
        FROM listed JOIN groups g ON g.id = listed.id AND g.org_id = $1 ORDER BY listed.place`,
    read: directoryGroup,
  });
}
