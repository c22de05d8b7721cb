// Texts of a digest: its tags, retention, content and pulls, and the comparison of two digests.
import { numbers } from './format.ts'

const digest = {
  allTagsOfDigest: 'Current and former tags',
  neverTagged: 'No tag of this repository has ever pointed to this digest.',
  current: 'current',
  former: 'former',
  platforms: 'Platforms',
  platform: 'Platform',
  noPlatforms: 'This manifest does not specify a platform.',
  digestMissing:
    'The repository does not contain this digest: it was deleted, or never stored here. Its content is not known.',
  signatures: 'Tagged signatures and attestations',
  noSignatures: 'No signature or attestation of this digest is stored under a tag.',
  referrers: 'Referrers',
  noReferrers: 'No signature, SBOM or attestation in this repository refers to this digest.',
  artifactType: 'Artifact type',
  noneInIncomplete: 'None found, but the data is incomplete.',
  incomplete: 'The data is incomplete:',
}

const retentionOfDigest = {
  retention: 'Retention',
  keptBy: {
    REASON_UNSPECIFIED: 'Nothing prevents the deletion of this digest. Users with permission can delete it.',
    PROMISED: 'A retention policy keeps this digest.',
    HELD: 'A legal hold keeps this digest.',
    IMMUTABLE: 'An immutable tag keeps this digest.',
    LAST: 'A retention policy keeps this digest, because it is among the latest digests of the tags.',
    LISTED: 'A tag protection rule keeps this digest, because the index of a protected tag lists it.',
    UNDECIDED:
      'The server cannot tell whether this digest must be kept, because the check would read too much data. It cannot be deleted.',
  },
  keptUntil: 'It is kept until',
  keptWithoutEnd: 'There is no end date.',
  keptWith: 'It is kept because it belongs to',
  keptFor: (tags: string) => `Tags that point to it, or have pointed to it: ${tags}`,
  currentTagsOf: (tags: string) => `Deletion plans skip it, because these tags point to it: ${tags}`,
  retentionOfRepo: 'Retention settings of this repository',
}

const pulls = {
  pulls: 'Pulls',
  noPulls: 'No pulls are recorded. The server keeps records of pulls for 90 days.',
  lastPull: 'Last pull',
  pullersHidden: 'Callers are shown only to members who can list identities here.',
  getRequests: 'GET requests',
  headRequests: 'HEAD requests',
  otherPullers: 'other callers',
}

const findings = {
  fixedIn: 'Fixed in',
  noFix: 'no known fix',
  noneFound: 'No known vulnerabilities. All packages were compared with the data sources.',
  noneButNotScanned: 'No known vulnerabilities, but',
  noPackages: 'No packages were found in this image.',
  statementOf: (author: string, statement: string) => `VEX statement by ${author || 'an unknown author'}: ${statement}`,
  moreStatements: (count: number) => `and ${numbers(count)} more`,
}

const comparison = {
  comparison: (older: string, newer: string) => `Changes from ${older} to ${newer}`,
  swapDigests: 'Swap the digests',
  change: 'Change',
  changed: 'changed',
  added: 'added',
  removed: 'removed',
  before: 'Before',
  after: 'After',
  noDifference: 'There is no difference.',
}

export const digestWords = { ...digest, ...retentionOfDigest, ...pulls, ...findings, ...comparison }
