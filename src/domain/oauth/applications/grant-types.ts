/** The grant types beside `authorization_code` and `client_credentials`. */
export const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code';
export const FIDO2_GRANT = 'urn:svc:params:oauth:grant-type:fido2';
export const TOKEN_EXCHANGE_GRANT = 'urn:ietf:params:oauth:grant-type:token-exchange';
