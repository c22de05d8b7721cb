// Algorithms that the issuer signs with.
export const signingAlgorithms = ['ES256', 'RS256'] as const
export type SigningAlgorithm = (typeof signingAlgorithms)[number]

/** Signing algorithm of one of our keys; each kind of key has one. */
export function algorithmOf(jwk: { kty?: string }): SigningAlgorithm {
  return jwk.kty === 'RSA' ? 'RS256' : 'ES256'
}
