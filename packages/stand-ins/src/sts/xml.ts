/** An error of AWS: its code, its status, and a message for the caller. */
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

/** Elements of XML by name: a text, or elements inside. An element without a value is left out. */
export interface XmlElements {
  readonly [name: string]: string | undefined | XmlElements | readonly XmlElements[];
}

const STS = 'https://sts.amazonaws.com/doc/2011-06-15/';
const S3 = 'http://s3.amazonaws.com/doc/2006-03-01/';

/** Writes the result of an action of STS. */
export function stsResponse(action: string, result: XmlElements, requestId: string): string {
  return documentOf(`${action}Response`, STS, {
    [`${action}Result`]: result,
    ResponseMetadata: { RequestId: requestId },
  });
}

/** Writes an error of STS. */
export function stsError({ code, message }: AwsError, requestId: string): string {
  return documentOf('ErrorResponse', STS, {
    Error: { Type: 'Sender', Code: code, Message: message },
    RequestId: requestId,
  });
}

/** Writes the list of buckets that S3 answers. */
export function listBucketsResponse(owner: string, buckets: readonly string[]): string {
  const each = buckets.map((Name) => ({ Name, CreationDate: '2026-01-01T00:00:00.000Z' }));
  return documentOf('ListAllMyBucketsResult', S3, {
    Owner: { ID: owner, DisplayName: owner },
    Buckets: { Bucket: each },
  });
}

/** Writes an error of S3. */
export function s3Error({ code, message }: AwsError, requestId: string): string {
  return documentOf('Error', undefined, { Code: code, Message: message, RequestId: requestId });
}

function documentOf(root: string, namespace: string | undefined, content: XmlElements): string {
  const attribute = namespace === undefined ? '' : ` xmlns="${namespace}"`;
  return `<?xml version="1.0" encoding="UTF-8"?>\n<${root}${attribute}>${inner(content)}</${root}>\n`;
}

function inner(elements: XmlElements): string {
  return Object.entries(elements)
    .flatMap(([name, value]) => [value].flat().map((each) => element(name, each)))
    .join('');
}

function element(name: string, value: string | undefined | XmlElements): string {
  if (value === undefined) return '';
  return `<${name}>${typeof value === 'string' ? escape(value) : inner(value)}</${name}>`;
}

function escape(text: string): string {
  return text.replaceAll(/[<>&"]/g, (character) => `&#${character.charCodeAt(0)};`);
}
