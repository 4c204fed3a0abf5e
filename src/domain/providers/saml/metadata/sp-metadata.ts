import { joined, markup, XML_DECLARATION } from '@svc/markup';
import { NS } from '../xml-document.js';

/** The facts of this service as a SAML service provider. */
export interface ServiceProvider {
  readonly entityId: string;
  readonly acsUrl: string;
  /** True if requests are signed. */
  readonly signsRequests: boolean;
  /** The certificates of the keys that sign, now or soon: DER in base64. */
  readonly certificates: readonly string[];
  /**
   * True if a NameID of format emailAddress is the only source of the address: providers import the
   * first format.
   */
  readonly needsAddress: boolean;
}

const PERSISTENT = 'urn:oasis:names:tc:SAML:2.0:nameid-format:persistent';
const EMAIL_ADDRESS = 'urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress';

/** Writes the metadata of this service (SAML Metadata §2.4.4). */
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
