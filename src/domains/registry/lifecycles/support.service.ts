// How long what an image is about is supported, from what the duty has found out of it: nothing is read for it.
import type { Reader } from '#db/sql.ts'
import { rootOf } from '#lib/uid.ts'
import { findSettings } from '../settings/settings.store.ts'
import { graceEnd, hasEnded, standingOf } from './end-of-life.model.ts'
import { releasesOf } from './lifecycles.store.ts'
import { findMains } from './main-packages.store.ts'

/**
 * `line` is the product and its line, such as `nodejs 22`. `ended` is without a grace period, and `over` with that of the
 * organisation, from `overSince` on. `eolDate` is a day. Empty where they are not known.
 */
export type Support = { line: string; eolDate: string; ended: boolean; over: boolean; overSince: string }

/** `undefined` while the image waits to be looked at; `unknown` where it is about no line that is known. */
export async function supportOf(
  reader: Reader,
  repo: { id: number; uid: string },
  digest: string,
  now: string,
): Promise<Support | 'unknown' | undefined> {
  const [main] = await findMains(reader, repo.id, [digest])
  if (!main) return undefined
  const { product, cycle } = main
  const releases = product === '' || cycle === '' ? [] : await releasesOf(reader, product)
  const release = releases.find((one) => one.cycle === cycle)
  if (!release) return 'unknown'
  const grace = (await findSettings(reader, rootOf(repo.uid)))?.eolGracePeriod ?? false
  const { tagStatus } = standingOf({ now, release, grace, rebuilt: true })
  const { eolDate, broken } = release
  const overSince = eolDate !== '' && grace && !broken ? graceEnd(eolDate) : eolDate
  const over = tagStatus === 'inactive'
  return { line: `${product} ${cycle}`, eolDate, ended: hasEnded(release, now), over, overSince }
}
