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
  /** Identifier of the subject: a digest, a location, the uid of a tag, or the place of a total. */
  subject: string
  /** Description for people. */
  detail: string
  repaired: boolean
}

/** Codes of problems for programs. The text says whether one can be repaired, and how. */
export const problems = {
  'content missing or short': 'heals when the blob is pushed again; an upload is ended',
  'content has another digest': 'set aside in the trash, and heals when the blob is pushed again; an upload is ended',
  'content belongs to nothing': 'put into the trash',
  'total is wrong': 'corrected by the difference',
  'links are miscounted': 'corrected by the difference',
  'usage is wrong': 'corrected by the difference',
  'ledger does not know the tag': 'the ledger gets a record of where the tag points',
  'ledger says something else': 'the ledger gets a record of where the tag points',
  'tag is missing': 'restored where its manifest is there, else the ledger gets its deletion',
  'records do not follow each other': 'stays, since records never change',
  'manifest has another digest': 'stays; push the manifest again after deleting it',
  'manifest cannot be read': 'stays; push the manifest again after deleting it',
  'links differ from the manifest': 'written again from the manifest',
  'links of a manifest that is gone': 'removed',
  'log does not extend its stored checkpoint': 'stays; stop all servers and run pinfold restored',
  'stored checkpoint is missing': 'stored again from the signed one',
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
