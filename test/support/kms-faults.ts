import type { Fault } from './fault-proxy.js';

/** Returns the response of AWS KMS to a call that it refuses, with an error code and a status. */
export function kmsError(name: string, status = 400): Fault {
  return {
    status,
    body: JSON.stringify({ __type: name, message: 'planted-value of AWS' }),
    headers: { 'content-type': 'application/x-amz-json-1.1', 'x-amzn-requestid': 'r' },
  };
}

/** Returns a response of KMS to a call that succeeds. */
export function kmsAnswer(fields: Readonly<Record<string, unknown>>): Fault {
  return {
    status: 200,
    body: JSON.stringify(fields),
    headers: { 'content-type': 'application/x-amz-json-1.1' },
  };
}
