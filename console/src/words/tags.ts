// Texts of a tag: digest at a time, timeline, proof, and views.
import { numbers } from './format.ts'

const tag = {
  copyWithDigest: 'Copy with digest',
  copyWithDigestOf: (tag: string) => `Copy with digest: ${tag}`,
  copyWithDigestAt: (time: string) => `Copy with digest: update of ${time}`,
  asOf: 'Digest at a time',
  asOfUtc: 'As of (UTC)',
  fromUtc: 'From (UTC)',
  toUtc: 'Before (UTC)',
  currentDigest: 'Current digest:',
  digestAt: (time: string) => `Digest on ${time}:`,
  tagMissing: 'none, because the tag did not exist yet',
  via: 'via',
  source: 'Source',
  sources: {
    SOURCE_UNSPECIFIED: 'unknown',
    SOURCE_OCI: 'registry',
    SOURCE_API: 'API',
    SOURCE_IMPORT: 'import',
    SOURCE_SYNC: 'copy',
    SOURCE_UPSTREAM: 'upstream',
  },
  tagEvents: {
    EVENT_UNSPECIFIED: 'unknown',
    EVENT_CREATED: 'created',
    EVENT_MOVED: 'updated',
    EVENT_DELETED: 'deleted',
  } as Record<string, string>,
  timeline: 'Timeline',
  timelineKeys: 'Timeline: select a bar with the arrow keys, then press Enter to see its digest',
  timelineHint:
    'Each row is a digest. A bar shows when the tag pointed to it. Select a bar to see the digest at that time. Select a second bar with Shift to compare two digests. With the keyboard, Left and Right move through time. Up and Down move between bars of the same digest. Home and End move to the first and the last bar.',
  updateBy: (time: string, actor: string) => `updated ${time} by ${actor}`,
  updateBetween: (after: string, until: string) => `updated at the upstream between ${after} and ${until}`,
  firstSeen: (time: string) => `found at the first check of the upstream, ${time}`,
  firstCheck: 'or before (first check of the upstream)',
  tagUpdates: 'Tag updates',
  noTagHistory: 'This tag has no history: it has never existed in this repository. Check its name.',
  noUpdatesThen:
    'The tag has no updates in this time range. To see its whole history, remove “from” and “to” from the address of this page.',
  previousDigest: 'Previous digest',
  newDigest: 'New digest',
  delta: (found: number, resolved: number) =>
    found + resolved === 0 ? 'no change' : `+${numbers(found)} −${numbers(resolved)}`,
  deltaPartial: '(incomplete)',
  deltaFailed: 'not available',
  deltaColumn: 'Vulnerabilities +/−',
  compare: 'Compare',
  compareWithNow: 'Compare with now',
  compareAt: (time: string) => `Compare the update of ${time} with the previous digest`,
  reported: 'History reported by the upstream',
  reportedText: 'This server did not see these updates itself. Views, policies and proofs do not use them.',
  reportedBy: 'Upstream',
}

const restores = {
  restored: 'restored',
  restore: 'Restore',
  restoreThis: 'Restore this digest',
  restoreOf: (digest: string, time: string) => `Restore ${digest}, the digest of ${time}`,
  restoreTitle: (tag: string, digest: string) => `Restore ${tag} to ${digest}?`,
  restoreChange: (current: string, digest: string) =>
    current === '' ? `Creates the deleted tag again, with ${digest}.` : `Changes ${current} (current) to ${digest}.`,
  restoreEffect: 'Clients get the restored digest at their next pull.',
  restoreUndo: (current: string) => `You can restore ${current} later.`,
  restoreDigest: 'Restore digest',
  restoreReasonHint: 'The tag history and the audit log show the reason.',
  restoreDone: (tag: string, digest: string) => `Restored ${tag} to ${digest}`,
  notRestored: (actor: string, tag: string, time: string) =>
    `Not restored. ${actor} updated ${tag} ${time}. Review the new digest and try again.`,
  notStored:
    'The repository no longer stores this image, so it cannot be restored. Push the image again, then restore it.',
  isCurrent: 'This is the current digest of the tag. There is nothing to restore.',
  fewerFindings: (counts: string) => `Removes ${counts}.`,
  moreFindings: (counts: string) => `Adds ${counts}.`,
  findingsOf: (count: number, severity: string) =>
    `${numbers(count)} ${severity} ${count === 1 ? 'finding' : 'findings'}`,
  sameFindings: 'The vulnerabilities are the same.',
  findingsPartial: 'The images were not scanned completely, so more differences are possible.',
  momentOf: 'Time of the digest',
  moments: { now: 'Now', yesterday: 'Yesterday', week: 'A week ago', time: 'At a time' },
  range: 'Time range of the timeline',
  ranges: { '7': '7 days', '30': '30 days', '90': '90 days', all: 'All' } as Record<string, string>,
}

const proofs = {
  proof: 'Proof',
  proofText: 'The proof is a file. It shows which digest the tag had at this time, and can be verified offline.',
  saveProof: 'Download proof',
  saveProofOf: (tag: string, at: string) => `Download proof of ${tag} at ${at}`,
  savePolicy: 'Download keys',
  policyText:
    'The keys of the transparency log verify the proof. Download them once, and keep them. Do not trust keys that somebody sends you together with a proof.',
  proofCheck: 'To verify the proof, run:',
  proofByCommand: 'To get the proof on the command line, run:',
}

const views = {
  viewTitle: 'Pull through a view',
  viewText:
    'A view is a prefix of the image name, before the repository path. A pull through a view returns the image that the tag had at a given time, or the newest image that is old enough. Any client can use views.',
  viewAge: 'Minimum age',
  viewHold: 'Hold time',
  ageHint: 'Examples: 12h, 7d, 2w.',
  holdHint: 'Digests that had the tag for a shorter time are skipped. Default: 6h.',
  showView: 'Show view',
  copyView: 'Copy the image name with this view',
  copyWithDigestOfView: 'Copy with digest: this view',
  viewServes: 'The view serves',
  importedTime: 'according to imported history',
  viewReasons: {
    'no tag': 'No image: the tag did not exist at this time.',
    deleted: 'No image: the tag was deleted at this time.',
    gone: 'No image: the repository no longer has it.',
    young: 'No image is old enough yet.',
  } as Record<string, string>,
  viewNext: 'Next image:',
  viewFrom: 'from',
  skippedDigests: 'Skipped digests',
  eligibleFrom: 'Old enough on',
  skipReasons: {
    young: 'too young',
    short: 'had the tag for less than the hold time',
    deleted: 'the tag was deleted',
    'rolled back': 'the tag was rolled back to an earlier digest',
    gone: 'no longer in the repository',
  } as Record<string, string>,
}

export const tagWords = { ...tag, ...restores, ...proofs, ...views }
