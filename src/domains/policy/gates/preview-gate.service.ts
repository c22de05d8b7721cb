// Preview of a draft of an admission policy: the images of the latest tags that it would deny.
import type { Call } from '#app.ts'
import { requireGroup } from '#domains/iam/groups/groups.service.ts'
import { hasManifest } from '#domains/registry/manifests/manifests.store.ts'
import { findRepoByUid, toRepoRef } from '#domains/registry/repos/paths.service.ts'
import { shapes } from '#domains/registry/tags/tags.model.ts'
import { listTags } from '#domains/registry/tags/tags.store.ts'
import type { Page } from '#lib/lists/paging.ts'
import { parentOf, rootOf } from '#lib/uid.ts'
import type { Gate, GateText } from './gates.model.ts'
import { gateKind } from './gates.service.ts'
import { type GatedRepo, judge } from './judge.service.ts'
import { exceptionFor } from './outcomes.service.ts'

export type PreviewedImage = { repoUid: string; repository: string; digest: string; tag: string; reason: string }
export type GatePreview = {
  checked: number
  denied: number
  waiting: number
  images: PreviewedImage[]
  /** True if every tagged image was checked. */
  complete: boolean
}

/** Limits on the cost of a preview. */
const most = { tags: 500, images: 200, listed: 20, ms: 2000 }

/** Tags of dates and epochs count too. */
const asked = shapes.dates | shapes.epochs

const newest: Page = {
  order: { field: 'updateTime', column: 'update_time', desc: true },
  ...{ after: undefined, size: most.tags, skip: 0, binding: '' },
}

/**
 * Checks the images of the latest tags in a scope. Stops when a limit is reached. Throws NOT_FOUND if the scope does not exist,
 * and INVALID_ARGUMENT for an invalid draft.
 */
export async function previewGate(call: Call, scope: string, text: GateText): Promise<GatePreview> {
  const { app } = call
  const draft: Gate = {
    ...{ uid: '', scopeUid: scope, createTime: call.now, updateTime: call.now },
    ...gateKind.read(text, scope),
  }
  if (!(await findRepoByUid(app.db, scope))) await requireGroup(app.db, scope)
  const tags = await listTags(app.db, [{ below: scope }], newest, { name: '', digest: '', updatedSince: '', asked })
  const images = new Map<string, (typeof tags)[number]>()
  for (const tag of tags) {
    const key = `${parentOf(tag.uid)} ${tag.digest}`
    if (tag.digest !== '' && !images.has(key)) images.set(key, tag)
  }
  const known = await app.gates.of(rootOf(scope))
  const repos = new Map<string, Promise<GatedRepo | undefined>>()
  const preview: GatePreview = { checked: 0, denied: 0, waiting: 0, images: [], complete: tags.length <= most.tags }
  let isLogged = false
  const deadline = app.monotonic() + most.ms
  for (const { uid, digest, name } of images.values()) {
    call.signal.throwIfAborted()
    if (preview.checked >= most.images || app.monotonic() > deadline) return { ...preview, complete: false }
    const repoUid = parentOf(uid)
    if (!repos.has(repoUid)) repos.set(repoUid, repoOf(call, repoUid))
    const repo = await repos.get(repoUid)
    if (!repo || !(await hasManifest(app.db, repo.id, digest))) continue
    const verdict = await judge(call, repo, digest, draft).catch((error: unknown) => ({ error }))
    call.signal.throwIfAborted()
    if ('error' in verdict) {
      if (!isLogged)
        call.log.error('image could not be checked for a preview of a policy', { repo: repoUid, digest, ...verdict })
      isLogged = true
      preview.complete = false
      continue
    }
    preview.checked++
    if (verdict.pending) preview.waiting++
    if (!verdict.denied || (known && (await exceptionFor(call, repo, digest, known)) !== '')) continue
    preview.denied++
    if (preview.images.length >= most.listed) continue
    preview.images.push({ repoUid, repository: repo.path, digest, tag: name, reason: verdict.reason })
  }
  return preview
}

async function repoOf({ app }: Call, uid: string) {
  const row = await findRepoByUid(app.db, uid)
  return row && toRepoRef(app.db, row)
}
