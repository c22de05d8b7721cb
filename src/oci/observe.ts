// Records pulls, pushes and refused requests. Pulls, and refused requests of members, become events here. A successful push
// writes its event in its own transaction. A sample of all refused requests is stored for the owners of the repository.
import type { RefusedAction } from '#domains/events/refusals/refusal-log.ts'
import type { Pulled, Pushed } from '#domains/outbox/emit-registry.ts'
import type { RepoRef } from '#domains/registry/repo-ref.model.ts'
import { isRepoPath } from '#lib/oci-names.ts'
import { lookUpPath } from './access.ts'
import { isRefusal, toOciError } from './errors.ts'
import { originOf } from './respond.ts'
import { pathOf, type Visit } from './visit.ts'

type What = { type: 'manifest' | 'blob'; digest: string; tag?: string }

/** Result of a pull. `send` streams the body, and is called after the pull was recorded. */
export type Served = { repo: RepoRef; digest: string; mediaType?: string; send?: () => Promise<void> }

/** Runs a pull and records the pull. A refused pull of a member is recorded too. */
export async function observePull(visit: Visit, what: What, work: () => Promise<Served>): Promise<void> {
  const method = visit.req.method === 'HEAD' ? 'HEAD' : 'GET'
  const note = (repo: RepoRef, pulled: Pulled) => {
    visit.registry.app.registryEvents.pulled(visit.call.cause, repo, originOf(visit), pulled)
  }
  let sending: Served['send']
  try {
    const { repo, send, ...served } = await work()
    const { usage } = visit.registry.app
    // Usage is counted by manifest. Clients pull a blob only once, even if several images have the blob. Pulls of scanners are no
    // usage.
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

/** Runs a push. If the push is refused and the caller is a member, records the refusal. */
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
  if (!isRefusal(error) || !isRepoPath(pathOf(visit))) return
  const { repo, member } = await lookUpPath(visit)
  if (repo && member) note(repo, { status: error.status, code: error.code, message: error.message })
}

/** Adds a refused request to the sample of its group, and increases the counter of refused requests. Never rejects. */
export async function noteRefusal(visit: Visit, reference: string, thrown: unknown): Promise<void> {
  const error = toOciError(thrown)
  const { status, code, message } = error
  const { app } = visit.registry
  if (!isRefusal(error) || status === 405) return
  const action = actionOf(visit.req.method)
  app.metrics.registryRefusals.inc({ action, code })
  const path = pathOf(visit)
  if (status === 429 || !isRepoPath(path)) return
  const standing = await lookUpPath(visit).catch(() => undefined)
  if (!standing || standing.group === '') return
  const { repo, group, member } = standing
  // For members, only 403 errors are stored. Other errors, such as a mistyped tag, are shown to the member in the response.
  if (status !== 403 && member) return
  const { actor: caller, source: remoteAddress, now } = visit.call.cause
  const what = { group, repository: repo?.path, path, reference, action }
  app.refusals.note({ ...what, member, caller, remoteAddress, now, code, reason: message })
}

function actionOf(method: string | undefined): RefusedAction {
  if (method === 'DELETE') return 'delete'
  return method === 'GET' || method === 'HEAD' ? 'pull' : 'push'
}
