// What gates say of the product that an image is about.
import type { Support } from '#domains/registry/lifecycles/support.service.ts'
import { fails, type Judged, passes, plural, waits } from './verdicts.model.ts'

type Known = Support | 'unknown' | undefined

export function judgeLife(support: Known): Judged {
  return judged(support, ({ line, over, overSince }) => {
    if (!over) return passes(`${line} is supported`)
    return fails(`${line} has come to the end of its life`, overSince === '' ? {} : { since: () => overSince })
  })
}

export function judgeWindow(support: Known, months: number, now: string): Judged {
  const span = plural(months, 'month')
  return judged(support, ({ line, eolDate, ended }) => {
    const began = eolDate === '' ? {} : { since: () => plusMonths(eolDate, -months) }
    if (ended) return fails(`${line} has come to the end of its life, and is to have ${span} left`, began)
    if (eolDate === '') return passes(`nobody knows when the life of ${line} ends`)
    if (eolDate >= plusMonths(now, months)) return passes(`the life of ${line} ends on ${eolDate}`)
    return fails(`the life of ${line} ends on ${eolDate}, which is in less than ${span}`, began)
  })
}

function judged(support: Known, of: (known: Support) => Judged): Judged {
  if (support === undefined) return waits('nobody has looked yet which product it is about')
  if (support === 'unknown') return passes('it is about no line of a product that is known')
  return of(support)
}

/** A day so many months later, or earlier. */
function plusMonths(time: string, months: number): string {
  const day = new Date(time)
  return new Date(Date.UTC(day.getUTCFullYear(), day.getUTCMonth() + months, day.getUTCDate()))
    .toISOString()
    .slice(0, 10)
}
