// What the issuer signs with.
export const signingAlgorithms = ['ES256', 'RS256'] as const
export type SigningAlgorithm = (typeof signingAlgorithms)[number]

/** What a key of ours signs with; there is one for each kind of key. */
export function algorithmOf(jwk: { kty?: string }): SigningAlgorithm {
  return jwk.kty === 'RSA' ? 'RS256' : 'ES256'
}
