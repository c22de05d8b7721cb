// Preview of a policy change: images that are allowed now, but would be denied if unknown severities counted as high.
import type { Call } from '#app.ts'
import { findRepoByUid, toRepoRef } from '#domains/registry/repos/paths.service.ts'
import type { FoundImage } from '#domains/scanning/images/found-images.service.ts'
import * as images from '#domains/scanning/images/images.store.ts'
import { searchedIn, seekSome } from '#domains/scanning/images/seek-images.service.ts'
import { found } from '#lib/errors.ts'
import type { Page } from '#lib/lists/paging.ts'
import { rootOf } from '#lib/uid.ts'
import { type Gate, gateType, type VulnerabilityRule } from './gates.model.ts'
import { gateTable } from './gates.store.ts'
import { judge } from './judge.service.ts'
import { exceptionFor } from './outcomes.service.ts'

export type ChangedImage = { repoUid: string; digest: string; tags: string[]; moreTags: boolean; reason: string }
export type Preview = { images: ChangedImage[]; next: string }

/** One page of the affected images. Throws NOT_FOUND if the policy does not exist. */
export async function previewSeverities(call: Call, page: Page, uid: string): Promise<Preview> {
  const { db } = call.app
  const gate = found(await gateTable.find(db, uid), gateType, uid)
  const { rule } = gate
  if (rule.kind !== 'vulnerabilities' || !isLeftOut(rule)) return { images: [], next: '' }
  const counted: Gate = { ...gate, rule: { ...rule, unknownSeverity: 'COUNTED_AS_HIGH' } }
  const searched = await searchedIn(call, [gate.scopeUid])
  const unrated = await seekSome<{ findingNo: number }>(call, page, searched, {
    isForAll: false,
    components: (organizations, most) => images.componentsUnrated(db, organizations, most),
    hits: ({ listNo }, organization, most) => images.unratedInList(db, listNo, organization, most),
  })
  const changed: ChangedImage[] = []
  for (const one of unrated.images) {
    call.signal.throwIfAborted()
    const reason = await describeChange(call, one, { gate, counted })
    if (reason === undefined) continue
    const { image, tags, moreTags } = one
    changed.push({ repoUid: image.repoUid, digest: image.digest, tags, moreTags, reason })
  }
  return { images: changed, next: unrated.next }
}

/** True if the rule ignores findings of unknown severity, and would count them if it treated them as high. */
const isLeftOut = ({ leastSeverity, unknownSeverity }: VulnerabilityRule): boolean =>
  unknownSeverity === 'NOT_COUNTED' && leastSeverity !== '' && leastSeverity !== 'CRITICAL'

/**
 * Reason of the denial if unknown severities counted as high. Undefined if the image is denied already, or would still be
 * allowed.
 */
async function describeChange(
  call: Call,
  { image }: FoundImage<unknown>,
  { gate, counted }: { gate: Gate; counted: Gate },
): Promise<string | undefined> {
  const { db, gates } = call.app
  const row = await findRepoByUid(db, image.repoUid)
  if (!row) return undefined
  const repo = await toRepoRef(db, row)
  const [now, then] = [await judge(call, repo, image.digest, gate), await judge(call, repo, image.digest, counted)]
  if (now.denied || !then.denied) return undefined
  const known = await gates.of(rootOf(repo.uid))
  const exception = known ? await exceptionFor(call, repo, image.digest, known) : ''
  return exception === '' ? then.reason : undefined
}
