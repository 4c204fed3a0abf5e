/**
 * The server with which our SCIM server is compared: `scimmy-routers` on Express. Its users are in
 * memory, and are found by id and by userName without a search. It has no database, no audit, no
 * rate limits and no versions.
 */
import { randomUUID } from 'node:crypto';
import express from 'express';
import { Resources, Schemas, Types } from 'scimmy';
import { SCIMMYRouters } from 'scimmy-routers';
import { benchUser, userId } from './scim-data.js';

const [count] = process.argv.slice(2);
const users = new Map();
const byName = new Map();

for (let n = 0; n < Number(count); n += 1) keep({ ...benchUser(n), id: userId(n) });

function keep(user) {
  const now = new Date().toISOString();
  const created = users.get(user.id)?.meta.created ?? now;
  const kept = { ...user, meta: { created, lastModified: now } };
  users.set(kept.id, kept);
  byName.set(kept.userName.toLowerCase(), kept);
  return kept;
}

/**
 * Returns the users of one page. The page is cut here, because the library would convert all users
 * first.
 */
function* page({ startIndex = 1, count: most = 20 }) {
  let index = 0;
  for (const user of users.values()) {
    index += 1;
    if (index >= startIndex + most) return;
    if (index >= startIndex) yield user;
  }
}

Resources.declare(Resources.User)
  .extend(Schemas.EnterpriseUser, false)
  .ingress(({ id }, data) => {
    const taken = byName.get(data.userName.toLowerCase());
    if (taken && taken.id !== id) throw new Types.Error(409, 'uniqueness', 'taken');
    return keep({ ...JSON.parse(JSON.stringify(data)), id: id ?? randomUUID() });
  })
  .egress(({ id, filter, constraints = {} }) => {
    if (id) {
      const user = users.get(id);
      if (!user) throw new Types.Error(404, null, 'There is no such user.');
      return user;
    }
    const [, name] = /^userName eq "([^"]*)"$/.exec(filter?.expression ?? '') ?? [];
    if (name !== undefined) return [byName.get(name.toLowerCase())].filter(Boolean);
    constraints.totalResults = users.size;
    return [...page(constraints)];
  })
  .degress(({ id }) => void users.delete(id));

const app = express();
// The library writes numbers into the query. Express 5 would lose them, because it parses the query
// again at every access. So the parsed query is stored once.
app.use((request, _response, next) => {
  Object.defineProperty(request, 'query', { value: request.query });
  next();
});
const server = app.listen(0, '127.0.0.1', () => {
  const { port } = server.address();
  const baseUrl = `http://127.0.0.1:${port}`;
  app.use(
    '/scim/v2',
    new SCIMMYRouters({
      type: 'bearer',
      baseUri: () => baseUrl,
      handler(request) {
        if (request.header('authorization') !== 'Bearer bench') throw new Error('no token');
        return 'bench';
      },
    }),
  );
  process.on('disconnect', () => server.close(() => process.exit()));
  process.send({ baseUrl, scimToken: 'bench' });
});
