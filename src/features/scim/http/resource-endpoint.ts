import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import type { Response } from 'express';
import type { Provisioner } from '#domain/sessions/session-access-policy.service.js';
import type { AdmittedRequest } from '#platform/http/access/caller.js';
import type { PolicyChanges } from '#platform/http/routing/route-policy.js';
import { originOf } from '#platform/http/request/client-origin.js';
import { RESOURCE_SIZE, type Projection } from '../language/scim-language.js';
import { readProjection, readQuery, type QueryFields } from '../query/scim-query.js';
import { entityTag, type Tagged } from '../resources/resource-json.js';
import type { JsonPieces, NextState, ScimResource } from '../resources/scim-resource.js';
import type { ScimCaller } from '../resources/token-checks.js';
import { isNotModified, listHead, listTail, sendJson, streamJson } from './scim-response.js';

/** The rules that all routes of SCIM share. */
export const SCIM = {
  tier: 'general',
  body: { kind: 'scim', max: RESOURCE_SIZE },
  audience: 'api',
  errors: 'scim',
  auth: { session: 'provisioner', origin: 'any' },
} as const satisfies PolicyChanges;

/**
 * A SCIM request of an identity provider. The access guard has already checked its SCIM token,
 * unless the request only reads; then `confirmed` waits for the check.
 */
export interface ScimCall {
  readonly caller: ScimCaller;
  /**
   * Waits until the rate limit and the SCIM token of the request are checked. Nothing may be sent
   * before.
   */
  readonly confirmed: () => Promise<unknown>;
  /** The id in the path; empty for a route without an id. */
  readonly id: string;
  readonly query: QueryFields;
  readonly body: unknown;
  readonly ifMatch: string | undefined;
}

/** Gives a handler the {@link ScimCall} of its request. */
export const Call = createParamDecorator((_: unknown, context: ExecutionContext): ScimCall => {
  const request = context.switchToHttp().getRequest<AdmittedRequest>();
  return {
    caller: { ...(request.session as Provisioner), origin: originOf(request) },
    confirmed: () => request.unconfirmed?.confirm() ?? Promise.resolve(),
    id: String(request.params['id'] ?? ''),
    query: request.query,
    body: request.body as unknown,
    ifMatch: request.headers['if-match'],
  };
});

/** Creates a SCIM resource and sends it (RFC 7644 §3.3). */
export function createResource<Stored extends Tagged>(
  resource: ScimResource<Stored>,
  call: ScimCall,
  response: Response,
): Promise<void> {
  const { caller, body } = call;
  return sendStored(resource, call, 201, response, () => resource.create(caller, body));
}

/** Sends a page of the SCIM resources that a query finds (RFC 7644 §3.4.2). */
export async function listResources<Stored extends Tagged, Listed>(
  resource: ScimResource<Stored, NextState, Listed>,
  { caller, confirmed }: Pick<ScimCall, 'caller' | 'confirmed'>,
  fields: QueryFields,
  response: Response,
): Promise<void> {
  const query = readQuery(fields, resource.type.schema);
  const [found] = await Promise.all([resource.search(caller, query.search), confirmed()]);
  const { totalResults, resources, nextCursor } = found;
  const startIndex = query.search.page.kind === 'index' ? query.startIndex : undefined;
  const head = listHead({ totalResults, startIndex, nextCursor });
  const json = resource.type.renderList(caller.orgId, resources, query);
  if (typeof json === 'string') {
    sendJson(response, 200, head + json + listTail(resources.length));
  } else await streamJson(response, 200, listPieces(head, json));
}

/**
 * Yields rendered resources, which are one text or already in pieces. At its end the generator
 * returns the number of the resources.
 *
 * @param count the number of resources if they are one text; not used for pieces, which count
 *   themselves
 */
export async function* piecesOf(json: string | JsonPieces, count: number): JsonPieces {
  if (typeof json !== 'string') return yield* json;
  if (json !== '') yield json;
  return count;
}

async function* listPieces(head: string, pieces: JsonPieces): AsyncGenerator<string, void> {
  yield head;
  const count = yield* pieces;
  yield listTail(count);
}

/** Sends a SCIM resource, or 304 if the client already has its version (RFC 7644 §3.4.1). */
export function findResource<Stored extends Tagged>(
  resource: ScimResource<Stored>,
  call: ScimCall,
  response: Response,
): Promise<void> {
  const { caller, id, confirmed } = call;
  return sendStored(resource, call, 200, response, async () => {
    const [stored] = await Promise.all([resource.find(caller, id), confirmed()]);
    return stored;
  });
}

/** Replaces a SCIM resource and sends it (RFC 7644 §3.5.1). */
export function replaceResource<Stored extends Tagged>(
  resource: ScimResource<Stored>,
  call: ScimCall,
  response: Response,
): Promise<void> {
  const { caller, id, body, ifMatch } = call;
  return sendStored(resource, call, 200, response, () =>
    resource.replace(caller, id, body, ifMatch),
  );
}

/**
 * Changes a SCIM resource by a PATCH and sends the resource. For a large group it sends 204 without
 * a body, unless the client names the attributes that it wants (RFC 7644 §3.5.2).
 */
export async function patchResource<Stored extends Tagged>(
  resource: ScimResource<Stored>,
  { caller, id, query, body, ifMatch }: ScimCall,
  response: Response,
): Promise<void> {
  const projection = readProjection(query, resource.type.schema);
  const stored = await resource.patch(caller, id, body, ifMatch);
  if (projection.isDefault && !(await resource.type.isShownAfterPatch(caller.orgId, stored))) {
    response.setHeader('ETag', entityTag(stored));
    response.status(204).end();
  } else await send(resource, caller, 200, stored, projection, response);
}

/**
 * Runs a change and sends the resource after it. The requested attributes are parsed before the
 * change, so that a faulty list of them changes nothing.
 */
async function sendStored<Stored extends Tagged>(
  resource: ScimResource<Stored>,
  { caller, query }: ScimCall,
  status: 200 | 201,
  response: Response,
  act: () => Promise<Stored>,
): Promise<void> {
  const projection = readProjection(query, resource.type.schema);
  await send(resource, caller, status, await act(), projection, response);
}

async function send<Stored extends Tagged>(
  resource: ScimResource<Stored>,
  { orgId }: ScimCaller,
  status: 200 | 201,
  stored: Stored,
  projection: Projection,
  response: Response,
): Promise<void> {
  if (isNotModified(response, entityTag(stored))) return;
  if (status === 201) response.setHeader('Location', resource.locationOf(stored.id));
  const json = resource.type.render(orgId, stored, projection);
  if (typeof json === 'string') sendJson(response, status, json);
  else await streamJson(response, status, json);
}
