import { Inject, Injectable } from '@nestjs/common';
import { CONFIG, type Config } from '#platform/config/config.js';
import { encodedDocument, type EncodedDocument } from '#platform/http/request/encoded-document.js';
import { RoutePolicies } from '#platform/http/routing/route-policies.js';
import { API_DESCRIPTION, type ApiDescription } from './api-description.js';
import type { OpenApiDocument } from './document-types.js';

/** The OpenAPI document, and its encoded bytes for the response. */
interface ServedDocument {
  readonly document: OpenApiDocument;
  readonly encoded: EncodedDocument;
}

/**
 * Makes the OpenAPI document at the first request for it. The document never changes while the
 * process runs. The code that makes it is loaded only then, because most processes never get such a
 * request.
 */
@Injectable()
export class ApiDocument {
  #served: Promise<ServedDocument> | undefined;

  constructor(
    @Inject(CONFIG) private readonly config: Pick<Config, 'http'>,
    @Inject(API_DESCRIPTION) private readonly description: ApiDescription,
    private readonly routePolicies: RoutePolicies,
  ) {}

  /** Returns the document. If it could not be made, the next call tries again. */
  served(): Promise<ServedDocument> {
    return (this.#served ??= this.#write().catch((cause: unknown) => {
      this.#served = undefined;
      throw cause;
    }));
  }

  async #write(): Promise<ServedDocument> {
    const { apiDocument } = await import('./api-document.js');
    const { description, routePolicies, config } = this;
    const examples = await description.examples();
    const document = apiDocument(routePolicies, description, examples, config.http.baseUrl);
    return { document, encoded: encodedDocument(Buffer.from(JSON.stringify(document))) };
  }
}
