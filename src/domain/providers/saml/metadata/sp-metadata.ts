import { joined, markup, XML_DECLARATION } from '@svc/markup';
import { NS } from '../xml-document.js';

/** The facts that this service publishes about itself as a SAML service provider. */
export interface ServiceProvider {
  readonly entityId: string;
  readonly acsUrl: string;
  /** True if this service signs its requests, because the provider demands it. */
  readonly signsRequests: boolean;
  /** The certificates of the keys that sign requests now or soon, DER in base64. */
  readonly certificates: readonly string[];
  /**
   * True if the e-mail address of a user can only come from a NameID of format emailAddress. That
   * format must then be the first in the metadata, because providers import the first one.
   */
  readonly needsAddress: boolean;
}

const PERSISTENT = 'urn:oasis:names:tc:SAML:2.0:nameid-format:persistent';
const EMAIL_ADDRESS = 'urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress';

/** Returns the SAML metadata of this service as XML (SAML Metadata §2.4.4). */
export function spMetadata(provider: ServiceProvider): string {
  const keys = provider.certificates.map(
    (certificate) => markup`
    <md:KeyDescriptor use="signing">
      <ds:KeyInfo>
        <ds:X509Data>
          <ds:X509Certificate>${certificate}</ds:X509Certificate>
        </ds:X509Data>
      </ds:KeyInfo>
    </md:KeyDescriptor>`,
  );
  const formats = provider.needsAddress ? [EMAIL_ADDRESS, PERSISTENT] : [PERSISTENT, EMAIL_ADDRESS];
  const nameIds = formats.map((format) => markup`<md:NameIDFormat>${format}</md:NameIDFormat>`);
  return markup`${XML_DECLARATION}<md:EntityDescriptor xmlns:md="${NS.metadata}" xmlns:ds="${NS.signature}" entityID="${provider.entityId}" cacheDuration="P1D">
  <md:SPSSODescriptor AuthnRequestsSigned="${provider.signsRequests}" WantAssertionsSigned="true" protocolSupportEnumeration="${NS.protocol}">${keys}
    ${joined(nameIds, '\n    ')}
    <md:AssertionConsumerService Binding="urn:oasis:names:tc:SAML:2.0:bindings:HTTP-POST" Location="${provider.acsUrl}" index="0" isDefault="true"/>
  </md:SPSSODescriptor>
</md:EntityDescriptor>
`.text;
}
