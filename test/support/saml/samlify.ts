import { createRequire } from 'node:module';

/**
 * The types of the functions in samlify that the tests call. The tests do not use samlify's own
 * types, because these would add all browser types to the compilation.
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

/** samlify's object for an identity provider. */
export interface SamlifyProvider {
  getMetadata(): string;
  /**
   * Parses a SAML request. Rejects if it is malformed. Also rejects if the metadata demand a
   * signature, and the request has none or a wrong one.
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

/** samlify's object for a service provider, made from the provider's metadata. */
export interface SamlifyServiceProvider {
  readonly entityMeta: {
    getAssertionConsumerService(binding: 'post'): string;
    getEntityID(): string;
  };
}

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- an untyped import of a CommonJS package
export const samlify = createRequire(import.meta.url)('samlify') as Samlify;

// samlify requires a function that validates against the XML schemas. Its own parser is enough
// here, so this one accepts everything.
samlify.setSchemaValidator({ validate: () => Promise.resolve('valid') });
