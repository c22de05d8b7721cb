// Texts of a repository: its tags, tag history, readme and settings.
import { numbers } from './format.ts'

export const repoWords = {
  repoViews: {
    tags: 'Tags',
    history: 'Tag history',
    readme: 'Readme',
    pull: 'Pull',
    promises: 'Retention',
    pulls: 'Cooldown policies',
    gates: 'Admission policies',
    risks: 'Accepted risks',
    mirror: 'Mirror',
    settings: 'Settings',
  },
  tagsOf: (repo: string) => `Tags of ${repo}`,
  tagByName: 'Part of the tag name',
  noTags: 'There are no tags yet. To create one, push an image:',
  noTagNamed: (name: string) =>
    name === ''
      ? 'The list has no page with this number. Select the tab Tags to see its first page.'
      : `No current tag has ${name} in its name.`,
  deletedTagHistory: 'See the history of a deleted tag with exactly this name',
  moreTags: (most: number) =>
    `Only the first ${numbers(most)} matching tags are shown. Type more of the name to find others.`,
  deprecated: 'end of life',
  platformsOfTag: 'Platforms',
  signed: 'Signed',
  isSigned: 'yes',
  notSigned: 'no',
  recentPulls: 'Pulls, 30 days',
  imageUnknown: 'The image is not stored, or you do not have permission to see its details.',
  withDigest: 'With digest',
  withTag: 'With tag',
  copyWithTagOf: (tag: string) => `Copy with tag: ${tag}`,
  deleteTagOf: (tag: string) => `Delete tag ${tag}`,
  deleteTagText:
    'Pulls by this tag will fail. The image stays in the repository and can be pulled by digest. The tag history stays too.',
  tagHistory: 'Tag history',
  noRepoHistory: 'There is no tag history yet. It starts with the first push.',
  noReadme: 'This repository has no readme.',
  readmeCut: 'Only the beginning of the readme is shown.',
  deleteRepo: 'Delete repository',
  deleteRepoOf: (path: string) => `Delete repository ${path}`,
  deleteRepoText: (tags: string, manifests: string, size: string) =>
    `This deletes the tags (${tags}) and manifests (${manifests}) of the repository, ${size} in total. It cannot be undone. The tag history stays. The server refuses the deletion while a retention policy or a legal hold keeps an image.`,
}
