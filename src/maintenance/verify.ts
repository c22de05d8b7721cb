// Compares a database with its contents: blobs in the store, and counters, tags and links with the rows that they are computed
// from. Servers may run meanwhile, since each comparison is one statement or is repeated before a finding is reported.
import { openBlobs } from '#blobs/open.ts'
import type { Config } from '#config.ts'
import { createSkew } from '#db/skew.ts'
import type { Db } from '#db/sql.ts'
import { verifyCheckpoints } from '#domains/ledger/proofs/verification.service.ts'
import { trashMs } from '#domains/registry/blobs/collection.model.ts'
import { type Contents, verifyContents, verifyOrphans } from '#domains/registry/verification/contents.service.ts'
import { verifyManifests } from '#domains/registry/verification/manifest-links.service.ts'
import { verifyLedger, verifyTags } from '#domains/registry/verification/tag-records.service.ts'
import { verifyUsage } from '#domains/registry/verification/usage.service.ts'
import {
  type Check,
  checks,
  type Finding,
  type Tally,
  type Watch,
} from '#domains/registry/verification/verification.model.ts'
import { openExisting } from '#open-database.ts'
import { resources } from '#resources.ts'
import { requireOwn } from './bind-blobs.ts'
import { holdContents } from './hold-contents.ts'
import { correctTotal, wrongTotals } from './list-totals.store.ts'

export {
  type Check,
  checks,
  type Finding,
  problems,
  type Tally,
} from '#domains/registry/verification/verification.model.ts'

export type VerifyOptions = {
  repair: boolean
  hash: boolean
  /** Share of the contents whose digest `hash` verifies, from 0 to 1. The contents are chosen at random. Default: 1. */
  share?: number
  /** Checks to run. Default: all checks. */
  only?: readonly Check[]
  /** Called for each finding as soon as it is found. */
  found?(finding: Finding): void
  /** Called with the progress. */
  progress?(check: Check, examined: number): void
}

export type Verified = Record<Check, Tally>

const mostTotals = 1000

/** Returns, for each check, the number of items that were checked, wrong, and repaired. */
export async function verify(config: Config, options: VerifyOptions): Promise<Verified> {
  await using opening = new AsyncDisposableStack()
  const { db } = opening.adopt(await openExisting(config), (open) => open.close())
  const blobs = opening.adopt(await openBlobs(config.blobs, config.data, { env: config.aws }), (one) => one.close())
  await requireOwn(db, blobs)
  const skew = createSkew(db)
  await skew.measure()
  const now = () => skew.now().toISOString()
  const due = new Date(skew.now().getTime() + trashMs(config)).toISOString()
  // Two repairs at the same time would correct the same difference twice.
  if (options.repair) opening.adopt(await holdContents(db, skew, 'repair'), (one) => one.end())
  const contents: Contents = { db, blobs, hash: options.hash ? (options.share ?? 1) : 0, due }
  const { verified, watch } = watchFor(options)
  const each: Record<Check, () => Promise<void>> = {
    blobs: () => verifyContents(contents, watch),
    uploads: async () => {},
    orphans: () => verifyOrphans(contents, skew.now().getTime(), watch),
    checkpoints: () => verifyCheckpoints(contents, watch),
    totals: () => verifyTotals(db, watch),
    usage: () => verifyUsage(db, watch),
    tags: () => verifyTags(db, now, watch),
    ledger: () => verifyLedger(db, now, watch),
    manifests: () => verifyManifests(db, watch),
  }
  // The counters are verified last, since rows that the earlier checks restore change them.
  const order: readonly Check[] = [
    ...(['blobs', 'uploads', 'orphans', 'checkpoints'] as const),
    ...(['manifests', 'tags', 'ledger', 'usage', 'totals'] as const),
  ]
  for (const check of order) if (options.only?.includes(check) ?? true) await each[check]()
  return verified
}

function watchFor({ repair, found, progress }: VerifyOptions): { verified: Verified; watch: Watch } {
  const verified = Object.fromEntries(
    checks.map((check) => [check, { examined: 0, found: 0, repaired: 0 }]),
  ) as unknown as Verified
  const watch: Watch = {
    repair,
    found(finding) {
      const tally = verified[finding.check]
      tally.found++
      if (finding.repaired) tally.repaired++
      found?.(finding)
    },
    examined(check, count) {
      verified[check].examined += count
      progress?.(check, verified[check].examined)
    },
  }
  return { verified, watch }
}

/** Checks the stored number of nodes of each kind in a group. */
async function verifyTotals(db: Db, watch: Watch): Promise<void> {
  for (const { table, kinds, listedBy } of resources) {
    for (const kind of kinds) {
      for (let after = ''; ; ) {
        const wrong = await wrongTotals(db, { kind, table, listedBy }, { after, most: mostTotals })
        for (const total of wrong) {
          if (watch.repair) await db.tx((tx) => correctTotal(tx, kind, total))
          const detail = `the stored number of ${kind} is ${total.counted} instead of ${total.found}`
          const of = { subject: total.scope, detail, repaired: watch.repair }
          watch.found({ check: 'totals', problem: 'total is wrong', ...of })
        }
        if (wrong.length < mostTotals) break
        after = wrong.at(-1)!.scope
      }
      watch.examined('totals', 1)
    }
  }
}
