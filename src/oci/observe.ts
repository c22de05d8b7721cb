// Pulls and refused pushes become events, those of a push that succeeds are written with it. What a stranger is refused is
// no event.

import type { Pulled, Pushed } from '#domains/outbox/emit-registry.ts'
import type { RepoRef } from '#domains/registry/repo-ref.model.ts'
import { isRepoPath } from '#lib/oci-names.ts'
import { foundAt, isMember } from './access.ts'
import { isRefusal, toOciError } from './errors.ts'
import { originOf } from './respond.ts'
import { pathOf, type Visit } from './visit.ts'

type What = { type: 'manifest' | 'blob'; digest: string; tag?: string }

/** What is served, as far as it was not known before; `send` does what takes long. */
export type Served = { repo: RepoRef; digest: string; mediaType?: string; send?: () => Promise<void> }

/** Runs a pull and notes it, also when it is refused. */
export async function observePull(visit: Visit, what: What, work: () => Promise<Served>): Promise<void> {
  const method = visit.req.method === 'HEAD' ? 'HEAD' : 'GET'
  const note = (repo: RepoRef, pulled: Pulled) => {
    visit.registry.app.registryEvents.pulled(visit.call.cause, repo, originOf(visit), pulled)
  }
  let sending: Served['send']
  try {
    const { repo, send, ...served } = await work()
    const { usage } = visit.registry.app
    // Of an image that is in use, the manifest is what is pulled; its blobs may be very many, and come only once.
    // What a scanner looks at is in no use by that.
    if (what.type === 'manifest' && visit.call.caller.token?.scanner === undefined) {
      usage.note(repo.id, served.digest, visit.call.caller.uid, method, visit.call.cause.now)
    }
    note(repo, { ...what, ...served, method, judged: visit.judged })
    sending = send
  } catch (error) {
    await onRefusal(visit, error, (repo, refusal) =>
      note(repo, { ...what, method, error: refusal, judged: visit.judged }),
    )
    throw error
  }
  await sending?.()
}

/** Runs a push and notes when it is refused. */
export async function observePush(visit: Visit, what: What, work: () => Promise<void>): Promise<void> {
  try {
    await work()
  } catch (error) {
    await onRefusal(visit, error, (repo, refusal) => {
      visit.registry.app.registryEvents.refused(visit.call.cause, repo, originOf(visit), { ...what, error: refusal })
    })
    throw error
  }
}

async function onRefusal(
  visit: Visit,
  thrown: unknown,
  note: (repo: RepoRef, error: NonNullable<Pushed['error']>) => void,
): Promise<void> {
  const error = toOciError(thrown)
  const path = pathOf(visit)
  if (!isRefusal(error) || !isRepoPath(path)) return
  const { repo } = await foundAt(visit)
  if (repo && isMember(visit, repo.uid)) note(repo, { status: error.status, code: error.code, message: error.message })
}
