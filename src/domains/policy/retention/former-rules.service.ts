// What rules have said before. A rule that is shortened, turned off or deleted leaves behind what it said, so that the dates
// that it has given stay: they are asked of the ledger, as those of rules in force are.
import type { Tx } from '#db/sql.ts'
import { limitReached } from '#domains/rules/places.service.ts'
import { rootOf } from '#lib/uid.ts'
import * as store from './former-rules.store.ts'
import {
  type FormerRule,
  givesAllOf,
  lastDateOf,
  mostFormer,
  mostFormerPatterns,
  patternsOf,
  type Retention,
  type RetentionRule,
} from './retention.model.ts'

/**
 * Keeps what a rule has said until now where it gave dates that `after` does not give; `after` is `undefined` for a rule that
 * is deleted. Throws when the organisation has too much of this.
 */
export async function keepFormer(
  tx: Tx,
  at: { group: string; now: string },
  { uid, scopeUid, says }: RetentionRule,
  after: Retention | undefined,
): Promise<void> {
  const former: FormerRule = { uid, scopeUid, says, endTime: at.now }
  if (says.mode !== 'ENFORCE' || lastDateOf(former) === '') return
  if (after?.mode === 'ENFORCE' && givesAllOf(after, says)) return
  const all = await store.formerRules(tx, rootOf(scopeUid))
  const isOver = (one: FormerRule): boolean => {
    return lastDateOf(one) <= at.now || (one.scopeUid === scopeUid && givesAllOf(says, one.says))
  }
  const kept = all.filter((one) => !isOver(one))
  const patterns = [...kept, former].reduce((sum, one) => sum + patternsOf(one.says), 0)
  if (kept.length >= mostFormer) throw limitReached('former rules whose dates are to come', mostFormer, kept.length)
  if (patterns > mostFormerPatterns) {
    throw limitReached('patterns of tags in former rules whose dates are to come', mostFormerPatterns, patterns)
  }
  for (const { id } of all.filter(isOver)) await store.deleteFormerRule(tx, id)
  await store.insertFormerRule(tx, at.group, former)
}
