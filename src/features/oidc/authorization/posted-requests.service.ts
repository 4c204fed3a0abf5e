import { randomBytes } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { artifactId } from '#domain/grants/artifact.js';
import { ArtifactsRepository } from '#domain/grants/artifacts.repository.js';
import { BatchedQueries } from '#domain/grants/batched-queries.service.js';

/** The model under which a kept request is stored, beside those of the library. */
const MODEL = 'PostedRequest';
/** A reference in the form of a pushed request's (RFC 9126 §2.2), under a name of ours: it stands for no authenticated client. */
const PREFIX = 'urn:svc:params:oauth:posted-request:';
/** Seconds that a request is kept, as long as a pushed one: the browser comes for it at once. */
const LIFETIME = 60;
/** The most expired rows that a new one takes along. */
const TAKEN_ALONG = 20;
/** In characters: no id of a client is longer. */
const LONGEST_CLIENT_ID = 256;

/** Authorization requests that came by POST and are too long for an address, kept until the browser comes by GET. */
@Injectable()
export class PostedRequests {
  constructor(
    private readonly dataSource: DataSource,
    private readonly artifacts: ArtifactsRepository,
    private readonly statements: BatchedQueries,
  ) {}

  /**
   * Keeps a request for a minute. Each one that comes takes some rows along that have expired, so that a flood of long
   * requests does not pile up until the next clean-up.
   *
   * @returns the query that stands for it at the authorization endpoint
   */
  async keep(request: URLSearchParams): Promise<URLSearchParams> {
    await this.artifacts.removeExpired(this.dataSource.manager, TAKEN_ALONG);
    const secret = randomBytes(32).toString('base64url');
    const exp = Math.floor(Date.now() / 1000) + LIFETIME;
    await this.statements.writeArtifact({
      model: MODEL,
      id: artifactId(secret),
      payload: { query: request.toString(), exp },
      grantId: null,
      clientId: null,
      userId: null,
      userCode: null,
      expiresIn: LIFETIME,
    });
    const clientId = boundClient(request);
    return new URLSearchParams({
      ...(clientId !== undefined && { client_id: clientId }),
      request_uri: PREFIX + secret,
    });
  }

  /** Whether a query stands for a request that was kept. */
  isReference(query: URLSearchParams): boolean {
    return query.get('request_uri')?.startsWith(PREFIX) === true;
  }

  /** The request that a query stands for, with the client that it names; undefined once it is over. */
  async find(query: URLSearchParams): Promise<URLSearchParams | undefined> {
    const secret = (query.get('request_uri') ?? '').slice(PREFIX.length);
    const found = await this.statements.findArtifact({ model: MODEL, id: artifactId(secret) });
    if (!found) return undefined;
    const { query: kept, exp } = found.payload as { readonly query: string; readonly exp: number };
    const request = new URLSearchParams(kept);
    const isOf = (boundClient(request) ?? null) === query.get('client_id');
    return isOf && exp > Date.now() / 1000 ? request : undefined;
  }
}

/** The client that a reference is bound to, where the request names one. */
function boundClient(request: URLSearchParams): string | undefined {
  const [clientId, ...others] = request.getAll('client_id');
  const isOne = others.length === 0 && (clientId?.length ?? 0) <= LONGEST_CLIENT_ID;
  return isOne ? clientId : undefined;
}
