// Checks of a verification, and their findings.

export const checks = [
  'blobs',
  'uploads',
  'orphans',
  'checkpoints',
  'totals',
  'usage',
  'tags',
  'ledger',
  'manifests',
] as const
export type Check = (typeof checks)[number]

/** Problem of one subject, and whether it was repaired. */
export type Finding = {
  check: Check
  problem: Problem
  /** Identifier of the subject: a digest, a location, the uid of a tag, or the scope of a total. */
  subject: string
  /** Description for people. */
  detail: string
  repaired: boolean
}

/** Codes of problems for programs. Each text says whether the problem can be repaired, and how. */
export const problems = {
  'content missing or short': 'not repaired: push the blob again. An upload is canceled',
  'content has another digest': 'moved to the trash: push the blob again. An upload is canceled',
  'content belongs to nothing': 'moved to the trash',
  'total is wrong': 'the count is corrected',
  'links are miscounted': 'the count is corrected',
  'usage is wrong': 'the count is corrected',
  'ledger does not know the tag': 'the current digest of the tag is added to the tag history',
  'ledger says something else': 'the current digest of the tag is added to the tag history',
  'tag is missing': 'restored if its manifest exists; otherwise its deletion is added to the tag history',
  'records do not follow each other': 'not repaired, because the tag history never changes',
  'manifest has another digest': 'not repaired: delete the manifest and push it again',
  'manifest cannot be read': 'not repaired: delete the manifest and push it again',
  'links differ from the manifest': 'written again from the manifest',
  'links of a manifest that is gone': 'removed',
  'log does not extend its stored checkpoint': 'not repaired: stop all servers and run pinfold server complete-restore',
  'stored checkpoint is missing': 'the signed checkpoint is stored again',
} as const
export type Problem = keyof typeof problems

/** Number of examined, wrong and repaired items. */
export type Tally = { examined: number; found: number; repaired: number }

/** `found` is called for each finding, and `examined` with the number of further examined items. */
export type Watch = {
  repair: boolean
  found(finding: Finding): void
  examined(check: Check, count: number): void
}
