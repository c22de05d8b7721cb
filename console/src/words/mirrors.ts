// Texts of upstream registries, mirrors, and copies within the registry.
import { counted } from './format.ts'

const upstreams = {
  upstreams: 'Upstream registries',
  noUpstreams: 'There are no upstream registries yet. Create one to mirror its repositories.',
  newUpstream: 'New upstream registry',
  registryUrl: 'Registry URL',
  registryUrlHint: 'Example: https://registry.example.com',
  prefix: 'Path prefix at the upstream',
  username: 'User name',
  password: 'Password or token',
  passwordHint: 'Stored encrypted and never shown again. If you change the URL or the user name, enter it again.',
  allowedPaths: 'Paths that can be mirrored (regular expressions, one per line)',
  allPathsHint: 'Leave empty for all paths.',
  makeRepos: 'Create a mirror when somebody pulls a repository that does not exist here',
  perSecond: 'Maximum requests per second',
  upstreamAccount: 'Account',
  hasPassword: 'with a password',
  deleteUpstreamText: 'An upstream registry can be deleted only if no repository mirrors it.',
}

const mirrored = {
  mirrors: 'Mirrors',
  noMirrors: 'There are no mirrors here yet. To create one, open the tab Mirror of a repository.',
  notMirror: 'This repository is not a mirror. Its tags change with pushes.',
  upstreamPath: 'Path at the upstream',
  mirrorMode: 'Mode',
  mirrorModes: {
    MODE_UNSPECIFIED: 'unknown',
    MODE_WATCH: 'watch: record the digests of tags, copy no content',
    MODE_ON_DEMAND: 'on demand: copy content when it is first pulled',
    MODE_FULL: 'full: copy all content in advance',
  } as Record<string, string>,
  mirrorStates: {
    STATE_WAITING: 'waiting for the next check',
    STATE_QUEUED: 'queued',
    STATE_IN_PROGRESS: 'checking the upstream',
    STATE_FAILED: 'the last check failed',
  } as Record<string, string>,
  stateSince: 'In this state since',
  upstream: 'Upstream registry',
  mirroredTags: 'Mirrored tags',
  mirroredTagsHint: 'Names, or regular expressions for whole names, one per line. Leave empty for all tags.',
  tagCount: 'Number of checked tags',
  interval: 'Check interval',
  intervalMinutes: 'Check interval in minutes',
  minutes: (count: number) => counted(count, 'minute'),
  staleDays: 'Days to serve the last known tags while the upstream does not answer',
  nextCheck: 'Next check',
  upstreamHistory: 'Tag history of the upstream',
  upstreamHistories: {
    HISTORY_UNSPECIFIED: 'not requested yet',
    HISTORY_SERVICE: 'available, without deletions',
    HISTORY_DRAFT: 'available',
    HISTORY_NONE: 'not available',
  } as Record<string, string>,
  checkNow: 'Check now',
  stopMirroring: 'Stop mirroring',
  stopMirroringOf: (path: string) => `Stop mirroring ${path}`,
  stopMirroringText: 'The repository becomes a normal repository. It keeps its tags and their history.',
  newMirror: 'New mirror',
  editMirror: 'Edit mirror',
  saveMirror: 'Save mirror',
  noUpstreamToMirror:
    'There is no upstream registry in this group or above. Create one on the tab Mirrors of the group.',
  mirrorHint: 'While the repository is a mirror, users cannot push to it or delete its tags.',
}

const copies = {
  copies: 'Copies within this registry',
  noCopies: 'No repository here copies another repository of this registry.',
  noCopiesOf: 'No repository that you can see in this organization copies this one.',
  cutCopies: 'Only the first 1,000 repositories were searched. There may be more copies.',
  copyOf: 'Copy of',
  copyStates: {
    UNKNOWN: 'idle',
    QUEUED: 'queued',
    IN_PROGRESS: 'copying',
    FAILED: 'the last attempt failed',
  } as Record<string, string>,
  copiedUntil: 'Copying ends',
  withUniqueTags: 'with additional dated tags',
}

export const mirrorWords = { ...upstreams, ...mirrored, ...copies }
