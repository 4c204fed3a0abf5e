import { createRequire } from 'node:module';

/**
 * The types of the parts of samlify that the tests use. Samlify's own types are not used, because
 * they would add the types of browsers to the program.
 */
interface Samlify {
  IdentityProvider(settings: object): SamlifyProvider;
  ServiceProvider(settings: object): SamlifyServiceProvider;
  readonly SamlLib: {
    readonly defaultLoginResponseTemplate: { readonly context: string };
    replaceTagsByValue(template: string, values: Readonly<Record<string, string>>): string;
  };
  setSchemaValidator(validator: { validate(xml: string): Promise<string> }): void;
}

/** An identity provider of samlify. */
export interface SamlifyProvider {
  getMetadata(): string;
  /**
   * Parses a request. Rejects if it is malformed, or if the metadata demand a signature and the
   * signature is missing or wrong.
   */
  parseLoginRequest(
    serviceProvider: SamlifyServiceProvider,
    binding: 'redirect',
    request: { readonly query: object; readonly octetString: string },
  ): Promise<{ readonly extract: { readonly request: { readonly id: string } } }>;
  createLoginResponse(
    serviceProvider: SamlifyServiceProvider,
    asked: object,
    binding: 'post',
    user: { readonly email: string },
    options: {
      readonly relayState: string;
      readonly customTagReplacement: (template: string) => { id: string; context: string };
    },
  ): Promise<{ readonly context: string; readonly entityEndpoint: string }>;
}

/** A service provider as samlify reads its metadata. */
export interface SamlifyServiceProvider {
  readonly entityMeta: {
    getAssertionConsumerService(binding: 'post'): string;
    getEntityID(): string;
  };
}

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- an untyped import of a CommonJS package
export const samlify = createRequire(import.meta.url)('samlify') as Samlify;

// samlify demands a function that validates XML schemas. Its parser is enough for these tests.
samlify.setSchemaValidator({ validate: () => Promise.resolve('valid') });
