// Algorithms that the issuer signs with.
export const signingAlgorithms = ['ES256', 'RS256'] as const
export type SigningAlgorithm = (typeof signingAlgorithms)[number]

/** Algorithm of one of our signing keys. Each type of key has one algorithm. */
export function algorithmOf(jwk: { kty?: string }): SigningAlgorithm {
  return jwk.kty === 'RSA' ? 'RS256' : 'ES256'
}
