// Signatures of Standard Webhooks: HMAC-SHA256 of id, time and body, with a shared secret.
import { createHmac } from 'node:crypto'

const prefix = 'whsec_'

/** Secret in the form that receivers get, with its prefix. */
export function secretText(secret: Uint8Array): string {
  return `${prefix}${Buffer.from(secret).toString('base64')}`
}

/** Parses a secret. Returns `undefined` if the text is not a secret of Standard Webhooks. */
export function parseSecret(text: string): Buffer | undefined {
  const encoded = text.startsWith(prefix) ? text.slice(prefix.length) : ''
  const secret = Buffer.from(encoded, 'base64')
  return secret.length > 0 && secret.toString('base64') === encoded ? secret : undefined
}

/** Returns the three headers of a delivery. With several secrets, the signature header has a signature for each. */
export function signatureHeaders(
  secrets: readonly Uint8Array[],
  { id, seconds, body }: { id: string; seconds: number; body: string },
): Record<string, string> {
  const signed = `${id}.${seconds}.${body}`
  const signatures = secrets.map((secret) => `v1,${createHmac('sha256', secret).update(signed).digest('base64')}`)
  return { 'Webhook-Id': id, 'Webhook-Timestamp': String(seconds), 'Webhook-Signature': signatures.join(' ') }
}
