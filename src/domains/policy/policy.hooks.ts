import type { App } from '#app.ts'
import { deleteRulesAt, endExceptionsAt } from '#domains/rules/rules.store.ts'
import type { DomainHooks } from '#hooks.ts'
import { rootOf } from '#lib/uid.ts'
import { deleteFormerRulesAt, raiseRulesVersion } from './retention/retention.store.ts'
import {
  lockAssignedDigest,
  lockUnassignedDigest,
  lockUntaggedDigest,
  requireDeletable,
  requireMovable,
  requireUnprotected,
} from './retention/retention-locks.service.ts'

export const policyHooks = (app: App): DomainHooks => ({
  /** Fills the cache of retention rules before the transaction. Reads inside a transaction do not fill the cache. */
  async pushBeginning(scope) {
    await app.contentRules.of(app.db, scope)
  },

  async manifestPushed(tx, { cause }, repo, { digest, tags }) {
    if (tags.length === 0) await lockUntaggedDigest(tx, { app }, repo, digest, cause.now)
  },

  mayAssignTag: (tx, repo, move) => requireMovable(tx, { app }, repo, move),
  mayDeleteTag: (tx, repo, tag) => requireDeletable(tx, { app }, repo, tag),
  tagAssigning: (tx, repo, assigned, now) => lockAssignedDigest(tx, { app }, repo, assigned, now),
  tagUnassigned: (tx, repo, left) => lockUnassignedDigest(tx, { app }, repo, left),
  mayDelete: (tx, { caller, cause }, repo, digest) => requireUnprotected(tx, { app, caller, cause }, repo, digest),

  /** Deletes the rules of the repository and ends its exemptions. Quarantines remain as a record. */
  async repoHidden(tx, { uid, actor }, now) {
    await deleteRulesAt(tx, 'pull_rules', uid)
    await deleteRulesAt(tx, 'gates', uid)
    await endExceptionsAt(tx, 'pull_rule_exceptions', uid, { time: now, actor })
    await endExceptionsAt(tx, 'gate_exceptions', uid, { time: now, actor })
    const rules = (await deleteRulesAt(tx, 'retention_rules', uid)) + (await deleteRulesAt(tx, 'tag_rules', uid))
    const deleted = rules + (await deleteFormerRulesAt(tx, uid))
    if (deleted > 0) await raiseRulesVersion(tx, rootOf(uid))
  },
})
