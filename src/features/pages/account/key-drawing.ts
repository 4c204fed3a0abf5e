/**
 * The shapes of security keys. The page draws the shape, so that the user sees where to touch the
 * key.
 */
export type KeyForm = 'keychain' | 'compact' | 'nano' | 'lightning' | 'fingerprint' | 'unknown';

/** The drawing of a security key for a page: its shape, and in words where to touch it. */
export interface KeyDrawing {
  readonly form: KeyForm;
  readonly text: string;
}

const TEXTS: Readonly<Record<KeyForm, string>> = {
  keychain:
    'Touch the round metal contact in the middle of the key. On a phone, hold the key to its back.',
  compact:
    'Touch the metal on both edges of the key at once. On a Nano, touch the end that looks out of the port.',
  nano: 'Touch the end that looks out of the port.',
  lightning: 'Touch the metal on both edges of the key at once.',
  fingerprint: 'Lay the enrolled finger on the round sensor in the middle of the key.',
  unknown: 'Touch the metal part of the key when it blinks.',
};

/**
 * The shapes of keys, by expressions that match words in the name of a model. The first match
 * counts, so the order matters. Many names belong to a whole series of keys with different shapes,
 * so the shape of some models is not known.
 */
const FORMS: readonly (readonly [words: RegExp, form: KeyForm])[] = [
  [/\bBio\b/, 'fingerprint'],
  [/\bLightning\b|\b5Ci\b/, 'lightning'],
  [/\bNano\b/, 'nano'],
  [/\bNFC\b|^Security Key\b/, 'keychain'],
  [/^YubiKey 5\b|\b5C\b/, 'compact'],
];

/**
 * Returns the shape of a key to draw, and the text that says where to touch the key.
 *
 * @param model the name of the model; null for a key whose model is not known
 */
export function keyDrawing(model: string | null): KeyDrawing {
  const form = FORMS.find(([words]) => model !== null && words.test(model))?.[1] ?? 'unknown';
  return { form, text: TEXTS[form] };
}
