// One event as a signed HTTP request: CloudEvents 1.0 in binary mode, a token of ours for its receiver, and a signature as
// Standard Webhooks has it.
import { createHash, createHmac } from 'node:crypto'
import { SignJWT } from 'jose'
import type { App } from '#app.ts'
import { openSecret } from './secrets.ts'
import type { Payload, Target } from './sending.store.ts'

const tokenLifetime = 30 * 60

export type SinkRequest = { headers: Record<string, string>; body: string }

/** `now` is in milliseconds. Each attempt has a request of its own, with the same id. */
export async function sinkRequest(
  app: Pick<App, 'keyring' | 'sealer'>,
  url: string,
  target: Target,
  event: Payload,
  now: number,
): Promise<SinkRequest> {
  const body = `{"actor":${event.actor},"body":${event.body}}`
  const seconds = Math.floor(now / 1000)
  const attributes: Record<string, string> = {
    Specversion: '1.0',
    Id: event.uuid,
    Type: event.type,
    // What is no path below our URL is a source of its own.
    Source: event.source.startsWith('/') ? url + event.source : event.source,
    Subject: event.subject,
    Time: event.createTime,
    Audience: event.audience.toLowerCase(),
    Group: event.group,
    Bodytype: event.bodyType,
    ...extensionsOf(event),
  }
  const headers: Record<string, string> = {
    'Content-Type': 'application/json',
    'User-Agent': 'pinfold',
    Authorization: `Bearer ${await tokenOf(app, url, target, body, seconds)}`,
    'Webhook-Id': event.uuid,
    'Webhook-Timestamp': String(seconds),
    'Webhook-Signature': signaturesOf(app, target, `${event.uuid}.${seconds}.${body}`, now),
  }
  for (const [name, value] of Object.entries(attributes)) if (value !== '') headers[`Ce-${name}`] = headerText(value)
  return { headers, body }
}

function extensionsOf({ extensions }: Payload): Record<string, string> {
  if (extensions === '') return {}
  const values = Object.entries(JSON.parse(extensions) as Record<string, string>)
  return Object.fromEntries(values.map(([name, value]) => [name[0]!.toUpperCase() + name.slice(1), value]))
}

/** Says who sends what to whom: the issuer, the group of the subscription, and the digest of the body. */
async function tokenOf(
  { keyring }: Pick<App, 'keyring'>,
  issuer: string,
  { group }: Target,
  body: string,
  seconds: number,
): Promise<string> {
  const { kid, key } = keyring.signer()
  const digest = `sha256:${createHash('sha256').update(body).digest('hex')}`
  // The claim under both readings of its dotted name.
  return new SignJWT({ webhook: { digest }, 'webhook.digest': digest })
    .setProtectedHeader({ alg: 'ES256', kid, typ: 'JWT' })
    .setIssuer(issuer)
    .setAudience('customer')
    .setSubject(`webhook:${group}`)
    .setIssuedAt(seconds)
    .setExpirationTime(seconds + tokenLifetime)
    .sign(key)
}

/** By the secret, and for some time after it was changed by the one before as well. */
function signaturesOf({ sealer }: Pick<App, 'sealer'>, target: Target, signed: string, now: number): string {
  const { secret, oldSecret, oldSecretTime } = target
  const secrets = [secret]
  if (oldSecret && Date.parse(oldSecretTime) > now) secrets.push(oldSecret)
  return secrets
    .map((sealed) => `v1,${createHmac('sha256', openSecret(sealer, sealed)).update(signed).digest('base64')}`)
    .join(' ')
}

/** As the HTTP binding of CloudEvents wants it: visible ASCII, and everything else percent-encoded in UTF-8. */
function headerText(value: string): string {
  return value.toWellFormed().replace(/[^\x21\x23\x24\x26-\x7e]/gu, (character) => {
    return [...Buffer.from(character)].map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`).join('')
  })
}
