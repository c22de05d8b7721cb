// Something else is said of a package now: all components of its name are compared, in turns that others of the queue share.

import { readPackageItem } from '../queue/queue.model.ts'
import { type Doing, end, matchAll, pause, suppressAll } from './doing.service.ts'
import { componentsNamed } from './findings.store.ts'
import { type PairCursor, pairsTouching } from './suppressions.store.ts'

/**
 * Of what is kept of one list a turn adds no more than this part, but for its last slice. Between two turns it is
 * counted, so that of one in which too much is found no more than that is found until it is held.
 */
const turnsOfList = 5
const pairsAtOnce = 256

/**
 * The components up to `after` are done, and those up to `upTo` are compared with what has a number up to `row`; when
 * that is all, they are done with the pairs up to `pair`.
 */
type Progress = { after: number; upTo: number; row: number; pair: PairCursor | undefined }

const start: Progress = { after: 0, upTo: Number.MAX_SAFE_INTEGER, row: 0, pair: undefined }

export async function doPackage(doing: Doing): Promise<void> {
  const { app, item } = doing
  const { name } = readPackageItem(item.item)
  const turn: Turn = { added: 0, most: app.config.findingsPerList / turnsOfList }
  for (let at = item.progress === '' ? start : (JSON.parse(item.progress) as Progress); ; ) {
    const most = at.upTo === start.upTo ? doing.pace.size : mostInProgress
    const components = await componentsNamed(app.db, name, { after: at.after, upTo: at.upTo, most })
    const last = components.at(-1)
    if (!last) break
    at = await advance(doing, turn, { ...at, upTo: last.componentNo }, components)
    if (doing.isLate() || turn.added > turn.most) return pause(doing, JSON.stringify(at))
  }
  await end(doing)
}

/** What was begun together is not more than a slice takes. */
const mostInProgress = 64

type Turn = { added: number; most: number }

/** Compares the components, then goes on with what is suppressed in them; as far as the turn allows. */
async function advance(
  doing: Doing,
  turn: Turn,
  at: Progress,
  components: Parameters<typeof matchAll>[1],
): Promise<Progress> {
  if (!at.pair) {
    const isEnough = ({ added }: { added: number }) => doing.isLate() || turn.added + added > turn.most
    const { added, next } = await matchAll(doing, components, { after: at.row, isEnough })
    turn.added += added
    if (next !== undefined) return { ...at, row: next }
  }
  const numbers = components.map(({ componentNo }) => componentNo)
  for (let pair = at.pair; ; ) {
    const page = await pairsTouching(doing.app.db, numbers, { after: pair, most: pairsAtOnce })
    await suppressAll(doing, page.pairs)
    if (!page.next) return { ...start, after: at.upTo }
    pair = page.next
    if (doing.isLate()) return { ...at, pair }
  }
}
