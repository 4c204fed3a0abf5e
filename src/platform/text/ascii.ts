/**
 * Lower-cases A to Z and nothing else: Unicode lower-casing would turn the Kelvin sign into `k`, one name into another.
 */
export function asciiLowerCase(text: string): string {
  return text.replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase());
}
