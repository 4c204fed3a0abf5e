import { interactionPolicy, type KoaContextWithOIDC } from 'oidc-provider';

const { Check, base } = interactionPolicy;

/**
 * Makes the list of what a user may be asked in an authorization request: the library's own, with another rule for native
 * clients.
 *
 * @param asksForNative whether a native client needs consent each time (RFC 8252 §8.6)
 */
export function promptPolicy(asksForNative: (ctx: KoaContextWithOIDC) => Promise<boolean>) {
  const policy = base();
  const checks = policy.get('consent')?.checks;
  if (!checks) throw new Error('the library has no prompt for consent');
  const name = 'native_client_prompt';
  checks.remove(name);
  checks.add(
    new Check(
      name,
      'native clients require End-User interaction',
      'interaction_required',
      asksForNative,
    ),
  );
  return policy;
}
