// Texts of a digest: its tags, retention, content and pulls, and the comparison of two digests.
import { counted, numbers } from './format.ts'

const digest = {
  allTagsOfDigest: 'Current and former tags',
  neverTagged: 'No tag of this repository has ever pointed to this digest.',
  current: 'current',
  former: 'former',
  parts: {
    vulnerabilities: 'Vulnerabilities',
    packages: 'Packages',
    layers: 'Layers and configuration',
    referrers: 'Referrers',
    history: 'History',
    pulls: 'Pulls',
    retention: 'Policies and retention',
  },
  imageMissing:
    'The repository does not store this image: it was deleted, or never pushed here. Its content is not known. Its tag history is kept.',
  copyDigest: 'Copy digest',
  pushed: 'Pushed',
  untagged: 'no tag',
  platforms: 'Platforms',
  noPlatform: 'not specified',
  sizeOfOne: 'for amd64',
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

const summary = {
  allScanned: 'All packages were scanned.',
  signature: 'Signature',
  signatureCount: (count: number) => counted(count, 'signature'),
  noSignature: 'none',
  notVerified: 'Not verified by the server.',
  noPolicies: 'none',
  policiesChecked: (count: number) => `${counted(count, 'policy', 'policies')} checked`,
  pullsOf30Days: 'Pulls in 30 days',
  keptShort: 'Retained until',
  notKept: 'not retained',
  keptForever: 'no end date',
}

const layers = {
  layers: 'Layers',
  configuration: 'Configuration',
  architecture: 'Architecture',
  noLayers: 'This artifact has no configuration and no layers of a container image.',
  command: 'Build step',
  noCommand: 'not recorded',
  built: 'Built',
  entrypoint: 'Entry point',
  cmd: 'Command',
  user: 'User',
  rootUser: 'not set (root)',
  workingDir: 'Working directory',
  ports: 'Ports',
  volumes: 'Volumes',
  stopSignal: 'Stop signal',
  imageAuthor: 'Author',
  environment: 'Environment',
  labels: 'Labels',
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
  epss: 'EPSS',
  knownExploited: 'exploited',
  findingText: 'Vulnerability, title or package',
  allSeverities: 'all',
  onlyFindings: 'Findings',
  findingFilters: {
    '': 'all',
    open: 'affected',
    fixable: 'with a fix',
    exploited: 'known to be exploited',
  },
  clearFilters: 'Clear filters',
  noFindingFound: (count: number) => `No finding matches the filters. The image has ${counted(count, 'finding')}.`,
  exportAs: (format: string) => `Export as ${format}`,
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

export const digestWords = {
  ...digest,
  ...summary,
  ...layers,
  ...retentionOfDigest,
  ...pulls,
  ...findings,
  ...comparison,
}
