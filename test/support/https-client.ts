import { request, type RequestOptions } from 'node:https';

/** A response over TLS with its body. */
export interface SecureAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
  // oxlint-disable-next-line typescript/no-explicit-any -- tests read any response, right or wrong
  readonly json: any;
}

/** Sends a request on a new TLS connection. `options` may have a client certificate. */
export function sendSecurely(
  url: string,
  options: RequestOptions & {
    readonly form?: Readonly<Record<string, string>>;
    readonly text?: string;
  },
): Promise<SecureAnswer> {
  const { promise, resolve, reject } = Promise.withResolvers<SecureAnswer>();
  const { form, text, ...rest } = options;
  const body = form ? new URLSearchParams(form).toString() : text;
  const type = form ? 'application/x-www-form-urlencoded' : 'application/json';
  const outgoing = request(
    url,
    {
      agent: false,
      ...rest,
      headers: {
        ...(body === undefined
          ? {}
          : { 'content-type': type, 'content-length': Buffer.byteLength(body) }),
        ...(rest.headers as Record<string, string> | undefined),
      },
    },
    (answer) => {
      let received = '';
      answer.setEncoding('utf8').on('data', (chunk: string) => {
        received += chunk;
      });
      answer.on('end', () => {
        const isJson = /json/.test(answer.headers['content-type'] ?? '');
        resolve({
          status: answer.statusCode ?? 0,
          headers: answer.headers,
          text: received,
          json: isJson ? JSON.parse(received) : undefined,
        });
      });
      answer.on('error', reject);
    },
  );
  outgoing.on('error', reject);
  outgoing.end(body);
  return promise;
}
