// Preview of a draft of an admission policy: the images of the latest tags that it would deny.
import type { Call } from '#app.ts'
import { requireGroup } from '#domains/iam/groups/groups.service.ts'
import { findRepoByUid, toRepoRef } from '#domains/registry/repos/paths.service.ts'
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
  const tags = await listTags(app.db, [{ below: scope }], newest, { name: '', digest: '', updatedSince: '', asked: 0 })
  const images = [...new Map(tags.toReversed().map((tag) => [`${parentOf(tag.uid)} ${tag.digest}`, tag])).values()]
  const known = await app.gates.of(rootOf(scope))
  const repos = new Map<string, Promise<GatedRepo | undefined>>()
  const preview: GatePreview = { checked: 0, denied: 0, waiting: 0, images: [], complete: tags.length <= most.tags }
  const deadline = app.monotonic() + most.ms
  for (const { uid, digest, name } of images.toReversed()) {
    call.signal.throwIfAborted()
    if (preview.checked >= most.images || app.monotonic() > deadline) return { ...preview, complete: false }
    const repoUid = parentOf(uid)
    if (!repos.has(repoUid)) repos.set(repoUid, repoOf(call, repoUid))
    const repo = await repos.get(repoUid)
    if (!repo) continue
    preview.checked++
    const verdict = await judge(call, repo, digest, draft)
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
