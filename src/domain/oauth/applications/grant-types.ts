/** The grant type of device codes (RFC 8628 §3.4). */
export const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code';
export const FIDO2_GRANT = 'urn:svc:params:oauth:grant-type:fido2';
export const TOKEN_EXCHANGE_GRANT = 'urn:ietf:params:oauth:grant-type:token-exchange';
