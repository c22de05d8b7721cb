import { type Outgoing, OutgoingError } from '#lib/net/outgoing.ts'
import type { Assert, CloudAnswer, CloudEndpoints, CloudReason } from './cloud-account.ts'

/** Parameters of a check. */
export type Asking = { outgoing: Pick<Outgoing, 'post'>; endpoints: CloudEndpoints; group: string; assert: Assert }

type Sent = { url: string; headers: Record<string, string>; body: string }
type Answered = { status: number; body: string }

/** A refusal of the cloud on the way to the credentials. */
export class Refusal extends Error {
  override name = 'Refusal'
  readonly reason: CloudReason

  constructor(reason: CloudReason, message: string) {
    super(message)
    this.reason = reason
  }
}

/** Returns the body of a success. Otherwise throws a Refusal with the message that `explain` finds in the answer. */
export async function ask(
  { outgoing }: Asking,
  name: string,
  { url, headers, body }: Sent,
  explain: (body: string) => string | undefined,
): Promise<string> {
  let answer: Answered
  try {
    answer = await outgoing.post(url, { headers, body })
  } catch (error) {
    if (!(error instanceof OutgoingError)) throw error
    throw new Refusal('UNREACHABLE', `no response from ${name}: ${error.message}`)
  }
  if (answer.status === 200) return answer.body
  const words = toPlainLine(explain(answer.body) ?? 'no explanation in the response')
  throw new Refusal(
    answer.status >= 500 ? 'UNREACHABLE' : 'REFUSED',
    `${name} responded with HTTP ${answer.status}: ${words}`,
  )
}

/** The answer of a check: ready when nothing refused. */
export async function answerOf(check: () => Promise<void>): Promise<CloudAnswer> {
  try {
    await check()
    return { ready: true }
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    return { ready: false, reason: error.reason, message: error.message }
  }
}

/** Throws a Refusal unless a success has this text. */
export function requireText(value: unknown, name: string, what: string): string {
  if (typeof value === 'string' && value !== '') return value
  throw new Refusal('REFUSED', `the response of ${name} does not have ${what}`)
}

/** Member of a JSON object at a path; undefined if it is missing or the text is no JSON. */
export function memberOf(json: string, ...path: string[]): unknown {
  try {
    let at: unknown = JSON.parse(json)
    for (const name of path) at = (at as Record<string, unknown> | null | undefined)?.[name]
    return at
  } catch {
    return undefined
  }
}

/** One bounded line, whatever the cloud wrote. */
function toPlainLine(text: string): string {
  return text
    .toWellFormed()
    .replace(/\p{Cc}+/gu, ' ')
    .slice(0, 500)
    .toWellFormed()
}

export const form = { 'content-type': 'application/x-www-form-urlencoded' }
export const json = { 'content-type': 'application/json' }
