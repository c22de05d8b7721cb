// Pull tokens. Each has an identity of its own with a public key. The private key signs the token once and is then discarded.
import { ask } from './api.ts'
import type { Identity } from './types.ts'

/** Issuer of pull tokens. It distinguishes their identities from other identities with static keys. */
const issuer = 'pinfold-pull-token'
/** Uid of the built-in role `registry.pull`. */
const pullRole = '902b87b2d467e207feddc9515e32fd39b33f05eb'
const daySeconds = 86_400

export const isPullToken = ({ staticKeys }: Partial<Identity>): boolean => staticKeys?.issuer === issuer

/** False on a page without https, where browsers create no keys. */
export const canCreateKeys = (): boolean => globalThis.crypto?.subtle !== undefined

const base64 = (bytes: ArrayBuffer | Uint8Array): string =>
  btoa(String.fromCharCode(...new Uint8Array(bytes)))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replace(/=+$/, '')
const textBytes = (text: string) => new TextEncoder().encode(text)
const part = (value: object): string => base64(textBytes(JSON.stringify(value)))

/** Creates the identity with the role, and signs the token. Deletes the identity if it could not get the role. */
export async function createPullToken(
  group: string,
  { name, days, host }: { name: string; days: number; host: string },
): Promise<{ user: string; password: string }> {
  const algorithm = { name: 'ECDSA', namedCurve: 'P-256' }
  const { publicKey, privateKey } = await crypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])
  const { kty, crv, x, y } = await crypto.subtle.exportKey('jwk', publicKey)
  // The thumbprint of a key, RFC 7638, has the required members in this order.
  const thumbprint = await crypto.subtle.digest('SHA-256', textBytes(JSON.stringify({ crv, kty, x, y })))
  const key = { kty, crv, x, y, kid: base64(thumbprint), alg: 'ES256', use: 'sig' }
  const subject = base64(crypto.getRandomValues(new Uint8Array(16)))
  const now = Math.floor(Date.now() / 1000)
  const expiry = now + days * daySeconds
  const staticKeys = {
    ...{ issuer, subject, issuerKeys: JSON.stringify({ keys: [key] }), audiences: [host] },
    expirationTime: new Date(expiry * 1000).toISOString(),
  }
  const { uid } = await ask<Identity>('POST', `/iam/v2/identities/${group}`, { body: { name, staticKeys } })
  try {
    await ask('POST', `/iam/v2/roleBindings/${group}`, { body: { identityUid: uid, roleUid: pullRole } })
  } catch (error) {
    await ask('DELETE', `/iam/v2/identities/${uid}`)
    throw error
  }
  const claims = { iss: issuer, sub: subject, aud: host, iat: now, exp: expiry }
  const content = `${part({ alg: 'ES256', kid: key.kid, typ: 'JWT' })}.${part(claims)}`
  const signature = await crypto.subtle.sign({ name: 'ECDSA', hash: 'SHA-256' }, privateKey, textBytes(content))
  return { user: uid, password: `${content}.${base64(signature)}` }
}
