import { addKey } from '../keys.js';
import { newAddress, type Answer } from '../client.js';
import type { FailoverWorld, QueriedServer } from './failover-world.js';
import { succeeded, type Person } from './person.js';

/**
 * A request that ends the access of a person, or of one of the person's keys. A failover test
 * checks that a failover does not undo it.
 */
export interface Leaving {
  readonly name: string;
  /** Prepares the request, before the test stops replication. */
  prepare?(world: FailoverWorld, person: Person): Promise<void>;
  act(world: FailoverWorld, person: Person): Promise<Answer>;
  /**
   * An SQL statement with a column `done`, which is true if the request has its effect on the user
   * with the id `$1`.
   */
  readonly isDone: string;
}

const PATCH = 'urn:ietf:params:scim:api:messages:2.0:PatchOp';

/**
 * The requests that a round of the failover test sends by default. If a failover undid the effect
 * of one, the access would come back.
 */
export const LEAVINGS: readonly Leaving[] = [
  {
    name: 'SCIM DELETE',
    act: (world, { scimId }) => world.scim('DELETE', `/Users/${scimId}`),
    isDone: 'SELECT NOT EXISTS (SELECT FROM users WHERE id = $1) AS done',
  },
  {
    name: 'SCIM active: false',
    act: (world, { scimId }) =>
      world.scim('PATCH', `/Users/${scimId}`, {
        schemas: [PATCH],
        Operations: [{ op: 'replace', path: 'active', value: false }],
      }),
    isDone: 'SELECT NOT active AS done FROM users WHERE id = $1',
  },
  {
    name: 'own key removed',
    async prepare({ service }, { browser, email }) {
      const spare = service.newKey();
      succeeded(await addKey(service, browser, spare), `the second key of ${email}`);
    },
    act: async (_, person) => {
      const first = await removeFirstKey(person);
      if (first.status !== 401) return first;
      // Some scenarios wait for longer than the minute in which a removal accepts the last touch.
      succeeded(await person.logIn(), `the second login of ${person.email}`);
      return removeFirstKey(person);
    },
    isDone: 'SELECT count(*) = 1 AS done FROM authenticators WHERE user_id = $1',
  },
  {
    name: 'credentials revoked by an admin',
    act: (world, { scimId }) =>
      world.asAdmin('POST', `/api/v1/org/members/${scimId}/revoke-credentials`, {}),
    isDone: 'SELECT count(*) = 0 AS done FROM authenticators WHERE user_id = $1',
  },
];

async function removeFirstKey({ browser }: Person): Promise<Answer> {
  const options = { address: newAddress() };
  const { keys } = (await browser.get('/v1/keys', options)).json as { keys: { id: string }[] };
  return browser.send('DELETE', `/v1/keys/${keys[0]?.id}`, options);
}

/**
 * Returns true if a PostgreSQL server, which may be a standby, has the effect of the request on a
 * person.
 */
export async function isDoneOn(
  node: QueriedServer,
  { isDone }: Leaving,
  { scimId }: Person,
): Promise<boolean> {
  const [row] = await node.query<{ done: boolean }>(isDone, [scimId]);
  return row?.done === true;
}
