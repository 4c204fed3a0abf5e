/** A JSON Schema of the 2020-12 draft, or a reference to one. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** A reference to a component of the document. */
export interface Reference {
  readonly $ref: string;
}

/** A parameter of an operation in its path, its query or its headers. */
export interface ParameterObject {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly required: boolean;
  readonly description?: string;
  readonly schema: JsonSchema;
  /** The value in the example of the operation. */
  readonly example?: unknown;
  /** The value in another recorded request, if the request of the example lacks the parameter. */
  readonly examples?: NamedExamples;
}

/** Examples by their names (the Example Object of OpenAPI 3.1). */
export type NamedExamples = Readonly<Record<string, { readonly value: unknown }>>;

/** The bodies of a request or response, by their media types. */
export type ContentObject = Readonly<
  Record<
    string,
    {
      readonly schema: JsonSchema;
      readonly example?: unknown;
      readonly examples?: NamedExamples;
    }
  >
>;

/** A response of an operation (the Response Object of OpenAPI 3.1). */
export interface ResponseObject {
  readonly description: string;
  readonly headers?: Readonly<Record<string, Reference>>;
  readonly content?: ContentObject;
}

/** The body of a request (the Request Body Object of OpenAPI 3.1). */
export interface RequestBodyObject {
  readonly description: string;
  readonly required: boolean;
  readonly content: ContentObject;
}

/** An operation: one method at one path. */
export interface OperationObject {
  readonly operationId: string;
  readonly summary: string;
  readonly description: string;
  readonly tags: readonly string[];
  readonly security: readonly Readonly<Record<string, readonly string[]>>[];
  /**
   * The scope that a token needs. It is a field of our own, because OpenAPI defines scopes only for
   * the types `oauth2` and `openIdConnect` of security schemes (§4.8.30). The document uses neither
   * type.
   */
  readonly 'x-scope'?: string;
  readonly parameters?: readonly ParameterObject[];
  readonly requestBody?: RequestBodyObject;
  readonly responses: Readonly<Record<string, ResponseObject | Reference>>;
  /**
   * The codes of the errors of the operation, by status. Each code has a page at `/errors/{code}`.
   */
  readonly 'x-error-codes': Readonly<Record<string, readonly string[]>>;
}

/** A tag, by which the document groups operations. */
export interface TagObject {
  readonly name: string;
  readonly description: string;
}

/** The parts of the document to which its operations refer by `$ref`. */
export interface ComponentsObject {
  readonly schemas: Readonly<Record<string, JsonSchema>>;
  readonly responses: Readonly<Record<string, ResponseObject>>;
  readonly headers: Readonly<Record<string, object>>;
  readonly securitySchemes: Readonly<Record<string, object>>;
}

/** An OpenAPI document of version 3.1. */
export interface OpenApiDocument {
  readonly openapi: '3.1.1';
  readonly info: {
    readonly title: string;
    readonly version: string;
    readonly description: string;
    readonly contact: { readonly name: string; readonly url: string };
    readonly license: { readonly name: string; readonly identifier: string };
  };
  readonly jsonSchemaDialect: string;
  readonly servers: readonly { readonly url: string }[];
  readonly tags: readonly TagObject[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, OperationObject>>>>;
  readonly components: ComponentsObject;
}
