import { element, joined, markup, XML_DECLARATION, type Markup } from '@svc/markup';

/** An error of AWS: its code, its status, and a message for the client. */
export class AwsError extends Error {
  override readonly name = 'AwsError';

  constructor(
    readonly code: string,
    message: string,
    readonly status = 400,
  ) {
    super(message);
  }
}

/**
 * XML elements by their names. The value is a text, or the elements inside. An element whose value
 * is undefined is left out.
 */
export interface XmlElements {
  readonly [name: string]: string | undefined | XmlElements | readonly XmlElements[];
}

const STS = 'https://sts.amazonaws.com/doc/2011-06-15/';
const S3 = 'http://s3.amazonaws.com/doc/2006-03-01/';

/** Returns the result of an action of STS as an XML document. */
export function stsResponse(action: string, result: XmlElements, requestId: string): string {
  return documentOf(`${action}Response`, STS, {
    [`${action}Result`]: result,
    ResponseMetadata: { RequestId: requestId },
  });
}

/** Returns an error of STS as an XML document. */
export function stsError({ code, message }: AwsError, requestId: string): string {
  return documentOf('ErrorResponse', STS, {
    Error: { Type: 'Sender', Code: code, Message: message },
    RequestId: requestId,
  });
}

/** Returns the list of buckets as an XML document of S3. */
export function listBucketsResponse(owner: string, buckets: readonly string[]): string {
  const each = buckets.map((Name) => ({ Name, CreationDate: '2026-01-01T00:00:00.000Z' }));
  return documentOf('ListAllMyBucketsResult', S3, {
    Owner: { ID: owner, DisplayName: owner },
    Buckets: { Bucket: each },
  });
}

/** Returns an error of S3 as an XML document. */
export function s3Error({ code, message }: AwsError, requestId: string): string {
  return documentOf('Error', undefined, { Code: code, Message: message, RequestId: requestId });
}

function documentOf(root: string, namespace: string | undefined, content: XmlElements): string {
  const attributes = namespace === undefined ? {} : { xmlns: namespace };
  return markup`${XML_DECLARATION}${element(root, inner(content), attributes)}\n`.text;
}

function inner(elements: XmlElements): Markup {
  return joined(
    Object.entries(elements).flatMap(([name, value]) =>
      [value].flat().flatMap((each) => {
        if (each === undefined) return [];
        return element(name, typeof each === 'string' ? each : inner(each));
      }),
    ),
  );
}
