// What people have said of a manifest that is pulled: that nobody is to have it, or that it will go.

import { sunsetOf } from '#domains/policy/retention/promises.service.ts'
import { quarantinedAs, type Wanted } from '#domains/policy/retention/quarantine.service.ts'
import type { RepoRef } from '#domains/registry/repo-ref.model.ts'
import { OciError } from '../errors.ts'
import type { Headers } from '../respond.ts'
import type { Visit } from '../visit.ts'

/** Throws DENIED with the reason when the digest is quarantined, or only what is quarantined leads to it. */
export async function requireClean({ call }: Visit, repo: RepoRef, wanted: Wanted): Promise<void> {
  const mark = await quarantinedAs(call, repo, wanted)
  if (!mark) return
  const { digest, reason, createTime } = mark
  const detail = { digest, reason, quarantined: createTime }
  const what = digest === wanted.digest ? digest : `${wanted.digest} is a part of ${digest}, which`
  throw new OciError('DENIED', `${what} is quarantined: ${reason}`, { detail })
}

const toldBeforeMs = 30 * 86_400_000

/** `Sunset` (RFC 8594) on what nothing but its date keeps, and a warning in the last thirty days. */
export async function headersOfEnd({ call }: Visit, repo: RepoRef, digest: string): Promise<Headers> {
  const until = await sunsetOf(call, repo, digest)
  if (until === undefined) return {}
  const sunset = new Date(until).toUTCString()
  const isNear = Date.parse(until) - Date.parse(call.cause.now) <= toldBeforeMs
  return {
    sunset,
    ...(isNear ? { warning: `299 - "no tag points to ${digest}; it may be deleted after ${until}"` } : {}),
  }
}
