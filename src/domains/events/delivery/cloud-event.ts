// Converts an event to a signed HTTP request. The request is a CloudEvent 1.0 in binary mode. It contains a token for the
// receiver and a signature by Standard Webhooks.
import { SignJWT } from 'jose'
import type { App } from '#app.ts'
import { signatureHeaders } from '#lib/crypto/standard-webhooks.ts'
import { digestOf } from '#lib/digest.ts'
import { binaryHeaders, hostReference } from '#lib/events/cloud-events.ts'
import { vendorEventType, vendorTypeName } from '#lib/naming/vendor.ts'
import { decryptSecret } from '../subscriptions/secrets.ts'
import type { Payload } from './deliveries.model.ts'
import type { Target } from './sending.store.ts'

const tokenLifetime = 30 * 60

export type SinkRequest = { headers: Record<string, string>; body: string }

/** Builds the request of one attempt. All attempts of a delivery have the same ID. `now` is in milliseconds. */
export async function sinkRequest(
  app: Pick<App, 'keyring' | 'cipher' | 'eventTable'>,
  url: string,
  target: Target,
  ours: Payload,
  now: number,
): Promise<SinkRequest> {
  const event = target.vendor === '' ? ours : inNamesOf(app, target.vendor, ours)
  const body = bodyOf(event)
  const headers: Record<string, string> = {
    'Content-Type': 'application/json',
    'User-Agent': 'pinfold',
    Authorization: `Bearer ${await tokenOf(app, url, target.group, body, now)}`,
    ...signatureHeaders(secretsOf(app, target, now), { id: event.uuid, seconds: Math.floor(now / 1000), body }),
    ...binaryHeaders(attributesOf(url, event)),
  }
  return { headers, body }
}

function inNamesOf({ eventTable }: Pick<App, 'eventTable'>, token: string, event: Payload): Payload {
  return {
    ...event,
    type: vendorEventType(event.type, token),
    bodyType: vendorTypeName(event.bodyType, token),
    body: eventTable.bodyUnder(token, event.bodyType, event.body),
  }
}

export function bodyOf({ actor, body }: Payload): string {
  return `{"actor":${actor},"body":${body}}`
}

/** Attributes of CloudEvents by their lower-case names. Empty attributes are left out. */
export function attributesOf(url: string, event: Payload): Record<string, string> {
  return {
    specversion: '1.0',
    id: event.uuid,
    type: event.type,
    // A source that begins with a slash is a path below our URL. Any other source is a host name.
    source: event.source.startsWith('/') ? url + event.source : hostReference(event.source),
    subject: event.subject,
    time: event.createTime,
    audience: event.audience.toLowerCase(),
    group: event.group,
    bodytype: event.bodyType,
    ...(event.extensions === '' ? {} : (JSON.parse(event.extensions) as Record<string, string>)),
  }
}

/** Token for the receiver. It contains the issuer, the group of the subscription, and the digest of the body. */
export async function tokenOf(
  { keyring }: Pick<App, 'keyring'>,
  issuer: string,
  group: string,
  body: string,
  now: number,
): Promise<string> {
  const { kid, alg, key } = keyring.signer()
  const seconds = Math.floor(now / 1000)
  const digest = digestOf('sha256', Buffer.from(body))
  // Receivers read the claim `webhook.digest` as nested or as flat, so the token contains both forms.
  return new SignJWT({ webhook: { digest }, 'webhook.digest': digest })
    .setProtectedHeader({ alg, kid, typ: 'JWT' })
    .setIssuer(issuer)
    .setAudience('customer')
    .setSubject(`webhook:${group}`)
    .setIssuedAt(seconds)
    .setExpirationTime(seconds + tokenLifetime)
    .sign(key)
}

/** Secrets that sign requests: the present secret, and for some time after a rotation also the previous one. */
function secretsOf({ cipher }: Pick<App, 'cipher'>, target: Target, now: number): Buffer[] {
  const { secret, oldSecret, oldSecretTime } = target
  const secrets = [secret]
  if (oldSecret && Date.parse(oldSecretTime) > now) secrets.push(oldSecret)
  return secrets.map((sealed) => decryptSecret(cipher, sealed))
}
