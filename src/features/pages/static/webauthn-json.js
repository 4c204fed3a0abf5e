// Converts WebAuthn's data to and from JSON (Level 3 §5.1.8 and §5.1.9). The browser does it if it
// can, and otherwise this file.

/**
 * Converts the JSON options of an enrollment to those of `navigator.credentials.create()`, with
 * bytes instead of base64url.
 */
export function creationOptions(json) {
  if (globalThis.PublicKeyCredential?.parseCreationOptionsFromJSON) {
    return PublicKeyCredential.parseCreationOptionsFromJSON(json);
  }
  return {
    ...json,
    challenge: toBytes(json.challenge),
    user: { ...json.user, id: toBytes(json.user.id) },
    excludeCredentials: json.excludeCredentials.map(descriptor),
  };
}

/**
 * Converts the JSON options of a login to those of `navigator.credentials.get()`, with bytes
 * instead of base64url.
 */
export function requestOptions(json) {
  if (globalThis.PublicKeyCredential?.parseRequestOptionsFromJSON) {
    return PublicKeyCredential.parseRequestOptionsFromJSON(json);
  }
  return {
    ...json,
    challenge: toBytes(json.challenge),
    allowCredentials: json.allowCredentials.map(descriptor),
  };
}

/** Converts a credential to a `RegistrationResponseJSON` or `AuthenticationResponseJSON`. */
export function credentialJson(credential) {
  if (typeof credential.toJSON === 'function') return credential.toJSON();
  const { id, rawId, type, response, authenticatorAttachment } = credential;
  return {
    id,
    rawId: toBase64url(rawId),
    type,
    ...(authenticatorAttachment && { authenticatorAttachment }),
    response: {
      clientDataJSON: toBase64url(response.clientDataJSON),
      ...(response.attestationObject
        ? {
            attestationObject: toBase64url(response.attestationObject),
            transports: response.getTransports?.() ?? [],
          }
        : {
            authenticatorData: toBase64url(response.authenticatorData),
            signature: toBase64url(response.signature),
            userHandle: response.userHandle ? toBase64url(response.userHandle) : null,
          }),
    },
    clientExtensionResults: credential.getClientExtensionResults(),
  };
}

function descriptor(json) {
  return { ...json, id: toBytes(json.id) };
}

function toBytes(base64url) {
  const binary = atob(base64url.replaceAll('-', '+').replaceAll('_', '/'));
  return Uint8Array.from(binary, (char) => char.charCodeAt(0));
}

function toBase64url(buffer) {
  const binary = String.fromCharCode(...new Uint8Array(buffer));
  return btoa(binary).replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '');
}
