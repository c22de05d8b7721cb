// What is refused is counted, and a sample of it is kept for the owners of the place. What somebody of the place does wrong
// is an event of theirs besides; what a stranger does is not.
import type { RefusedAction } from '#domains/events/refusals/refusal-log.ts'
import { isRepoPath } from '#lib/oci-names.ts'
import { foundAt, isMember } from './access.ts'
import { isRefusal, toOciError } from './errors.ts'
import { pathOf, type Visit } from './visit.ts'

/** Never rejects. */
export async function noteRefusal(visit: Visit, reference: string, thrown: unknown): Promise<void> {
  const error = toOciError(thrown)
  const { status, code, message } = error
  const { app } = visit.registry
  if (!isRefusal(error) || status === 405) return
  const action = actionOf(visit.req.method)
  app.metrics.registryRefusals.inc({ action, code })
  const path = pathOf(visit)
  if (status === 429 || !isRepoPath(path)) return
  const found = await foundAt(visit).catch(() => undefined)
  const repo = found?.repo
  const place = found === undefined ? '' : found.repo ? found.repo.group : found.group
  if (place === '') return
  const member = isMember(visit, repo?.uid ?? place)
  // Whoever may be there hears of a typing mistake from the answer.
  if (status !== 403 && member) return
  const { actor: caller, source: remoteAddress, now } = visit.call.cause
  const what = { group: place, repository: repo?.path, path, reference, action }
  app.refusals.note({ ...what, member, caller, remoteAddress, now, code, reason: message })
}

function actionOf(method: string | undefined): RefusedAction {
  if (method === 'DELETE') return 'delete'
  return method === 'GET' || method === 'HEAD' ? 'pull' : 'push'
}
